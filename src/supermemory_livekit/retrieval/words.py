"""Texts cut into terms for full-text search, in any language.

Accents and case are folded, small words dropped, endings cut lightly. Scripts without spaces become pairs of
characters. Whatever holds a digit stays whole, since "88213" and "E24" are what a caller is asked to repeat.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache, partial

from .wording import split_stamp

__all__ = ["is_identifier", "terms"]

# Small words of English and of the languages callers most often speak besides. Those that mean something
# in English (Spanish "son", German "hat", "war", "die", Italian "come") are left out: frequent words
# weigh little anyway.
_STOP = frozenset(
    """
    a about again  all also am an and any ao are as at au auch auf aux avec be been being bin but by can
    cant ce cet cette che chi com como con could cual cuando da dans  de del dem den der des di did
    didnt do does doesnt doing donde done dont dos du e each een ein eine einem einen einer el ela ele
    elle en er es est esta estoy et eu few for from fur further get gli got habe haben had has hast have
    having hay he her here hers herself het him himself his how i ich id if ihr ik il ill ils im in into
    is isnt ist it its itself ive je just kann la las le les let lets lo los ma mais mas me mein meine
    meinen meiner mes met meu meus mi  mijn minha minhas  mis mit mon more most much muito muy my
    myself na nao nas ne nicht niet no noch non nor nos not nous o oder of off oh ok okay on once onde
    only op or os other ou our ours out over own para pas piu please plus por pour qual quand quando que
    quel quelle quem qui quien quoi really same se sem ses seu she should sie sind so some sono soy su sua
    such suis sur sus ta tell than that thats the their theirs them then there theres these they this
    those through to ton too tu uber uh um uma umas un una unas und under une uno unos uns until up us van
    very von voor vous wann was wasnt we wer were what whats when where which while who whom whos why wie
    will wir with wo would y ya yeah yes yo you your yours zu zum zur
    """.split()  # noqa: SIM905
)

_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Myanmar, Khmer
    "\u1100-\u11ff\uac00-\ud7a3"  # Hangul: spaced, but its particles are written into the word
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # kana, Han
)
_LETTERS = (
    rf"(?:[^\W_{_SPACELESS}]|[\u0900-\u0963\u0966-\u0dff])+"  # \w lacks the vowel signs of Indic scripts
)
_TOKEN = re.compile(rf"(?P<spaceless>[{_SPACELESS}]+)|(?P<word>{_LETTERS}(?:['’\-./:@_+]+{_LETTERS})*)")
_PART = re.compile(r"[^\W_]+")
_NUMBER_RUN = re.compile(r"(?<!\w)\+?\d+(?:[ \-./()]{1,2}\d+)+(?!\w)")
_MARKS = re.compile(r"[\u0300-\u036f\u0591-\u05c7\u064b-\u0652\u0670\u0640]")
_UNDECOMPOSED = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)
_ELISION = re.compile(r"^(?:[cdjlmnst]|qu|dell|nell|all|sull|un)['’](?=\w{2})")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_SLAVIC_ENDING = re.compile(r"(?:ого|его|ому|ему|ами|ями|ах|ях|ов|ев|ом|ем|[аеиоуыэюяьъ]{1,2})$")
_LONGEST = 40  # characters of a term; longer runs are pasted noise


def terms(text: str, *, asked: bool = False) -> list[str]:
    """The terms of `text`, with repeats. `asked`: of a query.

    A query in a script without spaces asks for pairs of characters, and for a character alone only where
    it stands alone; a passage offers both.
    """
    said, dates = split_stamp(text)
    found = [term for date in dates for term in _date(date)]
    plain = _fold(said)
    # Parts too short to be meant by themselves would blur what is asked for.
    joined = partial(_joined, shortest=5) if asked else _joined
    for match in _TOKEN.finditer(_NUMBER_RUN.sub(joined, plain)):
        if match["spaceless"]:
            run = match["spaceless"]
            found.extend(run[at : at + 2] for at in range(len(run) - 1))
            if len(run) == 1 or not asked:
                found.extend(run)
        else:
            found.extend(_words(match["word"]))
    return found


def _date(date: str) -> list[str]:
    # A call line says when it was spoken only in digits, and is asked for as "what did I say in May".
    year, month, _ = date.split("-")
    return [date.replace("-", ""), year, _stem(_MONTHS[int(month) - 1])] if 1 <= int(month) <= 12 else []


def _joined(run: re.Match[str], shortest: int = 2) -> str:
    """`run` as one number, and its parts: a caller may say "555 01 34" for "5550134".

    Of the parts those of at least `shortest` digits.
    """
    parts = re.findall(r"\d+", run[0])
    whole = "".join(parts)
    if not 4 <= len(whole) <= 20:
        return run[0]
    return " ".join([whole, *(part for part in parts if len(part) >= shortest)])


def is_identifier(term: str) -> bool:
    """Whether a term names one thing, such as a number or a reference, and so counts for more than a word."""
    return len(term) > 1 and any(map(str.isdigit, term))


# A caller's words recur: with this an index of 200 facts is built in half the time.
@lru_cache(maxsize=20_000)
def _words(token: str) -> tuple[str, ...]:
    if any(map(str.isdigit, token)):
        parts = _PART.findall(token)
        whole = "".join(parts)
        return tuple(part[:_LONGEST] for part in dict.fromkeys((whole, *parts)))
    token = _ELISION.sub("", token)
    result: list[str] = []
    for part in re.split(r"[\-./:@_+]+", token):
        word = re.sub(r"['’]s$", "", part)
        word = re.sub(r"['’]", "", word)
        if word and word not in _STOP and (len(word) > 1 or not word.isascii()):
            result.append(_stem(word)[:_LONGEST])
    return tuple(result)


def _fold(text: str) -> str:
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFC", _MARKS.sub("", plain)).translate(_UNDECOMPOSED)


def _stem(word: str) -> str:
    """Cut what number, gender, case and tense add in English, Romance and Slavic words, rather too much."""
    if len(word) > 4 and "\u0400" <= word[0] <= "\u04ff":
        return _SLAVIC_ENDING.sub("", word)
    if not word.isascii() or len(word) < 4:
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if (
            word.endswith(ending)
            and len(word) - len(ending) >= 3
            and re.search("[aeiouy]", word[: -len(ending)])
        ):
            word = word[: -len(ending)]
            if word[-1] == word[-2] and word[-1] not in "ls":
                word = word[:-1]
            break
    if len(word) > 4 and word[-1] in "aoe":
        word = word[:-1]
    elif len(word) > 4 and word[-1] == "y":
        word = word[:-1] + "i"
    return word
