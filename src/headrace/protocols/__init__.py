"""The wire APIs: each reads a request, addresses an upstream, observes a response, and speaks of failure, in its own
form."""
