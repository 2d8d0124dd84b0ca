"""What processes of one gateway say to each other: the messages, their framing, and the sealed snapshot."""
