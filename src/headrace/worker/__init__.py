"""A worker: the line in one process. `worker` composes it, `process` runs it as the supervisor's child."""

from headrace.worker.worker import Worker, run

__all__ = ["Worker", "run"]
