"""A call's transcript in, changes of the caller's memory out.

`types` holds the shapes, `transcript` reads a document as turns.
"""

from .transcript import parse_transcript
from .types import Changes, ExtractionFailed, Extractor, Fact, Known, Line

__all__ = ["Changes", "ExtractionFailed", "Extractor", "Fact", "Known", "Line", "parse_transcript"]
