"""The parent of all processes of a gateway: owns the sockets, starts the children, follows those that die.

It knows nothing of what they do: settings and paths come from `cli.serve`, messages are the link's. `seat` says what is
to be done, `crew` does it for one seat, `supervisor` puts the seats together.
"""
