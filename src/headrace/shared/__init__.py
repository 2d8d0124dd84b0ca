"""Rates, places and budgets of keys, owners and upstream credentials: in the worker's memory, or in Valkey.

account, purse   what is known of one subject, and of one budget in one window
tally            all of them in this process; gives and takes back without waiting
lines            who waits for room, first come, first served
memory           Counters of one worker: tally and lines
succession       a roll: what one worker has given counts in the tally of the next
valkey           Counters of many workers: scripts in Valkey, the tally beside them for the time that it is away
"""
