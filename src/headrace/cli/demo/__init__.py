"""`headrace demo`: the gateway shown at work, without configuration, account or network, and checked while it is shown.

command ─▶ stage    simulated upstreams and a worker on free loopback ports
        ─▶ shows    what is asked, and what must come of it
        ─▶ client   HTTP/1.1 over a socket, of its own: what arrives, and when
           reading  how a protocol asks, and what its events say
        ─▶ proof    whether it came so
"""
