import logging

import pytest
from agent import PARAMS, answer
from watch import report

from supermemory_livekit import ServiceUnavailable, SupermemoryLiveKit
from supermemory_livekit.testing import Fail, ScriptedLLM, ScriptedStore, TextCaller, VirtualClock


@pytest.mark.parametrize(("broken", "level"), [(False, logging.INFO), (True, logging.WARNING)])
async def test_a_call_that_could_not_be_stored_is_a_warning_without_its_words(
    broken: bool,
    level: int,
    supermemory_clock: VirtualClock,
    supermemory_store: ScriptedStore,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    if broken:
        supermemory_store.breaks(Fail(ServiceUnavailable("the service answered 503", status=503)))
    memory = SupermemoryLiveKit.from_store(supermemory_store, container_tag="ana", params=PARAMS)

    async with TextCaller(lambda session: answer(session, memory), llm=ScriptedLLM("Gladly.")) as caller:
        await caller.says("A table by the window, please.")
    await report(memory)

    (line,) = [record for record in caplog.records if record.name == "restaurant"]
    assert line.levelno == level
    assert vars(line)["turns_captured"] == 2
    assert vars(line)["turns_unwritten"] == (2 if broken else 0)
    assert "window" not in caplog.text
