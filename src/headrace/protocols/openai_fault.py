"""What OpenAI's error objects mean: the status that an in-stream error maps to, and which 404 is about the model."""

from headrace.model.problem import Problem
from headrace.protocols.fault import clean_text, problem_from_status

# Codes and types met in published error objects; a number is its own status. First match wins: code, then type.
_STATUS = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "tokens": 429,
    "requests": 429,
    "insufficient_quota": 402,
    "credit_balance_exhausted": 402,
    "billing_error": 402,
    "usage_not_included": 402,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "permission_error": 403,
    "model_not_found": 404,
    "server_error": 500,
    "internal_error": 500,
    "internal_server_error": 500,
    "api_error": 500,
    "server_is_overloaded": 503,
    "slow_down": 503,
    "overloaded_error": 529,
    "overloaded": 503,
    "service_unavailable": 503,
    "timeout": 504,
    "timeout_error": 504,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
    "content_filter": 400,
    "content_policy_violation": 400,
    "string_above_max_length": 400,
    # Responses only (openai-python 3.57.0, types/responses/response_error.py).
    "vector_store_timeout": 504,
    "previous_response_not_found": 400,
    "data_residency_mismatch": 400,
    "bio_policy": 400,
    "misalignment_policy_violation": 400,
    "invalid_image": 400,
    "invalid_image_format": 400,
    "invalid_base64_image": 400,
    "invalid_image_url": 400,
    "invalid_image_mode": 400,
    "image_too_large": 400,
    "image_too_small": 400,
    "image_parse_error": 400,
    "image_content_policy_violation": 400,
    "image_file_too_large": 400,
    "image_file_not_found": 400,
    "unsupported_image_media_type": 400,
    "empty_image_file": 400,
    "failed_to_download_image": 400,
}


def problem_from_error(error: object, fallback: int = 500) -> Problem:
    """The problem behind an OpenAI `error` member: an object {message, type, param, code}, or a bare text.

    Status 400 to 599 by code or type; where neither says anything `fallback`, the reply's own status if it is an error.
    """
    if not isinstance(error, dict):
        return problem_from_status(_error_status(fallback), "", clean_text(error))
    code = error.get("code")
    message = clean_text(error.get("message") or "")
    for word in (code, error.get("status"), error.get("type")):
        status = _status(word)
        if status is not None:
            return problem_from_status(status, clean_text(word), message)
    return problem_from_status(_error_status(fallback), clean_text(code or error.get("type") or ""), message)


def _error_status(status: int) -> int:
    return status if 400 <= status <= 599 else 500


def _status(word: object) -> int | None:
    if isinstance(word, str):
        known = _STATUS.get(word.lower())
        if known is not None:
            return known
        word = int(word) if word.isascii() and word.isdigit() and len(word) == 3 else None
    if isinstance(word, int) and not isinstance(word, bool) and 400 <= word <= 599:
        return word
    return None
