"""Several calls of one process are read in threads at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from supermemory_livekit.local.extraction.language import language_of, languages


def test_languages_that_two_threads_read_at_the_same_moment_are_the_same_languages() -> None:
    """Design 3: no shared state that the order of calls could spoil; the first reading may happen twice."""
    before = languages()
    languages.cache_clear()
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda default: language_of("I moved to Porto", default), before))
    assert {language.code for language in found} == {"en"}
    assert language_of("", before[2]).code == before[2].code
