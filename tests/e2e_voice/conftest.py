"""The calls are made once: they take real time."""

from __future__ import annotations

import asyncio

import pytest

from supermemory_livekit.cli.demo.spoken.parts import how_to_install, missing_parts
from tests.e2e_voice.lane import Lane
from tests.e2e_voice.play import Played, play


@pytest.fixture(scope="session")
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Both calls, which are over."""
    lane = Lane.of(request.config)
    if lane is None:
        pytest.skip("calls with real audio, in real time: `make e2e-voice`")
    if missing := missing_parts():
        pytest.skip(how_to_install(missing))
    result = asyncio.run(play(tmp_path_factory.mktemp("calls")))
    lane.figures.update(result.figures())
    # shown beside a failure
    print(*result.documents, f"Searched in the second call: {result.searches}", sep="\n\n")
    print(f"Before the end: {result.first.heard.interim + result.second.heard.interim}")
    return result
