"""Dates that are named in a question."""

from __future__ import annotations

from datetime import date

import pytest

from supermemory_livekit.retrieval.dates import Period, periods


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("What did I order on 3 June, 2023?", Period(2023, 6, 3)),
        ("What did I order on June 3rd?", Period(None, 6, 3)),
        ("on the 3rd of July 2024", Period(2024, 7, 3)),
        ("in May 2023", Period(2023, 5)),
        ("in May 3", Period(None, 5, 3)),
        ("since June", Period(None, 6)),
        ("in 2022", Period(2022)),
        ("2026-11-30", Period(2026, 11, 30)),
        ("Was habe ich am 3. März 2023 bestellt?", Period(2023, 3, 3)),
        ("el 3 de mayo de 2023", Period(2023, 5, 3)),
        ("le 1er août", Period(None, 8, 1)),
        ("em março de 2025", Period(2025, 3)),
        ("2023年5月3日", Period(2023, 5, 3)),
        ("5월에", Period(None, 5)),
    ],
)
def test_a_date_is_read_in_the_ways_callers_name_it(text: str, named: Period) -> None:
    """Decision 0013: a question that names a date asks for what was said then."""
    assert periods(text) == [named]


@pytest.mark.parametrize(
    "text", ["I may march on", "room 2022", "on 99 May", "2023-13-01", "", "may I have 3", "0000-01-01"]
)
def test_what_is_no_date_is_none(text: str) -> None:
    """A month's name or a number alone is often another word."""
    assert periods(text) == []


def test_a_period_without_its_year_lies_in_each() -> None:
    """A caller says "on June 3" of the call before last."""
    assert Period(None, 6, 3).spans(2022, 2023) == [
        (day.toordinal(), day.toordinal()) for day in (date(2022, 6, 3), date(2023, 6, 3))
    ]
    assert Period(None, 2).spans(2024, 2024) == [
        (date(2024, 2, 1).toordinal(), date(2024, 2, 29).toordinal())
    ]
    assert Period(2023).spans(2020, 2020) == [(date(2023, 1, 1).toordinal(), date(2023, 12, 31).toordinal())]
    assert Period(None, 2, 29).spans(2023, 2023) == []


def test_two_periods_agree_when_nothing_named_differs() -> None:
    """A turn about the date that is asked for is found, whenever it was said."""
    assert Period(2023, 6, 3).agrees(Period(None, 6, 3))
    assert Period(2023, 6).agrees(Period(2023, 6, 3))
    assert not Period(2023, 6, 4).agrees(Period(None, 6, 3))
