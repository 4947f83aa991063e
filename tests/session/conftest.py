"""Sessions run in virtual time."""

from __future__ import annotations

import pytest

from tests.support.clock import VirtualClock


@pytest.fixture(autouse=True)
def _virtual(clock: VirtualClock) -> VirtualClock:
    return clock
