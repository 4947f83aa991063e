"""Windows of text, times, and when two texts are one fact."""

from __future__ import annotations

from datetime import datetime, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supermemory_livekit.local.texts import (
    exact_form,
    iso,
    new_id,
    norm_form,
    opening_time,
    parse_time,
    to_ms,
    turns,
)

words = st.text(st.sampled_from("ab c.é\u200d"), max_size=60)
said = st.lists(st.tuples(st.sampled_from(["Caller", "Agent"]), words | st.just("w " * 1500)), max_size=12)


def transcript(said: list[tuple[str, str]]) -> str:
    return "\n".join(f"[2026-11-01T10:00:{n:02}.000Z] {who}: {text}" for n, (who, text) in enumerate(said))


def test_each_turn_of_a_call_is_a_piece() -> None:
    """Decision 0013: what is found is judged turn by turn, and joined again when it is shown."""
    content = transcript([("Caller", str(n)) for n in range(5)])
    assert [content[start:stop] for start, stop in turns(content)] == content.split("\n")


def test_a_text_that_is_no_conversation_is_cut_as_seldom_as_possible() -> None:
    """Only in a conversation does each line have somebody who says it."""
    content = "\n".join(f"{n} " + "word " * 100 for n in range(6))
    cut = list(turns(content))
    assert len(cut) == 3
    assert all(one[1] <= two[0] for one, two in pairwise(cut))


@given(said, words)
def test_pieces_cover_every_word_and_stay_small(call: list[tuple[str, str]], other: str) -> None:
    """Nothing that was said is left out of search, however long a turn is."""
    for content in (transcript(call), other, "w" * 5000):
        covered = [False] * len(content)
        for start, stop in turns(content):
            assert 0 < stop - start <= 1200
            covered[start:stop] = [True] * (stop - start)
        assert all(seen or character.isspace() for seen, character in zip(covered, content, strict=True))


@given(st.lists(said, min_size=1, max_size=5))
def test_cutting_what_was_added_gives_the_same_as_cutting_it_all(parts: list[list[tuple[str, str]]]) -> None:
    """A document grows with each reply: only its last piece is cut again."""
    content = ""
    cut: list[tuple[int, int]] = []
    for part in parts:
        content = f"{content}\n{transcript(part)}" if content else transcript(part)
        start = cut[-1][0] if cut else 0
        cut = [*cut[:-1], *turns(content, start)]
    assert cut == list(turns(content))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=timezone.utc)),
        ("2026-11-01T10:00:00Z", datetime(2026, 11, 1, 10, tzinfo=timezone.utc)),
        ("2026-11-01T10:00:00.5+02:00", datetime(2026, 11, 1, 8, 0, 0, 500_000, tzinfo=timezone.utc)),
        ("2026-11-01T10:00:00.123456789Z", datetime(2026, 11, 1, 10, 0, 0, 123_456, tzinfo=timezone.utc)),
        ("2026-11-01T10:00:00", datetime(2026, 11, 1, 10, tzinfo=timezone.utc)),
    ],
)
def test_times_are_read_in_the_forms_clients_send(text: str, moment: datetime) -> None:
    """API reference 1.0: ISO 8601; documentDate also YYYY-MM-DD. Same on Python 3.10."""
    assert parse_time(text) == moment


@pytest.mark.parametrize(
    "text", ["", "soon", "2026", "2026-13-01", "0001-01-01", "9999-12-31T23:59:59-14:00", "1e9"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    """Brief of the embedded service: no 5xx on any input."""
    with pytest.raises(ValueError):  # noqa: PT011 - which one does not matter
        parse_time(text)


@given(st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1), timezones=st.just(timezone.utc)))
def test_a_time_written_is_read_back(moment: datetime) -> None:
    """Milliseconds are kept."""
    assert to_ms(parse_time(iso(to_ms(moment)))) == to_ms(moment)


def test_the_opening_time_of_a_piece_is_its_first_stamp() -> None:
    """Transcript format: `[2026-11-29T17:16:29.123Z] Caller: …`."""
    assert opening_time("[2026-11-01T10:00:00.000Z] Caller: hi") == to_ms(datetime(2026, 11, 1, 10))
    assert opening_time("no stamp") is None
    assert opening_time("[2026-99-01T10:00:00.000Z] Caller: hi") is None


def test_texts_of_one_fact_have_one_norm() -> None:
    """Case R6: "Likes tea", "[2026-11-01] likes  tea", "LIKES TEA" are one; "Likes green tea" is another."""
    assert len({norm_form(text) for text in ("Likes tea", "[2026-11-01] likes  tea", "LIKES TEA.")}) == 1
    assert norm_form("Likes green tea") != norm_form("Likes tea")
    assert exact_form("Likes  tea") != exact_form("Likes tea")
    assert norm_form("...") != norm_form("")


def test_ids_have_the_length_of_the_contract() -> None:
    """API contract: 22 characters."""
    assert {len(new_id()) for _ in range(100)} == {22}
