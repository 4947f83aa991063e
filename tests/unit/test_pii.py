"""The ready-made redactor over the real Presidio."""

from __future__ import annotations

import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any, NoReturn

import pytest

from supermemory_livekit import ConfigurationError
from supermemory_livekit.pii import PiiRedactor

needs_presidio = pytest.mark.skipif(find_spec("presidio_analyzer") is None, reason="needs the extra [redact]")


@pytest.fixture(scope="module")
def redact() -> PiiRedactor:
    return PiiRedactor(regions=["US", "PT"])


@needs_presidio
@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Call me at 415 555 2671.", "Call me at [phone number]."),
        ("It is 912 345 678, in Porto", "It is [phone number], in Porto"),
        ("My number is +49 30 901820 now", "My number is [phone number] now"),
        ("The card is 4111 1111 1111 1111, ok?", "The card is [card number], ok?"),
        ("IBAN DE89 3704 0044 0532 0130 00", "IBAN [IBAN]"),
        ("Write to ana.costa@example.com please", "Write to [e-mail address] please"),
        ("It says 192.168.1.77", "It says [IP address]"),
        ("SSN 536-90-4399", "SSN [social security number]"),
        ("Both: 415 555 2671 and ana@example.com", "Both: [phone number] and [e-mail address]"),
    ],
)
def test_numbers_and_addresses_that_name_a_person_are_replaced(
    redact: PiiRedactor, text: str, redacted: str
) -> None:
    """Issue: a ready-made redactor built on a well-kept PII library."""
    assert redact(text) == redacted


@needs_presidio
@pytest.mark.parametrize(
    "text",
    [
        "",
        "I moved to Porto last week.",
        "A table for 4 at 19:30 on 2026-05-12, for 2 hours.",
        "Order 4111 1111 1111 1112 is not a card: its check digit is wrong.",
        "Ana has 3 cats and pays 1250 a month.",
        "The code is 536904399.",  # might be a social security number, as any nine digits might
    ],
)
def test_what_names_nobody_is_left_as_it_is(redact: PiiRedactor, text: str) -> None:
    """Decision 19: a memory without dates and prices is none."""
    assert redact(text) == text


@needs_presidio
def test_nothing_is_asked_of_the_network(redact: PiiRedactor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case P4: no request to any other host. Presidio's own recogniser of e-mail fetches a list of domains."""

    def connect(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", connect)
    monkeypatch.setattr(socket.socket, "connect", connect)
    # It keeps what it fetched once in a cache of its own.
    monkeypatch.setattr("tldextract.extract", connect)
    made = PiiRedactor(regions=["US"])
    assert made("ana@example.co.uk") == "[e-mail address]"


@needs_presidio
def test_calls_in_several_threads_share_one_redactor(redact: PiiRedactor) -> None:
    """Decision 19: one per process, and each call asks it in worker threads."""
    texts = [f"Number {n}: 415 555 26{n:02}" for n in range(40)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(redact, texts)) == [f"Number {n}: [phone number]" for n in range(40)]


@needs_presidio
def test_an_analyzer_of_the_developers_own_is_asked_as_well() -> None:
    """Decision 19: names need a language model, which is the developer's choice."""
    from presidio_analyzer import AnalyzerEngine, PatternRecognizer, RecognizerRegistry
    from presidio_analyzer.nlp_engine import NlpArtifacts, NlpEngine

    class NoModel(NlpEngine):
        def load(self) -> None: ...

        def is_loaded(self) -> bool:
            return True

        def process_text(self, text: str, language: str) -> NlpArtifacts:
            artifacts: Any = None
            return artifacts

        def process_batch(self, texts: Any, language: str, **_: Any) -> Any:
            return ((text, None) for text in texts)

        def is_stopword(self, word: str, language: str) -> bool:
            return False

        def is_punct(self, word: str, language: str) -> bool:
            return False

        def get_supported_entities(self) -> list[str]:
            return []

        def get_supported_languages(self) -> list[str]:
            return ["en"]

    names = PatternRecognizer(supported_entity="PERSON", deny_list=["Ana Costa"])
    registry = RecognizerRegistry(recognizers=[names])
    analyzer = AnalyzerEngine(registry=registry, nlp_engine=NoModel())
    redact = PiiRedactor(regions=["US"], analyzer=analyzer)
    assert redact("Ana Costa, 415 555 2671") == "[person], [phone number]"
    firms = PatternRecognizer(supported_entity="FIRM_NAME", deny_list=["Costa and Sons"])
    registry.add_recognizer(firms)
    assert redact("It is Ana Costa and Sons.") in ("It is [person].", "It is [firm name].")


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Design 6: wrong set-up is a ConfigurationError."""
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    with pytest.raises(ConfigurationError, match=r"\[redact\]"):
        PiiRedactor()
