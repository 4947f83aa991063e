"""How texts become full-text terms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supermemory_livekit.retrieval.words import is_identifier, terms

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("My booking is 88213.", "88213"),
        ("My booking is 88213.", "88 213"),
        ("My booking is 88213.", "8 8 2 1 3"),
        ("Call me on +49 151 2345678.", "+491512345678"),
        ("Policy KX-4471", "kx4471"),
        ("Gate E24.", "gate e24?"),
        ("Write to ana.reis@example.com", "ana.reis@example.com"),
        ("Serial ab_12_cd", "AB-12-CD"),
    ],
)
def test_an_identifier_is_one_term_however_it_is_written(stored: str, said: str) -> None:
    """Requirement of the retrieval part: digits and identifiers are kept whole."""
    shared = set(terms(stored)) & set(terms(said, asked=True))
    assert shared
    assert max(shared, key=len) == max(terms(said, asked=True), key=len)


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("José", "JOSE"),
        ("Straße", "strasse"),
        ("Łódź", "lodz"),
        ("ﬁsh", "fish"),
        ("ｐｉａｎｏ", "piano"),
        ("l'hôtel", "hotel"),
        ("Mia's", "mia"),
        ("vegetariano", "vegetariana"),
        ("allergies", "allergy"),
        ("moved", "moving"),
        ("собака", "собаку"),
    ],
)
def test_spelling_and_endings_do_not_matter(stored: str, said: str) -> None:
    """Requirement of the retrieval part: accents folded, light stemming, any language."""
    assert terms(stored) == terms(said)
    assert terms(stored)


def test_scripts_without_spaces_are_searched_by_pairs_of_characters() -> None:
    """Requirement of the retrieval part: CJK by character bigrams."""
    stored = set(terms("来电者住在上海。"))
    assert set(terms("上海", asked=True)) == {"上海"} <= stored
    assert set(terms("海", asked=True)) <= stored
    assert not set(terms("北京", asked=True)) & stored


def test_indic_words_stay_whole() -> None:
    """Requirement of the retrieval part: any language."""
    assert terms("मेरा कुत्ता।") == ["मेरा", "कुत्ता"]


def test_small_words_are_no_terms() -> None:
    """Requirement of the retrieval part: stop words of the major languages."""
    assert terms("what is my, wo ist der, que es la, où est le, o que é o meu") == []
    assert terms("war and peace, son, come") == ["war", "peac", "son", "come"]


def test_a_call_line_is_found_by_its_words_and_its_month_but_not_by_its_label() -> None:
    """Line format of captured calls: `[time] Caller: words`."""
    found = terms(
        "[2026-05-29T17:16:29.123Z] Caller: I adopted a puppy.\n[2026-05-29T17:16:31.004Z] Agent: Lovely."
    )
    assert set(terms("puppy in May 2026")) <= set(found)
    assert found.count("20260529") == 1
    assert not {"caller", "agent", "17", "16"} & set(found)


@given(ANY_TEXT)
def test_any_text_has_terms_of_bounded_length(text: str) -> None:
    """Whatever speech recognition or a model writes can be indexed."""
    for term in terms(text):
        assert 0 < len(term) <= 40
        assert term == term.strip()


def test_only_terms_with_digits_are_identifiers() -> None:
    """Identifiers weigh more than words."""
    assert [term for term in ("88213", "e24", "kx4471", "7", "piano") if is_identifier(term)] == [
        "88213",
        "e24",
        "kx4471",
    ]
