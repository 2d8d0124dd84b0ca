"""What survives the processes: the ledger, what budgets count, and the declared objects, in SQLite or PostgreSQL.

    database ──▶ migration                 one connection pool; brings the tables to this version, under a lock
       ▲
    ledger ──▶ changes, rows, schema       journal records in, each exactly once
       ├── spending                        with them: what budgets count, and the answer how much that is
       └── lines ◀── amend, usage          entries out, as they count; rated again; added up
    objects                                channels, models, keys and owners that are not in the file
       ▲
    lookup, clerk ◀── errands              what other processes ask, and are told, by `python -m headrace.state`

No other package knows a database. Only values of `model` and of `errors`, and what these modules ask and answer with,
cross the border.
"""
