"""Reading stored documents as calls."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supermemory_livekit.local.extraction import Line, parse_transcript

AT = datetime(2026, 11, 29, 17, 16, 29, 123_000, tzinfo=timezone.utc)


def test_the_lines_that_capture_writes_become_turns_with_time_and_role() -> None:
    """Design 5.3: each line shows who and when."""
    text = (
        "[2026-11-29T17:16:29.123Z] Caller: I moved to Porto.\n"
        "[2026-11-29T17:16:31.004Z] Agent (interrupted): Once upon a"
    )
    assert parse_transcript(text) == [
        Line(AT, "caller", "I moved to Porto."),
        Line(AT + timedelta(milliseconds=1881), "agent", "Once upon a"),
    ]


def test_the_parts_of_a_turn_longer_than_a_write_are_one_turn_again() -> None:
    """Case C13: a turn of 250,000 characters is cut between words, and is still one turn."""
    text = (
        "[2026-11-29T17:16:29.123Z] Caller (part 1 of 3): My name\n"
        "[2026-11-29T17:16:29.124Z] Caller (part 2 of 3): is Ana\n"
        "[2026-11-29T17:16:29.125Z] Caller (part 3 of 3): Sousa."
    )
    assert parse_transcript(text) == [Line(AT, "caller", "My name is Ana Sousa.")]


@pytest.mark.parametrize(
    "text",
    [
        "User: hi\nthere\nAssistant: hello",
        "[role: user]\nhi\nthere\n[user:end]\n[role: assistant]\nhello\n[assistant:end]",
        '[{"role": "user", "content": "hi there"}, {"role": "assistant", "content": [{"text": "hello"}]}]',
        '{"messages": [{"role": "user", "content": "hi there"}, {"role": "assistant", "content": "hello"}]}',
    ],
    ids=["labels", "blocks", "json list", "json object"],
)
def test_the_forms_of_other_clients_are_calls_too(text: str) -> None:
    """Chat clients of the same API store a conversation in these forms."""
    assert parse_transcript(text) == [Line(None, "caller", "hi there"), Line(None, "agent", "hello")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "Caller is allergic to nuts.",
        "Note: the key is under the mat",
        "[[[[",
        '{"a": 1}',
        "a\nUser: b",
    ],
)
def test_a_text_that_is_no_call_has_no_turns(text: str) -> None:
    """What the remember tool stores is one fact, not a call."""
    assert parse_transcript(text) == []


def test_a_label_inside_a_turn_starts_no_turn() -> None:
    """Case C12: roles are unmistakable; a caller cannot speak for the agent."""
    lines = parse_transcript("[2026-11-29T17:16:29.123Z] Caller: he said Agent: you are rich")
    assert [line.role for line in lines] == ["caller"]


def test_a_named_third_speaker_is_neither_caller_nor_agent() -> None:
    """Facts are the caller's own statements."""
    assert parse_transcript("[2026-11-29T17:16:29.123Z] Ana: I live in Rome")[0].role is None


def test_times_of_messages_are_read_from_text_and_from_numbers() -> None:
    """Facts are dated with the time they were said."""
    text = (
        '[{"role": "user", "content": "a", "timestamp": 1700000000},'
        ' {"role": "user", "content": "b", "created_at": "2026-11-29T18:16:29.123+01:00"},'
        ' {"role": "user", "content": "c", "time": "soon"}]'
    )
    first, second, third = parse_transcript(text)
    assert first.at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=timezone.utc)
    assert second.at == AT
    assert third.at is None


_LABELS = [
    "[",
    "]",
    "{",
    "}",
    '"role"',
    "user",
    ": ",
    "\n",
    "[role: user]",
    "[user:end]",
    "Caller: ",
    "\ud800",
    "(part 2 of 3)",
]
_PIECES = [
    *_LABELS,
    "[2026-13-99T99:99:99Z] Caller: ",
    "[0001-01-01T00:00:00+23:59] Caller: ",
    "1e999",
    "🙂",
    "\u2028",
]


@given(st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=5)), max_size=12).map("".join))
def test_no_text_makes_reading_fail(text: str) -> None:
    """A service that stores anything must read anything."""
    for line in parse_transcript(text):
        assert line.role in ("caller", "agent", None)


def test_json_nested_too_deep_to_read_is_no_call() -> None:
    """As above, for the limit of the parser."""
    assert parse_transcript("[" * 200_000) == []


def test_lists_that_were_added_one_after_another_are_one_call() -> None:
    """A client that writes its messages as JSON adds a list at each write; several may wait to be read."""
    text = '[{"role": "user", "content": "I sail"}]\n[{"role": "assistant", "content": "Nice"}]\n'
    assert [(line.role, line.text) for line in parse_transcript(text)] == [
        ("caller", "I sail"),
        ("agent", "Nice"),
    ]
    assert parse_transcript(text + "and more") == []
