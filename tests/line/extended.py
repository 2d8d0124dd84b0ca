"""The stand's configuration with one more channel, and models that lead there."""

from tests.stand.settings import CONFIG


def extended(name: str, base_url: str, config: str = CONFIG, *, then: str = "", **options: object) -> str:
    """A channel `name` with these options, and models `name-*`; `then`: a channel that is tried after it."""
    fields = {"base_url": f"'{base_url}'", "protocols": "[chat]", "connect": "1s"} | options
    fields |= {"credentials": f"[{{name: main, secret: sk-{name}}}]"}
    channel = ", ".join(f"{field}: {value}" for field, value in fields.items())
    routes = f"[{{channel: {name}}}, {{channel: {then}, priority: 1}}]" if then else f"[{{channel: {name}}}]"
    config = config.replace("channels:\n", f"channels:\n  {name}: {{{channel}}}\n", 1)
    attempts = 2 if then else 1
    return config.replace("models:\n", f"models:\n  {name}-*: {{routes: {routes}, max_attempts: {attempts}}}\n", 1)
