"""Cuts turns into sentences and trims what speech puts around a statement."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

__all__ = ["clean", "content_words", "is_latin", "is_question", "normal", "sentences"]

_LONGEST = 400
"""Characters of a sentence that are kept: a longer one is speech without stops, and its end is cut."""

_LONGEST_READ = 2_000
"""Characters of a sentence that are read. Patterns that try every place twice would take minutes over a long one."""

_ABBREVIATION = re.compile(
    r"\b(?:dr|mr|mrs|ms|st|no|nr|sr|sra|prof|ave|rd|apt|jr|vs|etc|[a-z]|[ap]\.m)\.$", re.IGNORECASE
)
_END = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+(?=\S)")
# Two statements of one sentence are judged apart: a name stays true after the table it was given for.
_SELF = (
    r"I|I'm|I've|I'd|I'll|we|we're|we've|my|our|ich|wir|meine?|je|j'|mon|ma|nous|yo|mi|tengo|soy|vivo|estoy|quiero|"
    r"quería|quisiera|necesito|me llamo|eu|meu|minha|moro|tenho|sou|estou|quero|queria|preciso|chamo-me|io|mio|mia|"
    r"ho|sono|abito|vorrei|mi chiamo|ik|mijn|wij"
)
_AND_I = re.compile(
    rf",?\s+(?P<word>and|but|y|e|und|et|mais|en|maar|aber|pero|mas|ma)\s+(?=(?:{_SELF}|but everybody)\b)",
    re.IGNORECASE,
)
# Speech has few stops: a comma stands for one, or nothing does.
_COMMA_I = re.compile(
    rf"(?<=,)\s+(?=(?:(?:and|but|also|actually|oh|um|uh|well|because|cos|und|denn|weil|y|es que|porque|et|car|"
    rf"parce que|e|en|want|omdat|perché)\s+)*(?:{_SELF})\b"
    r"(?! (?:mean|think|guess|suppose|know|say|said|hope|believe|imagine|must say|glaube|denke|meine|pense|crois)\b))",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"(?<!\bif)(?<!\bwhat)(?<!\bwhen)(?<!\bwhere)(?<!\bhow)(?<!\bthat)(?<!\bwho)(?<!\bwhy)(?<!\bwhich)(?<!\bas)"
    r"(?<!\bmuch)(?<!\bmany)(?<!\blong)(?<!\btime)(?<!\bwhatever)"
    r"(?:,?\s+(?:(?:so|and|but|then|anyway|oh)\s+)*"
    r"(?=(?:can|could|would|will|do|are|have|did) (?:you|we)\b|(?:can|could|may|should|do) i\b|"
    r"(?:what time|how (?:much|long|many|do|does|is)|when (?:do|does|is|are|can)|where (?:do|is|are|can)|"
    r"what (?:do|does|is|are)|my name(?:'s| is)|(?:i'm|i am) (?:just )?(?:calling|ringing|phoning)|"
    r"i was (?:just )?wondering|i (?:just )?wanted to (?:ask|know))\b)|"
    r",\s+(?:(?:so|and|but|then|anyway|oh)\s+)*(?=(?:is|are|does|do|will|would) (?:there|it|that|this|the|your)\b))",
    re.IGNORECASE,
)
_INVERTED = re.compile(
    r"^(?:(?:and|but|so|or|oh|um|uh|well|okay|ok|hi|hello|yeah|right|then|also|just)[ ,]+)*"
    r"(?:(?:do|does|did|don't|doesn't|didn't|are|aren't|is|isn't|am|was|were|can|can't|could|would|will|should|shall|"
    r"may) (?:you|i|we|he|she|it|they|there|that|this|the|your|my|our|any\w*|someone|somebody)\b|"
    r"(?:have|haven't|has|hasn't) (?:you|i|we|he|she|they|there)\b|"
    r"(?:haben|können|könnten|sind|gibt|kann|könnte|darf) (?:sie|ihr|es|ich|man)\b|"
    r"(?:hebben|zijn|kunnen|kan|mag|heeft) (?:jullie|u|je|ik|we)\b|est-ce que\b|(?:avez|êtes|pouvez|puis|y a-t)-|"
    r"(?:vous (?:avez|êtes|faites|pouvez|ouvrez|fermez|prenez)|on peut|abren|cierran|tienen|pueden|podrían|"
    r"avete|siete|potete|têm|podem)\b)",
    re.IGNORECASE,
)
_LEAST_APART = 4
"""Words of a statement that a question without a comma may follow."""

_VERB = re.compile(
    r"\b(?:i|we|i'm|i've|we're|we've|it's|is|are|was|were|has|have|\w+'s (?!\w+ \w+$)|can't|doesn't|works?|calls?|"
    r"ich|wir|bin|ist|sind|heiße|habe?|wohnen?|je|j'\w+|suis|c'est|est|soy|es|tengo|vivo|estoy|llamo|sou|é|tenho|"
    r"moro|estou|chamo|sono|è|ho|abito|chiamo|ik|is|ben|heb|woon|heet)\b",
    re.IGNORECASE,
)

# "I get up at four, you see?" is stated, not asked.
_TAG = re.compile(
    r"(?:[,.]\s*)(?:you (?:know|see)(?: what i mean)?|right|innit|eh|see|aren't i|don't i|you follow|weißt du|"
    r"wissen sie|"
    r"verstehen sie|nicht wahr|oder|gell|ne|¿?(?:sabe(?: usted)?|me entiende|entiende|verdad|no)|vous (?:voyez|savez|"
    r"comprenez)|"
    r"hein|n'est-ce pas|percebe|está a ver|não é|né|(?:mi )?capisce|sa|vero|no|hè|toch|weet (?:u|je)(?: wel)?)\?$",
    re.IGNORECASE,
)
_FILLERS = re.compile(
    r"^(?:(?:well|uh+|um+|er+m?|hm+|ah+|oh+|so|okay|ok|yeah|yes|yep|yup|right|sure|hi|hello|hey|there|"
    r"good (?:morning|afternoon|evening)|actually|anyway|look|listen|you know|i mean|like|basically|honestly|"
    r"(?:that|this|it) was (?:wrong|incorrect|a mistake|not right)|i (?:said|got) (?:that|it) wrong|"
    r"my mistake|correction|"
    r"and|but|also|sorry|please note(?: that)?|just so you know|remember(?: that)?|by the way|"
    r"also|ähm?|äh|ja|na ja|hallo|guten (?:tag|morgen|abend)|bueno|pues|sí|hola|buenas|buenos días|"
    r"euh|ben|oui|bonjour|alors|sim|olá|bom dia|então|bom|sì|allora|buongiorno|ehm|nou|hoi|dag|goedemorgen)"
    r"(?:\s*[,.!;:–—-]+\s*|\s+(?=[,]))|(?:uh+|um+|er|erm|hm+|ähm|äh|euh|ehm|well,?|hi there,?|"
    r"hello there,?|remember that|(?:please )?don't forget(?: that)?|please note that|"
    r"(?:please )?(?:remember|note|keep in mind|make a note)(?: that)?(?=\s+(?:my|i|i'm|i've|we|our)\b))\s+)+",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"(?:,? (?:so |very )?sorry|,? (?:thanks|thank you|cheers|ta|you know|you see|bless (?:him|her|them)|to be honest|"
    r"if i'm honest|obviously|i'm afraid|danke|gracias|merci|obrigad[oa]|grazie|bedankt|hoor|weißt du|wissen sie))"
    r"+(?=[.!]?$)",
    re.IGNORECASE,
)
_INNER_FILLERS = re.compile(r"(?:,\s*|\s+)(?:uh+|um+|erm|ähm?|euh)\b,?(?=\s)", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")

_COMMON = frozenset(
    [
        "a",
        "an",
        "the",
        "i",
        "i'm",
        "im",
        "i've",
        "i'd",
        "i'll",
        "me",
        "my",
        "mine",
        "we",
        "we're",
        "we've",
        "our",
        "us",
        "am",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "being",
        "have",
        "has",
        "had",
        "do",
        "does",
        "did",
        "don't",
        "doesn't",
        "not",
        "no",
        "never",
        "n't",
        "to",
        "of",
        "in",
        "on",
        "at",
        "for",
        "from",
        "with",
        "by",
        "and",
        "or",
        "but",
        "so",
        "that",
        "this",
        "it",
        "it's",
        "its",
        "as",
        "just",
        "really",
        "very",
        "now",
        "these",
        "days",
        "actually",
        "there",
        "here",
        "you",
        "your",
        "any",
        "some",
        "too",
        "also",
        "please",
        "can",
        "can't",
        "could",
        "will",
        "would",
        "called",
        "name's",
        "caller",
        "caller's",
        "user",
        "more",
        "anymore",
        "longer",
        "about",
        "already",
        "still",
        "currently",
    ]
)


def sentences(text: str, *, tags: bool = False) -> Iterator[str]:
    """The statements of a turn, in order: sentences, and the halves of "my name is … and I want …".

    `tags` leaves "right?" at the end of a statement, by which an agent asks and a caller only talks.
    A part that ends with a comma belongs to the same sentence as the next.
    """
    start = 0
    for found in _END.finditer(text):
        if _ABBREVIATION.search(text[max(start, found.start() - 12) : found.start()]):
            continue
        yield from _statements(text[start : found.start()], tags)
        start = found.end()
    yield from _statements(text[start:], tags)


def _statements(sentence: str, tags: bool) -> Iterator[str]:
    sentence = sentence.strip()
    if len(sentence) > _LONGEST_READ:  # speech without stops
        sentence = sentence[:_LONGEST_READ].rsplit(" ", 1)[0]
    start = 0
    for found in _ASKS.finditer(sentence):
        before = sentence[start : found.start()]
        if len(before.split()) >= _LEAST_APART and _VERB.search(before):
            yield from _halves(before.rstrip(" ,") + ("," if "," in found[0] else ""))
            start = found.end()
    sentence = sentence[start:].strip()
    if not tags:
        sentence = _TAG.sub(".", sentence)
    if sentence.endswith("?"):  # a question stays one, whichever half asks it
        yield sentence
    else:
        yield from _halves(sentence)


def _halves(sentence: str) -> Iterator[str]:
    """What the caller says of themselves in one breath; a part that ends with a comma goes on in the next."""
    start = 0
    places = [*_AND_I.finditer(sentence), *_COMMA_I.finditer(sentence)]
    for found in sorted(places, key=lambda it: it.start()):
        half = sentence[start : found.start()]
        word = found.groupdict().get("word", "")
        if word.casefold() in ("and", "but", "") and not _VERB.search(half):
            continue  # "my husband and I"
        if half.strip():
            yield half.strip()
        start = found.end()
    sentence = sentence[start:].strip()
    if sentence:
        yield sentence


def clean(sentence: str) -> str:
    """The sentence without the fillers around it, with a capital letter and a stop."""
    text = _INNER_FILLERS.sub("", _FILLERS.sub("", sentence.strip())).strip(" ,;:-–—")
    text = _TAIL.sub("", text) or text
    if len(text) > _LONGEST:
        text = text[:_LONGEST].rsplit(" ", 1)[0]
    if not text:
        return ""
    text = text[0].upper() + text[1:]
    return text if text[-1] in ".!?…" else text + "."


def is_question(sentence: str) -> bool:
    """Whether the sentence is asked: by its mark, or by its words where no mark is written. Requests count as well."""
    return (
        sentence.rstrip(" \"'”’").endswith("?")
        or sentence.startswith("¿")
        or _INVERTED.match(sentence) is not None
    )


def is_latin(text: str) -> bool:
    """Whether most letters are of the Latin script, the only one that the rules read. Digits alone are, too."""
    letters = [char for char in text[:1_000] if char.isalpha()]
    latin = sum("LATIN" in unicodedata.name(char, "") for char in letters)
    return latin * 2 > len(letters) if letters else any(char.isdigit() for char in text[:1_000])


def normal(text: str) -> str:
    """Two texts of one normal form say the same: case, width, punctuation and spaces do not count."""
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold().replace("’", "'")))


def content_words(text: str) -> frozenset[str]:
    """The words that carry a meaning, with the commonest English endings taken off."""
    return frozenset(_stem(word) for word in normal(text).split() if word not in _COMMON)


def _stem(word: str) -> str:
    word = word.removesuffix("'s")
    if len(word) > 5 and word.endswith("ing"):
        return word[:-3].removesuffix("e")
    if len(word) > 4 and word.endswith("ed"):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 4 else word
