"""Stage 4: one upstream request, from a connection to a reply's head or a failure."""
