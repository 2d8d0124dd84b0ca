"""What all exchanges of a worker share: the stages that the worker has made, and where faults are told."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from headrace.journal.checkpoints import Checkpoints
from headrace.journal.writer import Writer
from headrace.metering.lessons import Lessons
from headrace.model.allowance import Counters
from headrace.model.settings import Settings
from headrace.relay.share import Share
from headrace.upstream.attempt import Upstream


@dataclass(frozen=True, slots=True)
class Stages:
    """What all exchanges of a worker share."""

    loop: asyncio.AbstractEventLoop
    settings: Settings
    share: Share
    upstream: Upstream
    journal: Writer
    checkpoints: Checkpoints
    counters: Counters
    lessons: Lessons
    report: Callable[[str], None]
    """Says a line to the operator: faults of our own."""
