"""InputParams: what is accepted, and what a developer is told about what is not."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from supermemory_livekit.errors import ConfigurationError
from supermemory_livekit.params import InputParams

DEFAULTS: dict[str, Any] = {
    "mode": "full",
    "search_limit": 10,
    "search_threshold": 0.1,
    "recall_timeout": 2.0,
    "capture": "always",
    "capture_dreaming": "instant",
    "mirror": True,
    "spool_dir": None,
    "redact": None,
    "off_the_record_tools": False,
    "anonymous": "nothing",
    "follow": False,
}


def refusal(**given: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        InputParams(**given)
    return str(caught.value)


def test_the_defaults_are_those_of_the_specification() -> None:
    """Specification, table of parameters; Design 2 for `capture_dreaming`."""
    assert InputParams().model_dump() == DEFAULTS


@pytest.mark.parametrize(
    ("field", "value", "takes"),
    [
        ("mode", "Full", 'one of "profile", "query", "full"'),
        ("mode", None, 'one of "profile", "query", "full"'),
        ("search_limit", 0, "a whole number from 1 up to 100"),
        ("search_limit", -1, "a whole number from 1 up to 100"),
        ("search_limit", 1000, "a whole number from 1 up to 100"),
        ("search_limit", 10.0, "a whole number from 1 up to 100"),
        ("search_limit", True, "a whole number from 1 up to 100"),
        ("search_threshold", 1.5, "a number from 0 up to 1"),
        ("search_threshold", -0.1, "a number from 0 up to 1"),
        ("search_threshold", True, "a number from 0 up to 1"),
        ("search_threshold", math.nan, "a number from 0 up to 1"),
        ("recall_timeout", 0, "a number above 0 up to 60"),
        ("recall_timeout", None, "a number above 0 up to 60"),
        ("recall_timeout", math.inf, "a number above 0 up to 60"),
        ("recall_timeout", 61, "a number above 0 up to 60"),
        ("recall_timeout", "2", "a number above 0 up to 60"),
        ("recall_timeout", True, "a number above 0 up to 60"),
        ("capture", True, 'one of "always", "consent", "never"'),
        ("redact", "phone", "a function or None"),
        ("anonymous", True, 'one of "nothing", "call"'),
        ("follow", "yes", "True or False"),
        ("capture_dreaming", "Instant", 'one of "instant", "dynamic"'),
    ],
)
def test_a_wrong_value_is_refused_with_the_field_and_what_it_takes(
    field: str, value: Any, takes: str
) -> None:
    """Case P5."""
    message = refusal(**{field: value})
    assert message.startswith(f"{field} takes {takes}, not ")


@pytest.mark.parametrize(
    ("value", "shown"), [("Full", "'Full' (str)"), (3, "3 (int)"), (None, "None"), ([1], "list")]
)
def test_a_refusal_shows_what_was_given(value: Any, shown: str) -> None:
    """Case P5: the error says what is wrong with the value."""
    assert f"not {shown}" in refusal(mode=value)


def test_a_slip_in_a_value_or_a_name_is_answered_with_what_was_meant() -> None:
    """Case P5: the error names what the field takes."""
    assert 'did you mean "full"?' in refusal(mode="Full")
    assert 'did you mean "search_limit"?' in refusal(serach_limit=5)
    assert "did you mean" not in refusal(colour=5)


def test_an_unknown_key_is_named_and_its_value_kept_out_of_the_message() -> None:
    """Case P5 and P2: a key passed to the wrong object must not reach a log."""
    message = refusal(api_key="sm_secret")
    assert "'api_key'" in message
    assert "sm_secret" not in message


def test_every_wrong_field_is_named_at_once() -> None:
    """Design 1: params are validated once."""
    message = refusal(mode="none", search_limit=0, colour=1)
    assert all(name in message for name in ("mode", "search_limit", "colour"))


def test_a_wrong_value_is_no_error_of_pydantic() -> None:
    """Design 6: wrong set-up is a ConfigurationError, with no other exception shown around it."""
    with pytest.raises(ConfigurationError) as caught:
        InputParams.model_validate({"search_limit": 0})
    assert not isinstance(caught.value, ValueError)
    assert caught.value.__suppress_context__
    with pytest.raises(ConfigurationError, match="keyword arguments, not int"):
        InputParams.model_validate(3)


@pytest.mark.parametrize("seconds", [1, 60, 0.05])
def test_a_budget_may_be_given_in_whole_seconds(seconds: float) -> None:
    """Specification: seconds to wait before skipping recall."""
    assert InputParams(recall_timeout=seconds).recall_timeout == seconds


def test_params_do_not_change_once_they_are_made() -> None:
    """Design 1: frozen."""
    params = InputParams()
    with pytest.raises(ValidationError, match="frozen"):
        params.mode = "query"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    assert params == InputParams()
    assert hash(params) == hash(InputParams())


def test_params_are_given_by_keyword() -> None:
    """Design 1: keyword-only."""
    with pytest.raises(TypeError):
        InputParams("full")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def test_a_changed_copy_is_checked_like_a_new_one() -> None:
    """Case P5: no way past the check."""
    assert InputParams().model_copy(update={"mode": "query"}) == InputParams(mode="query")
    assert InputParams(mode="query").model_copy() == InputParams(mode="query")
    with pytest.raises(ConfigurationError, match="search_limit"):
        InputParams().model_copy(update={"search_limit": 0})


def test_each_field_says_what_it_is() -> None:
    """Style 5: a docstring under each field."""
    assert set(InputParams.model_fields) == set(DEFAULTS)
    assert all(field.description for field in InputParams.model_fields.values())


anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.lists(st.integers(), max_size=2),
)


@given(st.sampled_from(sorted(DEFAULTS)), anything)
def test_any_value_is_kept_as_given_or_refused_by_name(field: str, value: Any) -> None:
    """Case P5, for values nobody thought of."""
    try:
        kept = getattr(InputParams(**{field: value}), field)
    except ConfigurationError as error:
        refused = str(error)
    else:
        assert kept == value
        assert isinstance(value, bool) == isinstance(DEFAULTS[field], bool)
        return
    assert refused.startswith(f"{field} takes ")
