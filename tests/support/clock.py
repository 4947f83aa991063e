"""Event loops with a clock of their own, beside those that pytest runs."""

from __future__ import annotations

import asyncio

from supermemory_livekit.testing import VirtualClock
from supermemory_livekit.testing.clock import ControlledTime

__all__ = ["VirtualClock", "VirtualLoop"]


class VirtualLoop(asyncio.SelectorEventLoop):
    """A normal event loop until its `clock` is started."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ControlledTime(self).clock
