"""Stage 5: moves a reply's events to the client and ends the stream honestly."""
