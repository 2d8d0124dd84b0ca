"""What a reply means for its exchange: relay it, relay it as the client's fault, or try the next candidate.

    2xx of the asked kind ──────────────────────────────────────────▶ RELAY
    400, 404, 409, 413, 422 and other 4xx ──────────────────────────▶ RELAY_FAULT; about a model or our key: TRY_NEXT
    401, 402, 403, 408, 429, 5xx; 3xx; 2xx that was not asked for ──▶ TRY_NEXT, with the problem that stands for it

Pure: the time is an argument.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from headrace.model.problem import Kind, Problem, Source
from headrace.model.request import ReplyHead
from headrace.model.wire import Asked
from headrace.upstream.fault import Fault, fault_from_body
from headrace.upstream.recovery import retry_after_s

MOST_RETRY_AFTER_S = 60.0
"""Anthropic's SDKs wait out any Retry-After, OpenAI's give up above it."""

_EVENT_STREAM = "text/event-stream"
_TIMED_OUT = frozenset((408, 504, 524))
_OVERLOADED = 529


class Advice(Enum):
    """What to do with a reply."""

    RELAY = "relay"
    """A good reply of the asked kind."""
    RELAY_FAULT = "relay_fault"
    """The client's own fault: relayed as it came, one call, no change of health."""
    TRY_NEXT = "try_next"
    """The attempt failed; another candidate may do better."""


class Effect(Enum):
    """What a reply means for the health of its (channel, credential, model)."""

    NONE = "none"
    """Nothing: 403, and every fault of the client."""
    SUCCESS = "success"
    FAILURE = "failure"
    """Counts against the breaker."""
    COOL_MODEL = "cool_model"
    """429, 529: (credential, model) rests."""
    COOL_CREDENTIAL = "cool_credential"
    """A 429 that names the account: the whole credential rests."""
    DISABLE = "disable"
    """401, 402, an invalid key: the credential is off until a probe works."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The meaning of one reply.

    `problem` is set with TRY_NEXT only: what the client hears if this was the last attempt. `as_stream`: a RELAY whose
    body is events. `retry_after_s` is what the upstream asked for, uncapped; None where it did not.
    """

    advice: Advice
    effect: Effect = Effect.NONE
    problem: Problem | None = None
    as_stream: bool = False
    retry_after_s: float | None = None

    @property
    def rate_limited(self) -> bool:
        """Whether the upstream said that it is asked too often."""
        return self.problem is not None and self.problem.kind is Kind.UPSTREAM_RATE_LIMITED

    @property
    def word(self) -> str:
        """The entry's word: the problem's kind, or the advice."""
        return self.problem.kind.value if self.problem is not None else self.advice.value


def needs_body(head: ReplyHead, asked: Asked) -> bool:
    """Whether `classify` must see the body (its first 64 KiB, or all of it if shorter) to judge this reply."""
    if not 200 <= head.status < 300:
        return head.status >= 400
    if asked is Asked.ARRAY:
        return False
    if asked in (Asked.EVENTS, Asked.ANYTHING):
        return _is_json(head.media_type)
    return head.media_type != _EVENT_STREAM


def classify(
    head: ReplyHead,
    body: bytes,
    asked: Asked,
    now: float,
    *,
    whole: bool = True,
    opened: bool = False,
    reading: Problem | None = None,
) -> Verdict:
    """The verdict on a reply.

    `body`: decoded, as far as it came, at most 64 KiB; `whole`: that is all of it. `opened`: the client has been sent
    an event stream's head already (early open). `reading`: what the protocol's `classify_fault` made of the body; its
    kind decides (model_not_found, invalid_api_key), and for a 200 that holds an error it is the problem. `now`: seconds
    since the epoch, for dates in headers.
    """
    if head.status < 200 or 300 <= head.status < 400:
        # A redirect is never followed: it would carry the credential elsewhere, and its Location may hold a key.
        return _bad_reply(f"status {head.status}")
    if head.status < 300:
        return _classify_good(head, body, asked, whole=whole, opened=opened, reading=reading)
    fault = fault_from_body(body) if whole else None
    wait = retry_after_s(head, now)
    if wait is None and fault is not None:
        wait = fault.retry_delay_s
    return _classify_error(head.status, fault, wait, reading)


# --------------------------------------------------------------------------------------------------------------- errors


def _classify_error(status: int, fault: Fault | None, wait: float | None, reading: Problem | None) -> Verdict:
    detail = f"status {status}" + (f" {fault.summary}" if fault and fault.words else "")
    kind = reading.kind if reading is not None else None
    bad_key = kind is Kind.INVALID_API_KEY or (fault is not None and fault.names_bad_key)
    if status in (401, 402) or (status == 400 and bad_key):
        return _try_next(Kind.UPSTREAM_ERROR, Effect.DISABLE, detail, wait)
    if status == 403:
        return _try_next(Kind.UPSTREAM_ERROR, Effect.NONE, detail, wait)
    if status == 404 and (kind is Kind.MODEL_NOT_FOUND or (fault is not None and fault.names_model)):
        return _try_next(Kind.UPSTREAM_ERROR, Effect.NONE, detail, wait)
    if status == 429:
        account = fault is not None and fault.names_account
        effect = Effect.COOL_CREDENTIAL if account else Effect.COOL_MODEL
        return _try_next(Kind.UPSTREAM_RATE_LIMITED, effect, detail, wait)
    if status in _TIMED_OUT:
        return _try_next(Kind.UPSTREAM_TIMEOUT, Effect.FAILURE, detail, wait)
    if status == _OVERLOADED:
        verdict = _try_next(Kind.UPSTREAM_ERROR, Effect.COOL_MODEL, detail, wait)
        return replace(verdict, problem=replace(_of(verdict), status=_OVERLOADED))
    if status >= 500:
        return _try_next(Kind.UPSTREAM_ERROR, Effect.FAILURE, detail, wait)
    return Verdict(Advice.RELAY_FAULT, retry_after_s=wait)


_MESSAGES = {
    Kind.UPSTREAM_RATE_LIMITED: "Every channel of the model is rate limited; wait for Retry-After, then try again.",
    Kind.UPSTREAM_TIMEOUT: "The upstream did not answer in time; try again.",
    Kind.UPSTREAM_BAD_REPLY: "The upstream answered with something that was not asked for; try again.",
    Kind.UPSTREAM_ERROR: "The upstream failed; try again.",
}


def _try_next(kind: Kind, effect: Effect, detail: str, wait: float | None = None) -> Verdict:
    problem = Problem(kind, _MESSAGES[kind], retry_after_s=wait, detail=detail)
    return Verdict(Advice.TRY_NEXT, effect, problem, retry_after_s=wait)


def _bad_reply(detail: str) -> Verdict:
    return _try_next(Kind.UPSTREAM_BAD_REPLY, Effect.FAILURE, detail)


def _of(verdict: Verdict) -> Problem:
    assert verdict.problem is not None
    return verdict.problem


# ------------------------------------------------------------------------------------------------------------------ 2xx


def _classify_good(
    head: ReplyHead, body: bytes, asked: Asked, *, whole: bool, opened: bool, reading: Problem | None
) -> Verdict:
    media = head.media_type
    stream = Verdict(Advice.RELAY, Effect.SUCCESS, as_stream=True)
    if asked is Asked.ANYTHING and not _is_json(media):
        if whole and not body and head.status == 200:
            return _bad_reply("status 200 with an empty body")
        return replace(stream, as_stream=media == _EVENT_STREAM)
    if asked is Asked.EVENTS and media in ("", _EVENT_STREAM):
        return stream
    if media == _EVENT_STREAM:
        return _bad_reply("an event stream that was not asked for")
    if asked is Asked.ARRAY:
        return stream if not media or _is_json(media) else _bad_reply(f"{media} in place of a JSON array")
    if asked is Asked.EVENTS and (opened or not _is_json(media)):
        return _bad_reply(f"{media} in place of an event stream")
    return _classify_json(head, body, whole=whole, reading=reading)


def _classify_json(head: ReplyHead, body: bytes, *, whole: bool, reading: Problem | None) -> Verdict:
    good = Verdict(Advice.RELAY, Effect.SUCCESS)
    if whole and not body.strip():
        return _bad_reply(f"status {head.status} with an empty body")
    if head.header(b"content-encoding") not in (None, b"identity"):
        return good  # passes raw; there is nothing to read here
    media = head.media_type
    if not _is_json(media) and (media.endswith("html") or not body.lstrip().startswith((b"{", b"["))):
        return _bad_reply(f"{media or 'a body without a type'} in place of JSON")
    fault = fault_from_body(body) if whole and body.lstrip().startswith(b"{") else None
    return good if fault is None else _error_in_good(fault, reading)


def _error_in_good(fault: Fault, reading: Problem | None) -> Verdict:
    """A 200 that holds an error: as if its code had been the status, but always worth a second opinion."""
    status = fault.status or next((_STATUS_BY_WORD[word] for word in fault.words if word in _STATUS_BY_WORD), 500)
    verdict = _classify_error(status, fault, fault.retry_delay_s, None)
    if verdict.advice is not Advice.TRY_NEXT:
        verdict = _try_next(Kind.UPSTREAM_ERROR, Effect.NONE, f"status {status} {fault.summary}".rstrip())
    problem = reading or _of(verdict)
    return replace(verdict, problem=replace(problem, detail=f"200 that holds an error: {_of(verdict).detail}"))


_STATUS_BY_WORD = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "resource_exhausted": 429,
    "insufficient_quota": 402,
    "billing_error": 402,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "unauthenticated": 401,
    "permission_error": 403,
    "permission_denied": 403,
    "overloaded_error": 529,
    "server_is_overloaded": 503,
    "slow_down": 503,
    "unavailable": 503,
    "timeout_error": 504,
    "deadline_exceeded": 504,
    "invalid_request_error": 400,
    "invalid_argument": 400,
    "invalid_prompt": 400,
    "not_found_error": 404,
}
"""The words of published error objects whose HTTP status is known."""


def _is_json(media: str) -> bool:
    return media == "application/json" or media.endswith("+json")


# ----------------------------------------------------------------------------------------------------- the final answer


def final_problem(failures: Sequence[Problem], cooling_s: float | None = None) -> Problem:
    """What the client hears when no candidate is left.

    `failures`: each attempt's problem in order, and one channels_busy (or overloaded) for each candidate that our own
    limits kept out. `cooling_s`: seconds until the earliest recovery among the usable candidates that were passed over
    because they cool down; None if there were none.

    A client's fault of the last attempt stands; else 429 with the earliest recovery if every usable candidate was rate
    limited or cooling; else 503 if our own capacity refused any; else 504 if any timed out; else the last problem: 502,
    or the status that it carries itself (529, or a first event's). Retry-After is at most 60 s; a 429 always has
    one, 60 s where no upstream named any.
    """
    last = failures[-1] if failures else None
    if last is not None and _is_clients(last):
        return last
    limited = [each for each in failures if each.kind is Kind.UPSTREAM_RATE_LIMITED]
    if len(limited) == len(failures) and (limited or cooling_s is not None):
        waits = [each.retry_after_s for each in limited if each.retry_after_s is not None]
        waits += [] if cooling_s is None else [cooling_s]
        return _capped(
            Problem(
                Kind.UPSTREAM_RATE_LIMITED,
                _MESSAGES[Kind.UPSTREAM_RATE_LIMITED],
                retry_after_s=min(waits, default=MOST_RETRY_AFTER_S),
                detail=last.detail if last is not None else "every candidate cools down",
            )
        )
    if last is None:
        return Problem(Kind.NO_CHANNEL_AVAILABLE, "No channel of the model can take the request now; try again later.")
    for kinds in ((Kind.CHANNELS_BUSY, Kind.OVERLOADED), (Kind.UPSTREAM_TIMEOUT, Kind.UPSTREAM_STALLED)):
        for each in reversed(failures):
            if each.kind in kinds:
                return _capped(each)
    if last.kind is Kind.UPSTREAM_RATE_LIMITED:
        # Others failed otherwise, so "wait" would be the wrong advice: the first of those stands.
        last = next(each for each in reversed(failures) if each.kind is not Kind.UPSTREAM_RATE_LIMITED)
    return _capped(last)


def _is_clients(problem: Problem) -> bool:
    return problem.fault is Source.CLIENT or problem.kind is Kind.BAD_REQUEST


def _capped(problem: Problem) -> Problem:
    wait = problem.retry_after_s
    return problem if wait is None or wait <= MOST_RETRY_AFTER_S else replace(problem, retry_after_s=MOST_RETRY_AFTER_S)
