"""A caller who speaks, over voice detection, recognition, the session and the embedded service, all of them real.

What is recognised varies with the machine's speed, so these tests ask for key words alone.
"""

from __future__ import annotations

import wave

import pytest
from livekit.agents import llm

from tests.e2e_voice.play import MENU, SCRIPT, Played

# All of them wait for the calls, which take a minute on an idle machine.
pytestmark = pytest.mark.timeout(480)


def test_what_was_said_in_the_first_call_answers_a_question_in_the_second(played: Played) -> None:
    """A caller who rings back is remembered, by what was recognised of them."""
    where, _ = played.answers
    assert SCRIPT.city in where


def test_a_caller_who_hangs_up_in_mid_sentence_is_remembered_too(played: Played) -> None:
    """README: what is left is stored when the session closes, with the unfinished sentence."""
    last = played.documents[0].splitlines()[-1]
    assert "Caller:" in last
    assert SCRIPT.instrument in last
    assert "Friday" not in played.documents[0]
    assert SCRIPT.instrument in played.answers[1]


def test_a_voice_in_a_reply_cuts_it_off_and_it_is_stored_as_far_as_it_was_heard(played: Played) -> None:
    """Design 108: interrupted replies as far as they were spoken, and marked so."""
    (cut,) = [message for message in played.second.messages if message.interrupted]
    heard = cut.text_content or ""
    assert heard.startswith("Today")
    assert MENU.startswith(heard)
    assert heard != MENU
    (stored,) = [line for line in played.documents[1].splitlines() if "(interrupted)" in line]
    assert heard in stored


def test_the_turn_that_interrupted_is_answered(played: Played) -> None:
    """The words of a caller who cuts in are a turn like any other."""
    turns = [message for message in played.second.messages if message.role == "user"]
    assert "live" in (turns[1].text_content or "")


def test_words_are_there_before_the_caller_has_ended(played: Played) -> None:
    """Recognition runs again and again over what was said so far."""
    final = {message.text_content for message in played.second.messages if message.role == "user"}
    interim = [words for words in played.second.heard.interim if words not in final]
    assert any("thinking" in words for words in interim)


def test_the_service_is_searched_while_the_caller_still_speaks(played: Played) -> None:
    """Decision 9: a reply need not wait for a search that can begin before the last word."""
    assert set(played.searches) & set(played.second.heard.interim)


def test_each_turn_is_stored_once_and_under_who_spoke(played: Played) -> None:
    """Decision 5: every turn is written once, in order."""
    for call, document in zip((played.first, played.second), played.documents, strict=True):
        lines = [line.partition("] ")[2] for line in document.splitlines()]
        assert lines == [_line(message) for message in call.messages]


def test_both_voices_are_in_the_recording(played: Played) -> None:
    """The lane leaves a WAV of each call, the caller on the left and the agent on the right."""
    for recording in played.recordings:
        with wave.open(str(recording), "rb") as file:
            assert file.getnchannels() == 2
            sound = memoryview(file.readframes(file.getnframes())).cast("h")
        for channel in (sound[0::2], sound[1::2]):
            assert max(channel) > 1_000


def _line(message: llm.ChatMessage) -> str:
    who = "Caller" if message.role == "user" else "Agent (interrupted)" if message.interrupted else "Agent"
    return f"{who}: {message.text_content}"
