"""What an upstream's error body says, whichever provider wrote it: its words and its wait.

Bodies may be HTML, empty, a list, or another provider's dialect; anything that is no error object reads as None.
"""

import json
from dataclasses import dataclass

import msgspec

BODY_LIMIT = 64 * 1024
"""Bytes of an error body that are read; the rest is not worth the wait."""

_ACCOUNT_WORDS = ("quota", "billing", "spend_limit", "credit_balance", "organization_", "usage_not_included")


@dataclass(frozen=True, slots=True)
class Fault:
    """An error object. `words` are its codes, types, statuses and reasons in lower case, in that order."""

    words: tuple[str, ...]
    status: int | None
    """The HTTP status that the body names."""
    message: str
    retry_delay_s: float | None

    @property
    def names_model(self) -> bool:
        """Whether a 404 is about the model and not about some other object."""
        if "model_not_found" in self.words:
            return True
        if "not_found_error" in self.words:
            return self.message.startswith("model:")
        return "not_found" in self.words and "models/" in self.message

    @property
    def names_bad_key(self) -> bool:
        """Whether it says that the key is invalid; Gemini does so with a 400."""
        return "api_key_invalid" in self.words

    @property
    def names_account(self) -> bool:
        """Whether a limit is the whole account's, so that another model of the same credential meets it too.

        Read from codes alone: OpenAI's and Google's messages name organisation and quota for limits of one model too.
        """
        return any(part in word for word in self.words for part in _ACCOUNT_WORDS)

    @property
    def summary(self) -> str:
        """The words, for the operator. The message may quote a prompt or a key, so it is not among them."""
        return "/".join(self.words)[:200]


def read_json(body: bytes) -> object:
    """Any JSON value by msgspec, else by the standard library (lone surrogates); None for what is neither."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value


def fault_from_body(body: bytes) -> Fault | None:
    """The fault in a whole error body: `{"error": {…} | "text"}`, or Gemini's list of one such object."""
    return fault_from_value(read_json(body))


def fault_from_value(value: object) -> Fault | None:
    """The fault in a JSON value; None where it has no top-level `error`, or is a Responses object, which owns one."""
    if isinstance(value, list):
        value = value[0] if value else None
    if not isinstance(value, dict) or value.get("object") == "response":
        return None
    error = value.get("error")
    if error is None:
        return None
    if not isinstance(error, dict):
        return Fault((), None, str(error), None)
    details = [each for each in _list(error.get("details")) if isinstance(each, dict)]
    named = [error.get("code"), error.get("type"), error.get("status")]
    named += [each.get("reason") for each in details]
    extra = error.get("details")
    if isinstance(extra, dict):
        named.append(extra.get("error_code"))  # Anthropic
    words = tuple(word.lower() for word in named if isinstance(word, str))
    delay = next((wait for each in details if (wait := _delay(each.get("retryDelay"))) is not None), None)
    return Fault(words, _status(named), str(error.get("message") or ""), delay)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _status(named: list[object]) -> int | None:
    for value in named:
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
            return value
    return None


def _delay(value: object) -> float | None:
    """Google's RetryInfo: `"37s"` or `"1.5s"`."""
    if not isinstance(value, str) or not value.endswith("s"):
        return None
    try:
        seconds = float(value[:-1])
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
