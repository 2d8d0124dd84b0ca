"""What survives the processes: the ledger and the declared objects, in SQLite or PostgreSQL.

    database ──▶ migration        one connection pool; brings the tables to this version, under a lock
       ▲
    ledger ──▶ changes, schema     journal records in, each exactly once; entries out
    objects                       channels, models, keys and owners that are not in the file

No other package knows a database. Only values of `model` and of `errors` cross the border.
"""
