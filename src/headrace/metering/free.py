"""What costs nothing anywhere."""

FREE = frozenset(("messages.count_tokens", "responses.input_tokens", "gemini.count_tokens"))
"""Operations that count tokens, and generate none."""
