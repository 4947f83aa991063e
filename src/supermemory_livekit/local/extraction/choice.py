"""Which extractor is used, and what happens when it does not work."""

from __future__ import annotations

import hashlib
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import openai

from supermemory_livekit.retrieval import Embedder, load_embedder

from .model import ModelExtractor
from .rules import RuleExtractor
from .types import Changes, ExtractionFailed, Extractor, Known, Line

__all__ = ["FallbackExtractor", "extractor_from_env"]

_log = logging.getLogger(__name__)

_TRIES = 3
_REMEMBERED = 256


class FallbackExtractor:
    """Asks `first`; a piece of a call that it failed at `tries` times goes to `second`.

    Until then `ExtractionFailed` is passed on, and the caller of `extract` tries again later.
    """

    def __init__(self, first: Extractor, second: Extractor, *, tries: int = _TRIES) -> None:
        self._first = first
        self._second = second
        self._tries = tries
        self._failed: OrderedDict[bytes, int] = OrderedDict()

    async def extract(
        self, lines: Sequence[Line], known: Sequence[Known], *, at: datetime, before: Sequence[Line] = ()
    ) -> Changes:
        """See `Extractor.extract`."""
        piece = _digest(lines)
        try:
            changes = await self._first.extract(lines, known, at=at, before=before)
        except ExtractionFailed as error:
            if not self._given_up(piece):
                raise
            _log.warning("%s; after %d tries a piece of a call is read by rules instead", error, self._tries)
            changes = await self._second.extract(lines, known, at=at, before=before)
        self._failed.pop(piece, None)
        return changes

    async def aclose(self) -> None:
        """Close both extractors."""
        for extractor in (self._first, self._second):
            if isinstance(extractor, ModelExtractor | FallbackExtractor):
                await extractor.aclose()

    def _given_up(self, piece: bytes) -> bool:
        """Counts a failure. Pieces that are never tried again fall out of the count."""
        self._failed[piece] = self._failed.get(piece, 0) + 1
        self._failed.move_to_end(piece)
        while len(self._failed) > _REMEMBERED:
            self._failed.popitem(last=False)
        return self._failed[piece] >= self._tries


def extractor_from_env(
    environ: Mapping[str, str] | None = None, *, embedder: Callable[[], Embedder | None] = load_embedder
) -> Extractor:
    """The chat model that `OPENAI_MODEL` names, with rules as a fallback; rules alone when it is not set.

    Besides the model, `OPENAI_API_KEY` or `OPENAI_BASE_URL` must be set. A key alone is not enough: the agent's own
    model needs it too, and nobody agreed by that to have calls sent there once more.
    """
    environ = os.environ if environ is None else environ
    model, key, url = (
        environ.get(name, "").strip() for name in ("OPENAI_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL")
    )
    if not model:
        return RuleExtractor(embedder)
    if not (key or url):
        _log.warning(
            "OPENAI_MODEL is set without OPENAI_API_KEY or OPENAI_BASE_URL: facts are found by rules"
        )
        return RuleExtractor(embedder)
    # A local service takes any key, but the client insists on one.
    client = openai.AsyncOpenAI(
        api_key=key or "none", base_url=url or "https://api.openai.com/v1", max_retries=1
    )
    return FallbackExtractor(ModelExtractor(client, model), RuleExtractor(embedder))


def _digest(lines: Sequence[Line]) -> bytes:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(f"{line.at}\0{line.role}\0{line.text}\0".encode("utf-8", "replace"))
    return digest.digest()
