"""Stage 6: what was it? Usage and terminal state, read beside the relay."""
