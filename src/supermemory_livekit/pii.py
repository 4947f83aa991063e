"""A ready-made redactor: numbers and addresses that name a person, by Presidio's patterns and check digits.

Needs the extra `[redact]`. Uses Presidio's recognisers without its language models and without its network access.
docs/decisions/0019-consent.md has why, and what it costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .errors import ConfigurationError

if TYPE_CHECKING:
    from presidio_analyzer import AnalyzerEngine, EntityRecognizer, RecognizerResult

__all__ = ["PiiRedactor"]

_SHOWN = {
    "CREDIT_CARD": "card number",
    "EMAIL_ADDRESS": "e-mail address",
    "IBAN_CODE": "IBAN",
    "IP_ADDRESS": "IP address",
    "PHONE_NUMBER": "phone number",
    "US_SSN": "social security number",
}

_LEAST_SCORE = 0.35
"""Presidio's least sure patterns, such as any nine digits for a social security number, are below it."""

_NO_MODEL: Any = None
"""What a language model would have made of the text. Recognisers of patterns do without."""

_REGIONS = ("US", "CA", "GB", "IE", "AU", "DE", "FR", "ES", "IT", "NL", "PT", "BR", "MX", "IN")


class PiiRedactor:
    """Puts `[phone number]` and the like in place of what names a person. For `InputParams(redact=…)`.

    Recognised are phone numbers, card numbers, IBANs, e-mail and IP addresses, and US social security numbers. Loading
    takes seconds: make one per process, in the worker's prewarm function, and give it to every call. May be used by
    several threads.

    Args:
        regions: Countries (ISO 3166, two letters) whose phone numbers are recognised without a country code too. Each
            costs time.
        analyzer: An `AnalyzerEngine` of your own, which is asked as well: for names and postal addresses it needs a
            language model.
        language: What to tell that analyzer.

    Raises:
        ConfigurationError: The extra is not installed.
    """

    def __init__(
        self,
        *,
        regions: Sequence[str] = _REGIONS,
        analyzer: AnalyzerEngine | None = None,
        language: str = "en",
    ) -> None:
        self._recognizers = _recognizers(regions)
        self._analyzer = analyzer
        self._language = language

    def __call__(self, text: str) -> str:
        """`text` with everything recognised replaced."""
        found = [
            result
            for recognizer in self._recognizers
            for result in recognizer.analyze(text, recognizer.supported_entities, _NO_MODEL)
        ]
        if self._analyzer is not None:
            found += self._analyzer.analyze(text, self._language)
        return _replaced(text, [result for result in found if result.score >= _LEAST_SCORE])


def _recognizers(regions: Sequence[str]) -> Sequence[EntityRecognizer]:
    try:
        import tldextract
        from presidio_analyzer import predefined_recognizers as predefined
    except ImportError:
        raise ConfigurationError(
            'PiiRedactor needs the extra: pip install "supermemory-livekit[redact]"'
        ) from None
    # Presidio's own would fetch the list of top-level domains; the copy in the package does.
    domain_of = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)

    class OfflineEmailRecognizer(predefined.EmailRecognizer):
        def validate_result(self, pattern_text: str) -> bool:
            return bool(domain_of(pattern_text).suffix)

    return [
        predefined.CreditCardRecognizer(),
        OfflineEmailRecognizer(),
        predefined.IbanRecognizer(),
        predefined.IpRecognizer(),
        predefined.PhoneRecognizer(supported_regions=tuple(regions)),
        predefined.UsSsnRecognizer(),
    ]


def _replaced(text: str, found: Sequence[RecognizerResult]) -> str:
    """Overlapping results are one place, named after the surest of them."""
    pieces: list[str] = []
    end = 0
    places = sorted(found, key=lambda result: (result.start, -result.end))
    while places:
        first, *places = places
        place, reach = [first], first.end
        while places and places[0].start < reach:
            reach = max(reach, places[0].end)
            place.append(places.pop(0))
        kind = max(place, key=lambda result: (result.score, result.end - result.start)).entity_type
        pieces += [text[end : first.start], f"[{_SHOWN.get(kind, kind.replace('_', ' ').lower())}]"]
        end = reach
    return "".join([*pieces, text[end:]])
