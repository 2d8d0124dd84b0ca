"""A paired load run: every gateway does the same work as nginx, on the same machine, in the same run.

```
runner (__main__, rounds) ── starts and ends every process, by pid
   │
   ├─ upstream     answers as each provider does; stamps each event with the monotonic clock
   ├─ gateways     nginx │ headrace │ minimal          (gateway: how one is started, and which pids are which)
   └─ client       one process per round: streams │ short │ idle; reads the gateway's CPU clocks itself
```
Units are in the names: `_ns`, `_us`, `_ms`, `_s`, `_bytes`. Each process is a module that can be started by hand.
"""
