"""A call's transcript in, changes of the caller's memory out.

`types` holds the shapes, `transcript` reads a document as turns, `rules` and `model` are the two extractors and
`choice` says which one is used. `rules` stands on `sentences`, `language`, `answers`, `when`, `known` and `classifier`.
docs/decisions/0004-facts-from-calls.md says why.
"""

from .choice import FallbackExtractor, extractor_from_env
from .model import ModelExtractor
from .rules import RuleExtractor
from .transcript import parse_transcript
from .types import Changes, ExtractionFailed, Extractor, Fact, Known, Line

__all__ = [
    "Changes",
    "ExtractionFailed",
    "Extractor",
    "Fact",
    "FallbackExtractor",
    "Known",
    "Line",
    "ModelExtractor",
    "RuleExtractor",
    "extractor_from_env",
    "parse_transcript",
]
