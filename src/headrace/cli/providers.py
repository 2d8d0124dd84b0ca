"""The providers that `headrace init` knows: the variables that their users have set, and what their APIs are.

The variables are those of the official SDKs, so whoever has used a provider has them. OpenAI's base URL holds the API's
version, Anthropic's and Google's do not: their SDKs add it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider. `names` are models that are listed to clients, `patterns` take all others of theirs."""

    channel: str
    title: str
    variables: tuple[str, ...]
    """Where its key may be; the first that is set counts."""
    base_url: str
    protocols: tuple[str, ...]
    patterns: tuple[str, ...]
    names: tuple[str, ...] = ()
    base_variable: str = ""
    version: str = ""
    """What `base_variable` leaves out at the end of the base URL."""


@dataclass(frozen=True, slots=True)
class Found:
    """A provider whose key is set: the variable that holds it, the base URL, and whether that is an unusual one."""

    provider: Provider
    variable: str
    base_url: str
    elsewhere: bool


PROVIDERS = (
    Provider(
        "openai",
        "OpenAI",
        ("OPENAI_API_KEY",),
        "https://api.openai.com/v1",
        ("responses", "chat", "completions", "embeddings", "images", "audio", "moderations"),
        ("gpt-*", "o3*", "o4*", "text-embedding-*", "omni-moderation-*", "whisper-*", "tts-*"),
        ("gpt-5.6-sol",),
        "OPENAI_BASE_URL",
    ),
    Provider(
        "anthropic",
        "Anthropic",
        ("ANTHROPIC_API_KEY",),
        "https://api.anthropic.com/v1",
        ("messages",),
        ("claude-*",),
        ("claude-sonnet-5-5",),
        "ANTHROPIC_BASE_URL",
        "/v1",
    ),
    Provider(
        "gemini",
        "Google Gemini",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "https://generativelanguage.googleapis.com/v1beta",
        ("gemini",),
        ("gemini-*", "gemma-*"),
        ("gemini-3.8-flash",),
        "GOOGLE_GEMINI_BASE_URL",
        "/v1beta",
    ),
    Provider("deepseek", "DeepSeek", ("DEEPSEEK_API_KEY",), "https://api.deepseek.com/v1", ("chat",), ("deepseek-*",)),
    Provider(
        "mistral",
        "Mistral",
        ("MISTRAL_API_KEY",),
        "https://api.mistral.ai/v1",
        ("chat", "embeddings", "moderations"),
        ("mistral-*", "magistral-*", "ministral-*", "codestral-*", "devstral-*"),
    ),
    Provider("xai", "xAI", ("XAI_API_KEY",), "https://api.x.ai/v1", ("responses", "chat"), ("grok-*",)),
    Provider(
        "openrouter",
        "OpenRouter",
        ("OPENROUTER_API_KEY",),
        "https://openrouter.ai/api/v1",
        ("chat",),
        ("openai/*", "anthropic/*", "google/*", "meta-llama/*", "mistralai/*", "qwen/*", "deepseek/*", "x-ai/*"),
    ),
)

SIMULATOR_URL = "http://127.0.0.1:9090"
SIMULATED = Found(
    Provider(
        "simulator",
        "the simulator",
        (),
        f"{SIMULATOR_URL}/v1",
        ("responses", "chat", "messages", "gemini", "completions", "embeddings", "moderations"),
        ("sim-*",),
        ("sim-echo", "sim-slow"),
    ),
    "",
    f"{SIMULATOR_URL}/v1",
    False,
)
"""What `headrace simulate` is as an upstream; it takes any credential."""


def found_in(environ: Mapping[str, str]) -> Iterator[Found]:
    """The providers whose keys are set and not empty."""
    for provider in PROVIDERS:
        variable = next((name for name in provider.variables if environ.get(name, "").strip()), None)
        if variable is None:
            continue
        base_url = _base_url(provider, environ)
        yield Found(provider, variable, base_url, base_url != provider.base_url)


def _base_url(provider: Provider, environ: Mapping[str, str]) -> str:
    written = environ.get(provider.base_variable, "").strip().rstrip("/") if provider.base_variable else ""
    if not written:
        return provider.base_url
    last = written.rpartition("/")[2]
    return written if not provider.version or last.startswith("v1") else written + provider.version
