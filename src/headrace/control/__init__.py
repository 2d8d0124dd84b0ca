"""The control process: what the gateway knows beside the line.

It reads the file, gives workers their snapshot, and takes their records. The line never waits for it.
"""
