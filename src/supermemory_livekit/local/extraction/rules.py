"""Facts from calls without a language model: the caller's own sentences, chosen by rules and a small classifier.

What is kept is what the caller said, in their words. Nothing is composed, so nothing can be invented; a missed fact is
still found in the stored call.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from supermemory_livekit.retrieval import Embedder, load_embedder

from .answers import Asked, question_of
from .classifier import Classifier, Odds, load_classifier
from .features import PAST
from .known import Told, confirms, named_in, replaced_by, restates, same_as, swapped
from .language import language_of, languages
from .sentences import clean, content_words, is_latin, is_question, sentences
from .types import Changes, Fact, Known, Line
from .when import over_at

__all__ = ["RuleExtractor"]

_SURE = 0.8
"""Odds from which the classifier alone keeps a sentence about the caller."""
_SURE_IMPERSONAL = 0.88
"""The same for a sentence in which the caller does not name themselves ("It's a 2014 Subaru, the silver one")."""
_SURE_TALKING = 0.88
"""The same for a sentence about the caller among many, or after a question of how things are: there people tell
stories. A sentence in which they do not name themselves is then kept for a pattern only."""
_SURE_STORY = 0.95
"""The same for what they tell in the past tense there."""
_JEST = 0.2
"""Odds below which the classifier overrules a rule that is sure. Few jokes are that plain to it."""
_TALKING = 30
"""Words from which a turn is a long one."""
_SURE_ANSWER = 0.65
_DOUBT = 0.45
"""Odds below which it overrules a rule that is not sure."""
_DOUBT_TALKING = 0.6
_SHORTEST = 2
"""Words of the shortest statement that is kept on its own."""
_SHORT_ANSWER = 12

_FOR_A_TIME = re.compile(
    r"\b(?:appointment|book\w*|table|reserv\w+|meeting|flight|fly\w*|travel\w*|trip|visit\w*|interview|"
    r"pick(?:ing)? up|"
    r"deliver\w*|schedul\w+|cancel\w*|taxi|room|ticket|until|till|tonight|today|away|out of town|holiday|"
    r"vacation|see|off sick|in hospital|staying|bis|hasta|jusqu\w*|até|fino|tot|"
    r"order\w*|going|order|termin|tisch|cita|mesa|reserva\w*|rendez-vous|consulta|tavolo|appuntamento|"
    r"afspraak|tafel)\b",
    re.IGNORECASE,
)
_LASTING = re.compile(
    r"\b(?:start\w*|mov(?:e|ed|ing)|marr\w+|wedding|baby|expecting|due|surgery|operation|born)\b",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"^(?:(?:he|she|they)(?:'s|'re|'ve| is| are| has| have)|it(?:'s| is) (?:called|an?|the)|"
    r"(?:er|sie|hij|ze|zij) (?:ist|hat|heißt|is|heeft|heet)|(?:il|elle) (?:est|a|s'appelle))\b",
    re.IGNORECASE,
)
_OF_THEM = re.compile(
    r"^(?:(?:oh|and|but|also|mind you|und|aber|et|mais|en|maar)[ ,]+)*"
    r"(?:he|she|they|er|sie|hij|ze|zij|il|elle|ils|elles)(?:'\w+)?\b"
    r"(?! (?:\w+ )?(?:says?|said|tells?|told|thinks?|thought|reckons?|goes|was like|sagt\w*|meint\w*|dit|"
    r"disent|zegt|zei)\b)",
    re.IGNORECASE,
)
_ANEW = re.compile(
    r"^\W*(?:(?:oh|um|uh|well|and|but)\W+)*(?:no|nope|sorry|wait|actually|i mean|or rather|"
    r"nein|perdón|pardon|scusi|desculpe)\b",
    re.IGNORECASE,
)
# "I work in Leeds, no, what am I saying": the half sentence does not hold.
_SLIP = re.compile(
    r"\b(?:no,? )?(?:what am i (?:saying|on about|talking about)|i tell a lie|no,? (?:wait|hang on|"
    r"hold on),? (?:that|it|\w+'s|i\b|gone|no\b)|listen to me|was (?:rede?|sage?|"
    r"erzähle?) ich(?: denn| da)?|"
    r"qué (?:digo|estoy diciendo)|qu'est-ce que je (?:dis|raconte)|(?:o )?que (?:é que )?(?:eu )?(?:estou a dizer|"
    r"digo eu)|"
    r"(?:che|cosa) (?:sto dicendo|dico)|wat zeg ik(?: nou| nu)?)\b",
    re.IGNORECASE,
)
_SPELLED = re.compile(r"\d|@|\bdot\b", re.IGNORECASE)
_QUOTES = re.compile(
    r"\b(?:goes|went|(?:was|is|be) like|says?|said|shouts?|shouted|sagt\w*|meint\w*|dice|decía|dijo|dit|disait|diz|"
    r"dizia|"
    r"disse|diceva|zegt|zei)\b(?: \w+){0,3}?,? (?:i|i'm|i've|my|we|ich|yo|soy|je|j'|eu|sou|io|sono|ho|ik)\b"
    r"|\b(?:goes|(?:was|is) like),$",
    re.IGNORECASE,
)
_QUOTES_AT_LENGTH = re.compile(
    r"(?<!\bi )(?<!\bwe )\b(?:goes|(?:was|is) like|decía|disait|dizia|diceva)\b(?: \w+){0,3}?,? "
    r"(?:i|i'm|i've|my|we|yo|soy|je|j'\w+|eu|sou|io|sono|ho)\b|\b(?:goes|(?:was|is) like),$",
    re.IGNORECASE,
)
_NARRATES = re.compile(
    r"^(?:and )?so (?:i'm|we're|i|we) (?:just )?(?:\w+ing|open|turn|get|go|come|look|walk|say|stood|sat)\b|"
    r"\b(?:i|we) (?:just |only |then |nearly |almost )?"
    r"(?!moved|retired|stopped|married|divorced|started|joined|lost|need\w*|used)"
    r"(?:\w+ed|went|saw|got|put|had|fell|sat|stood|gave|took|told|said|was|were|came|ran|thought|found|forgot|made|"
    r"did|bought|ate)\b|"
    r"\bich (?:hab\w*|bin|war|hatte)\b.*\bge\w+\b|\b(?:he|me he) \w+[aií]do\b|\bme (?:quedé|pasé|entró)\b|"
    r"\bj'ai (?:failli|ri|fait|vu|passé|mis|dit|pris)\b|\b\w{2,}ei(?:-me)?\b|\b(?:ho|sono) \w+[aiu]t[oaie]\b|"
    r"\bik (?:heb|ben|was|had)\b.*\bge\w+\b",
    re.IGNORECASE,
)
_LOVED_ONES = frozenset(["family", "pet"])
_STILL_MEANT = 2
"""Turns of the caller for which "she" may stand for somebody of theirs."""
_DENIES = re.compile(
    r"^\W*(?:(?:ah|oh|well|um|uh|er|actually)\W+)*(?:no|nope|nah|not any ?more|nein|nee|non|não|já não|ya no|niet)\b",
    re.IGNORECASE,
)
_CHANGED = re.compile(
    r"\b(?:now|these days|any ?more|instead|not|moved|changed|switched|jetzt|inzwischen|mittlerweile|nicht|ahora|ya|"
    r"maintenant|désormais|plus|agora|já|adesso|ora|più|nu|tegenwoordig|inmiddels|niet)\b",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"^(?:(?:no|nope|sorry|wait|actually|i mean|not quite)[,.!]? )+(?:i (?:mean|meant) )?"
    r"(?:it's |it is |that's |my \w+ is )?"
    r"(?P<new>[^,.!?]+?)(?:,? (?:and )?not (?P<old>[^,.!?]+?))?(?=[,.!?]|$)",
    re.IGNORECASE,
)
_NOT_BUT = re.compile(
    r"\b(?:it's |it is )?not (?P<old>[^,.!?]+?),? (?:but|it's) (?P<new>[^,.!?]+)", re.IGNORECASE
)
_CORRECTS = re.compile(
    r"^(?:(?:no|nope)[,.!]? (?:it's|it is|that's|not)\b|(?:sorry|no|wait|actually)?,? ?i (?:mean|meant)\b)",
    re.IGNORECASE,
)
_WAS_WRONG = re.compile(
    r"\b(?:(?:that|this|it) (?:was|is)|that's|it's) (?:wrong|incorrect|a mistake|not right)\b|"
    r"\bi (?:said|got) (?:that|it) wrong\b|^(?:sorry,? )?(?:my mistake|correction)\b",
    re.IGNORECASE,
)
_EVERYTHING = re.compile(
    r"^(?:everything|all) (?:you (?:know|have|stored|remember)|about (?:me|us)|(?:of )?my (?:data|"
    r"information|memories))",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Kept:
    """A sentence that is kept, and the place it has in the call."""

    fact: Fact
    turn: int
    anew: bool = False
    """It begins with "no", "sorry" or the like: what was said before in the same turn may not hold."""


class RuleExtractor:
    """Needs no network. Uses the sentence encoder when it is installed; without it the rules stand alone.

    `embedder` gives the encoder, once, at the first extraction and off the event loop.
    """

    def __init__(self, embedder: Callable[[], Embedder | None] = load_embedder) -> None:
        self._load = embedder

    async def extract(
        self, lines: Sequence[Line], known: Sequence[Known], *, at: datetime, before: Sequence[Line] = ()
    ) -> Changes:
        """See `Extractor.extract`. Never raises `ExtractionFailed`."""
        return await asyncio.to_thread(self._extract, lines, known, at, before)

    def _extract(
        self, lines: Sequence[Line], known: Sequence[Known], at: datetime, before: Sequence[Line]
    ) -> Changes:
        call = _Call(load_classifier(self._load()), known, at)
        for line in before:
            call.listen(line)
        for line in lines:
            call.read(line)
        return call.changes()


class _Call:
    """One pass over the turns of a call."""

    def __init__(self, classifier: Classifier | None, known: Sequence[Known], at: datetime) -> None:
        self._classifier = classifier
        self._known = known
        self._told = [Told(it.text, it.id) for it in known]
        self._at = at
        self._kept: list[_Kept] = []
        self._forget: dict[str, None] = {}
        self._asked: Asked | None = None
        self._talking = False
        """Whether the caller tells at length, or was asked how things are."""
        self._agent_said = ""
        self._turn = 0
        self._language = languages()[0]
        self._last_said: datetime | None = None
        """When the caller's turn before this one was said."""

    def listen(self, line: Line) -> None:
        """Take in a turn that was worked on earlier."""
        if line.role == "agent":
            self._asked = question_of(line.text)
            self._agent_said = line.text
        elif line.role == "caller":
            self._asked = None
            self._agent_said = ""
            self._last_said = line.at

    def read(self, line: Line) -> None:
        if line.role == "caller" and is_latin(line.text):
            self._language = language_of(line.text, self._language)
            self._turn += 1
            self._hear(line)
        self.listen(line)

    def changes(self) -> Changes:
        added: list[_Kept] = []
        for kept in self._kept:
            fact, told = kept.fact, Told(kept.fact.text)
            if any(same_as(told, it) or confirms(told, it) for it in self._told) and not fact.replaces:
                continue
            earlier = [Told(it.fact.text, str(i)) for i, it in enumerate(added)]
            if any(same_as(told, it) for it in earlier):
                continue
            # Of two values said in one call the later one holds; "I'm a nurse and I work at St Mary's" are both true.
            before = [it for it in earlier if kept.anew or added[int(it.id)].turn != kept.turn]
            outdated = {int(i) for i in replaced_by(told, before)}
            inherited = tuple(old for i in sorted(outdated) for old in added[i].fact.replaces)
            added = [it for i, it in enumerate(added) if i not in outdated]
            replaces = dict.fromkeys((*fact.replaces, *inherited, *replaced_by(told, self._told)))
            added.append(replace(kept, fact=replace(fact, replaces=tuple(replaces))))
        facts = tuple(it.fact for it in added)
        replaced = {old for fact in facts for old in fact.replaces}
        return Changes(facts, tuple(it for it in self._forget if it not in replaced))

    def _hear(self, line: Line) -> None:
        said = line.at or self._at
        previous: _Kept | None = None
        supposing = corrected = goes_on = skipping = quoting = False
        open_question = self._asked is not None and self._asked.is_open
        self._talking = open_question or len(line.text.split()) > _TALKING
        kept = list(self._kept)
        parts = list(sentences(line.text))
        for number, part in enumerate(parts):
            # What follows a comma shares the fate of what is supposed or quoted before it.
            skipping, went_on = skipping and goes_on, goes_on
            goes_on = part.endswith(",")
            text = clean(part)
            if quoting:
                quoting = part[-1] not in ".!?…"
                continue
            slip = _SLIP.search(part)
            if slip is not None:
                if previous is not None and slip.start() < _SHORTEST and previous in self._kept:
                    self._kept.remove(previous)
                previous = None
                continue
            corrected = corrected or _WAS_WRONG.search(part) is not None
            asked = self._asked if number == 0 or (previous is None and number == 1) else None
            if asked is not None and number == 1 and asked.is_no_answer(clean(parts[0]) or parts[1]):
                asked = None  # "Hold on. It's the postman."
            unfinished = number + 1 < len(parts) and part[-1] not in ".!?…"
            if unfinished and self._kept == kept and self._language.take_back.search(part):
                return  # "don't write this down, but …" means what is still to come
            if self._manages_memory(part):
                previous = None
                continue
            if self._corrects(part, text, said, previous):
                previous = self._kept[-1]
                continue
            if self._language.unreal.search(text) or self._language.unreal.search(part):
                supposing = skipping = True
                continue
            if skipping or (supposing and is_question(text)):
                continue
            if _QUOTES_AT_LENGTH.search(part):
                quoting = part[-1] not in ".!?…"
                previous = None
                continue
            if self._language.hearsay.search(text):
                skipping = True
                quoting = _QUOTES.search(part) is not None and part[-1] not in ".!?…"
            if previous is not None and _GOES_ON.match(text) and len(text.split()) <= _SHORT_ANSWER:
                previous = self._extend(previous, text)
                continue
            about = self._meant_by(text)
            if about is not None:
                previous = self._extend(about, text)
                continue
            before = previous if went_on else None
            previous = self._keep(text, part, asked, said)
            if previous is not None and before is not None:
                previous = self._joined(before, previous, part)
            if previous is not None and corrected:
                previous = self._restated(previous)
                corrected = False
        self._replace_denied(line.text)

    def _keep(self, text: str, part: str, asked: Asked | None, said: datetime) -> _Kept | None:
        fact = self._stated(text, said)
        if self._language.introduces.search(part) and not is_question(part):
            fact = self._fact(text, True, said)
        if asked is not None and (fact is None or len(text.split()) <= 3) and not self._rule(text, sure=True):
            fact = self._answered(asked, part, said) or fact
        if fact is None:
            return None
        kept = _Kept(fact, self._turn, _ANEW.match(part) is not None)
        self._kept.append(kept)
        return kept

    def _extend(self, kept: _Kept, text: str) -> _Kept:
        """A pronoun needs the sentence it points to: both become one memory."""
        longer = replace(kept, fact=replace(kept.fact, text=f"{kept.fact.text} {text}"))
        self._kept[self._kept.index(kept)] = longer
        return longer

    def _meant_by(self, text: str) -> _Kept | None:
        """What was kept of the caller's family or animal that "he can't eat beef" speaks of."""
        if _OF_THEM.match(text) is None or is_question(text):
            return None
        if 1 - self._odds(text, 1.0).nothing < _DOUBT:
            return None
        lately = (it for it in reversed(self._kept) if it.turn >= self._turn - _STILL_MEANT)
        return next((it for it in lately if self._is_of_loved_ones(it.fact.text)), None)

    def _is_of_loved_ones(self, text: str) -> bool:
        return any(it.slot in _LOVED_ONES and it.pattern.search(text) for it in self._language.topics)

    def _replace_denied(self, text: str) -> None:
        """ "Are you still at the bank?" - "No, at a school now" takes the place of what the agent named."""
        if _DENIES.match(text) is None:
            return
        named = content_words(self._agent_said)
        denied = [it.id for it in self._told if it.words and len(it.words & named) * 2 >= len(it.words)]
        for kept in self._kept:
            if denied and kept.turn == self._turn and _CHANGED.search(kept.fact.text):
                replaces = tuple(dict.fromkeys((*kept.fact.replaces, *denied)))
                self._kept[self._kept.index(kept)] = replace(kept, fact=replace(kept.fact, replaces=replaces))
                return

    def _joined(self, kept: _Kept, further: _Kept, part: str) -> _Kept:
        """Parts of one sentence that hold equally long are one memory, as they were said."""
        one, other = kept.fact, further.fact
        if one.static != other.static or other.text.startswith("Asked "):
            return further
        expires = max(filter(None, (one.expires, other.expires)), default=None)
        text = f"{one.text.rstrip('.')}, {part.strip(' ,.')}{other.text[-1]}"
        joined = replace(kept, fact=replace(one, text=text, expires=expires))
        self._kept[self._kept.index(kept)] = joined
        self._kept.remove(further)
        return joined

    def _restated(self, kept: _Kept) -> _Kept:
        """What was wrong is said anew: it takes the place of what it says otherwise."""
        told = Told(kept.fact.text)
        self._kept = [it for it in self._kept if it is kept or not restates(told, Told(it.fact.text))]
        wrong = (it.id for it in self._told if restates(told, it) and not same_as(told, it))
        better = replace(kept, fact=replace(kept.fact, replaces=tuple(wrong)))
        self._kept[self._kept.index(kept)] = better
        return better

    # Judging a sentence

    def _stated(self, text: str, said: datetime) -> Fact | None:
        language = self._language
        if len(text.split()) < _SHORTEST or language.hearsay.search(text):
            return None
        personal = language.first.search(text) is not None
        if is_question(text):
            if not language.request.search(text):
                return None
            return self._fact(text, False, said) if self._odds(text, 0.0).nothing < 1 - _DOUBT else None
        if language.asks.search(text):
            return None
        rule = self._rule(text, sure=True, personal=personal)
        if rule is not None:
            if 1 - self._odds(text, 0.0).nothing < _JEST and not _SPELLED.search(text):
                return None
            return self._fact(text, rule, said)
        if language.talk.search(text):
            return None
        rule = self._rule(text, sure=False, personal=personal)
        odds = self._odds(text, 0.5 if rule is not None else 1.0)
        if rule is not None:
            enough = _DOUBT
            if self._talking:
                enough = _SURE if _NARRATES.search(text) or PAST.search(text) else _DOUBT_TALKING
            if 1 - odds.nothing < enough:
                return None
            return self._fact(text, rule and odds.durable >= odds.passing, said)
        if self._talking and not personal:
            return None
        enough = _SURE if personal else _SURE_IMPERSONAL
        if self._talking:
            enough = _SURE_STORY if _NARRATES.search(text) else _SURE_TALKING
        if 1 - odds.nothing >= enough and len(content_words(text)) > 0:
            return self._fact(text, odds.durable >= odds.passing, said)
        return None

    def _rule(self, text: str, *, sure: bool, personal: bool = True) -> bool | None:
        """Whether the fact that a rule sees in `text` stays true; None when no rule sees one."""
        found = [
            topic
            for topic in self._language.topics
            if topic.sure is sure and (personal or topic.always) and topic.pattern.search(text)
        ]
        if not found:
            return None
        # "A table for my wife's birthday" is about the table; "my name is … and I have an order" is a name.
        return all(topic.static for topic in found) or any(topic.single for topic in found)

    def _odds(self, text: str, otherwise: float) -> Odds:
        """The classifier's verdict; without one `otherwise` is the probability that there is nothing to keep."""
        if self._classifier is None:
            return Odds(otherwise, 1 - otherwise, 0.0)
        return self._classifier.judge([text])[0]

    def _answered(self, asked: Asked, part: str, said: datetime) -> Fact | None:
        answer = part.strip()
        if len(answer.split()) > _SHORT_ANSWER or is_question(answer) or asked.is_no_answer(answer):
            return None
        named = content_words(asked.question)
        if not _DENIES.match(answer) and any(
            len(named & content_words(it.fact.text)) * 2 >= len(named) for it in self._kept if named
        ):
            return None  # the agent repeats what was said, and the caller confirms it
        told = asked.told(answer)
        static = self._rule(told, sure=True)
        if static is None:
            if (
                asked.is_service
                or asked.is_elliptic
                or asked.is_open
                or asked.lacks_time(answer)
                or self._language.asks.search(answer)
            ):
                return None
            if asked.is_yes_or_no(answer) and not (asked.about_caller or asked.wants_detail):
                return None
            odds = self._odds(f"{asked.question} {answer}", 0.0 if asked.wants_detail else 1.0)
            if 1 - odds.nothing < (_SURE if self._talking and not asked.wants_detail else _SURE_ANSWER):
                return None
            static = odds.durable >= odds.passing
        return self._fact(f'Asked "{asked.question}": {answer}', static, said, spoken=answer)

    def _fact(self, text: str, static: bool, said: datetime, *, spoken: str | None = None) -> Fact:
        expires = None
        if not static and (spoken is not None or _FOR_A_TIME.search(text)) and not _LASTING.search(text):
            expires = over_at(spoken or text, said)
        return Fact(text, static, said, expires)

    # Taking back and correcting

    def _manages_memory(self, part: str) -> bool:
        """Whether the sentence only says what to forget. Then what it speaks of is dropped, and it makes no fact."""
        for pattern in self._language.forget:
            found = pattern.search(part)
            if found is not None:
                what = found["what"]
                named = self._known if _EVERYTHING.match(what) else ()
                self._forget.update(dict.fromkeys([it.id for it in named] or named_in(what, self._told)))
                drafts = [Told(it.fact.text, str(i)) for i, it in enumerate(self._kept)]
                dropped = {it.id for it in drafts} if named else set(named_in(what, drafts))
                self._kept = [it for i, it in enumerate(self._kept) if str(i) not in dropped]
                return True
        if self._language.take_back.search(part):
            self._take_back()
            return True
        return False

    def _take_back(self) -> None:
        """Drop what was said just before: in this turn, else in the caller's turn before it."""
        turn = self._turn if any(it.turn == self._turn for it in self._kept) else self._turn - 1
        if turn > 0:
            self._kept = [it for it in self._kept if it.turn != turn]
        if turn < self._turn and self._last_said is not None:
            self._forget.update((it.id, None) for it in self._known if it.at == self._last_said)

    def _corrects(self, part: str, text: str, said: datetime, previous: _Kept | None) -> bool:
        """Whether the sentence corrects what is known or was just said. Then the corrected fact is kept."""
        found = _NOT_BUT.search(part) or _CORRECTION.match(part)
        if found is None:
            return False
        new, old = found["new"].strip(), found.groupdict().get("old")
        if old is not None:
            return self._swap(old.strip(), new, said)
        if previous is None or not _CORRECTS.match(part):
            return False
        self._kept[self._kept.index(previous)] = replace(
            previous, fact=replace(previous.fact, text=f"{previous.fact.text} {part.strip()}")
        )
        return True

    def _swap(self, old: str, new: str, said: datetime) -> bool:
        for kept in reversed(self._kept):
            text = swapped(old, new, kept.fact.text)
            if text is not None:
                self._kept.remove(kept)
                self._kept.append(_Kept(replace(kept.fact, text=text, at=said), self._turn))
                return True
        for it in self._known:
            text = swapped(old, new, it.text)
            if text is not None:
                self._kept.append(_Kept(Fact(text, it.static, said, None, (it.id,)), self._turn))
                return True
        return False
