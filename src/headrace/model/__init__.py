"""The vocabulary that every stage of the line shares: plain values, no behaviour that needs I/O, a clock or
randomness."""
