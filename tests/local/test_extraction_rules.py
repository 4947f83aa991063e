"""Facts from calls by rules."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone

import pytest
from bench.facts import Score, measure
from hypothesis import given, settings
from hypothesis import strategies as st

from supermemory_livekit.local.extraction import Changes, Known, Line, RuleExtractor
from supermemory_livekit.local.extraction.classifier import load_classifier
from supermemory_livekit.local.extraction.when import over_at
from supermemory_livekit.retrieval import load_embedder

AT = datetime(2026, 11, 29, 10, tzinfo=timezone.utc)  # a Sunday


def call(*turns: str) -> list[Line]:
    """Turns "C: …" and "A: …", a second apart."""
    return [
        Line(AT + timedelta(seconds=i), "caller" if turn.startswith("C:") else "agent", turn[2:].strip())
        for i, turn in enumerate(turns)
    ]


async def heard(*turns: str, known: tuple[Known, ...] = (), before: list[Line] | None = None) -> Changes:
    return await RuleExtractor(lambda: None).extract(call(*turns), known, at=AT, before=before or [])


def texts(changes: Changes) -> list[str]:
    return [fact.text for fact in changes.add]


def memory(name: str, text: str, *, static: bool = True, at: datetime | None = None) -> Known:
    return Known(name, text, static, at)


async def test_a_fact_is_the_callers_sentence_without_fillers_dated_when_it_was_said() -> None:
    """The embedded service keeps what the caller said, in their words."""
    changes = await heard("A: Hello?", "C: Yeah, well, uh, I live in Porto.")
    (fact,) = changes.add
    assert (fact.text, fact.static, fact.at) == ("I live in Porto.", True, AT + timedelta(seconds=1))


@pytest.mark.parametrize(
    "said",
    [
        "Please remember that my dog is called Rex.",
        "Remember my dog is called Rex.",
        "Please note my dog is called Rex.",
        "Sorry, that was wrong: my dog is called Rex.",
        "Correction: my dog is called Rex.",
    ],
)
async def test_what_introduces_a_statement_is_no_part_of_it(said: str) -> None:
    """The fact is the one that the tool `remember` stores then: known once, and forgotten by one `forget`."""
    assert texts(await heard(f"C: {said}")) == ["My dog is called Rex."]


async def test_what_the_agent_says_of_itself_is_no_fact_about_the_caller() -> None:
    """Case C12."""
    assert await heard("A: I'm Mia and I live in Lisbon.", "C: ok") == Changes()


async def test_a_short_answer_is_kept_with_its_question() -> None:
    """An answer alone says nothing: "for about ten years now"."""
    changes = await heard("A: Are you vegetarian?", "C: Yeah, for about ten years now.")
    assert texts(changes) == ['Asked "Are you vegetarian?": Yeah, for about ten years now.']
    assert changes.add[0].static


async def test_the_question_may_stand_in_a_piece_of_the_call_that_was_read_earlier() -> None:
    """Specification: each write of a call is processed on its own, so question and answer are apart."""
    changes = await heard("C: Okafor.", before=call("A: What's your name?"))
    assert texts(changes) == ['Asked "What\'s your name?": Okafor.']


async def test_turns_read_earlier_make_no_facts() -> None:
    """As above: they are context only."""
    assert await heard("C: Okay.", before=call("C: I live in Porto.")) == Changes()


@pytest.mark.parametrize(
    "said",
    [
        "If I were rich I would live in Paris.",
        "My friend says he's allergic to nuts.",
        "I'm the king of England. Just kidding.",
        "Hold on, I need a pen.",
        "Do I live in Porto?",
        "I love that!",
        "I have a quick question about my order.",
        "I'm getting divorced. Please don't remember that.",
        "私の名前は田中です。",
        "Меня зовут Иван.",
        "",
        "...",
    ],
)
async def test_what_is_not_meant_as_a_statement_about_the_caller_is_no_fact(said: str) -> None:
    """Hypotheticals, hearsay, jokes, talk about the call, questions, and scripts that no rule reads."""
    assert texts(await heard(f"C: {said}")) == []


async def test_the_callers_family_is_part_of_what_is_known_of_them() -> None:
    """A friend's claim is not kept, a daughter's allergy is."""
    assert texts(await heard("C: My daughter is allergic to nuts.")) == ["My daughter is allergic to nuts."]


async def test_a_move_replaces_the_old_home_and_nothing_else() -> None:
    """Reference: a newer fact supersedes the older one of the same kind."""
    known = (
        memory("home", "Caller lives in Lisbon."),
        memory("tea", "I like tea."),
        memory("n", "My name is Jo."),
    )
    changes = await heard("C: I moved to Porto.", known=known)
    assert [(fact.text, fact.replaces) for fact in changes.add] == [("I moved to Porto.", ("home",))]


async def test_the_same_slot_is_recognised_across_languages() -> None:
    """A caller may speak another language in the next call."""
    changes = await heard("C: Ich wohne jetzt in Hamburg.", known=(memory("home", "I live in Lisbon."),))
    assert changes.add[0].replaces == ("home",)


async def test_a_favourite_of_one_kind_leaves_the_others() -> None:
    """As above."""
    known = (memory("c", "My favorite color is green."), memory("t", "My favorite team is Benfica."))
    assert (await heard("C: My favorite color is blue.", known=known)).add[0].replaces == ("c",)


async def test_a_correction_is_written_into_the_fact_that_it_corrects() -> None:
    """ "No, it's Porto, not Lisbon" says nothing when it is read alone."""
    changes = await heard("C: No, it's Porto, not Lisbon.", known=(memory("home", "I live in Lisbon."),))
    assert [(fact.text, fact.replaces) for fact in changes.add] == [("I live in Porto.", ("home",))]


@pytest.mark.parametrize(
    "said",
    [
        "Sorry, that was wrong: my dog is called Max.",
        "I said that wrong. My dog is called Max.",
        "Correction: my dog is called Max.",
    ],
)
async def test_what_is_said_anew_because_it_was_wrong_replaces_what_was_said(said: str) -> None:
    """A corrected fact is the new one alone, in the same call and in a later one; whoever has two dogs keeps both."""
    in_one_call = await heard("C: My dog is called Rex. My sister is called Eva.", f"C: {said}")
    assert texts(in_one_call) == ["My sister is called Eva.", "My dog is called Max."]
    known = (memory("a", "My dog is called Rex."), memory("b", "My sister is called Eva."))
    later = await heard(f"C: {said}", known=known)
    assert [(fact.text, fact.replaces) for fact in later.add] == [("My dog is called Max.", ("a",))]
    second_dog = await heard("C: My dog is called Max.", known=known)
    assert [fact.replaces for fact in second_dog.add] == [()]


async def test_what_holds_no_more_replaces_what_was_said_before() -> None:
    """Negations."""
    known = (memory("v", "I'm a vegetarian."), memory("d", "I have a dog."))
    changes = await heard("C: I'm not vegetarian any more.", known=known)
    assert [(fact.text, fact.replaces) for fact in changes.add] == [("I'm not vegetarian any more.", ("v",))]


async def test_a_value_corrected_later_in_the_same_call_is_kept_once() -> None:
    """The later statement holds."""
    assert texts(await heard("C: I live in Lisbon.", "A: Ok.", "C: Sorry, I live in Porto.")) == [
        "I live in Porto."
    ]


async def test_two_sides_of_one_thing_said_in_one_turn_are_both_kept() -> None:
    """Only what is said later, or taken back, changes a value."""
    both = await heard("C: I'm a nurse and I work at St Mary's.")
    assert texts(both) == ["I'm a nurse.", "I work at St Mary's."]
    assert texts(await heard("C: I live in Lisbon. Sorry, I live in Porto.")) == ["I live in Porto."]


async def test_a_known_fact_is_not_added_again() -> None:
    """Reference: the same fact is stored once."""
    known = (memory("a", "The caller is allergic to peanuts."),)
    assert texts(await heard("C: Remember, I'm allergic to peanuts!", known=known)) == []


async def test_its_opposite_is_added_although_it_has_the_same_words() -> None:
    """A negation is not a repetition."""
    changes = await heard("C: I don't like tea.", known=(memory("a", "I like tea."),))
    assert changes.add[0].replaces == ("a",)


async def test_forgetting_names_the_memory_and_does_not_bring_the_fact_back() -> None:
    """A turn that only manages memory must not store again what it wants forgotten."""
    known = (memory("home", "I live at 12 Elm Road."), memory("tea", "I like tea."))
    assert await heard("C: Forget my old address, please.", known=known) == Changes((), ("home",))
    assert await heard("C: Please forget that I like tea.", known=known) == Changes((), ("tea",))


async def test_forgetting_what_is_not_known_forgets_nothing() -> None:
    """Case T2: no near match is deleted."""
    known = (memory("n", "I'm allergic to nuts."),)
    assert await heard("C: Forget that I'm allergic to milk.", known=known) == Changes()


@pytest.mark.parametrize(
    "said",
    [
        "Don't forget that I like tea.",
        "I always forget my tea.",
        "I don't remember that.",
        "Don't mention it.",
        "I'll never forget that day.",
        "No olvide mi té.",
    ],
)
async def test_only_a_wish_to_be_forgotten_forgets(said: str) -> None:
    """The same words are used for the opposite, and of the caller's own memory."""
    before = call("C: I like tea.")
    known = (memory("tea", "I like tea.", at=before[0].at),)
    assert (await heard(f"C: {said}", known=known, before=before)).forget == ()


@pytest.mark.parametrize(
    "said",
    [
        "My name is on the list.",
        "My address is wrong in your system.",
        "I used to live in Berlin.",
        "I work from home on Fridays.",
        "I turned left at the church.",
        "My phone number is still the same.",
    ],
)
async def test_what_names_no_new_value_replaces_nothing(said: str) -> None:
    """A superseded memory is out of search: only a newer value may do that."""
    known = tuple(
        memory(text, text)
        for text in (
            "My name is Jo.",
            "My address is 4 Elm Road.",
            "I live in Lisbon.",
            "I work as a teacher.",
            "I'm forty years old.",
            "My phone number is 555 0100.",
        )
    )
    assert [old for fact in (await heard(f"C: {said}", known=known)).add for old in fact.replaces] == []


async def test_forgetting_one_number_leaves_the_others() -> None:
    """Case T2, for slots that share a word."""
    known = (memory("p", "My phone number is 555 0100."), memory("a", "My account number is 77120."))
    assert (await heard("C: Please forget my account number.", known=known)).forget == ("a",)
    assert (await heard("C: Please forget my number.", known=known)).forget == ("p",)


async def test_everything_is_forgotten_when_the_caller_asks_for_that() -> None:
    """The caller decides what is kept."""
    known = (memory("a", "I like tea."), memory("b", "I live in Porto."))
    changes = await heard("C: I smoke.", "C: Please delete everything you know about me.", known=known)
    assert changes == Changes((), ("a", "b"))


async def test_a_wish_not_to_be_remembered_reaches_the_turn_before_also_when_it_is_stored() -> None:
    """Writes are processed one by one: the fact may be a memory already when it is taken back."""
    said = call("C: My salary is eighty thousand.", "A: Okay.")
    known = (
        memory("s", "My salary is eighty thousand.", at=said[0].at),
        memory("t", "I like tea.", at=AT - timedelta(1)),
    )
    assert await heard("C: Oh, don't save that.", known=known, before=said) == Changes((), ("s",))


async def test_an_appointment_expires_after_its_day_and_a_name_never() -> None:
    """What was only for a time is not recalled for ever (case R10)."""
    changes = await heard("C: My name is Ana and I have a dentist appointment tomorrow at nine.")
    name, appointment = changes.add
    assert (name.static, name.expires) == (True, None)
    assert (appointment.static, appointment.expires) == (
        False,
        datetime(2026, 12, 1, 12, tzinfo=timezone.utc),
    )


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("tomorrow at nine", "2026-11-30"),
        ("this Friday", "2026-12-04"),
        ("on the twelfth of December", "2026-12-12"),
        ("December 3rd", "2026-12-03"),
        ("January 2nd", "2027-01-02"),
        ("in two weeks", "2026-12-13"),
        ("tonight", "2026-11-29"),
        ("until the fifteenth", "2026-12-15"),
        ("morgen um neun", "2026-11-30"),
        ("el lunes", "2026-11-30"),
    ],
)
def test_days_to_come_end_at_noon_of_the_day_after(said: str, day: str) -> None:
    """No time zone is said: nobody's day is over later than that."""
    assert over_at(said, AT) == datetime.fromisoformat(day).replace(hour=12, tzinfo=timezone.utc) + timedelta(
        days=1
    )


@pytest.mark.parametrize(
    "said", ["last Friday", "every Monday", "on Mondays", "two days ago", "February 30", "soon"]
)
def test_days_past_or_recurring_never_end(said: str) -> None:
    """They are no appointments."""
    assert over_at(said, AT) is None


async def test_lines_without_a_time_are_dated_with_the_documents() -> None:
    """Other clients send no times."""
    changes = await RuleExtractor(lambda: None).extract([Line(None, "caller", "I live in Porto.")], [], at=AT)
    assert changes.add[0].at == AT


_SPOKEN = ["no", "it's", "not", "Lisbon", "I", "live", "in", "forget", "my", "that", "and", "sorry", "mean"]
_WORDS = [*_SPOKEN, *[",", ".", "?", "!", '"', "'", "¿", "9", "ü", "🙂", "\ud800"]]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(_WORDS), max_size=14))
async def test_no_words_make_extraction_fail(words: list[str]) -> None:
    """Speech recognition gives anything."""
    known = (memory("a", "I live in Lisbon."), memory("b", ""))
    changes = await heard(
        f"C: {' '.join(words)}", "A: What's your name?", f"C: {''.join(words)}", known=known
    )
    assert {old for fact in changes.add for old in fact.replaces} | set(changes.forget) <= {"a", "b"}


@pytest.mark.parametrize(
    "said", ["not " * 60_000, "a. " * 60_000, "no, it's " * 30_000, "forget my " * 30_000, "a" * 250_000]
)
async def test_a_turn_of_any_length_is_read_in_bounded_time(said: str) -> None:
    """Case C13: a turn of 250,000 characters. A pattern that backtracks would take minutes."""
    known = tuple(memory(str(i), f"I live at {i} Elm Road.") for i in range(200))
    await asyncio.wait_for(heard(f"C: {said}", known=known), 30)


def _enough(score: Score, precision: float, recall: float) -> bool:
    return score.precision >= precision and score.recall >= recall


@pytest.mark.parametrize("name", ["dev", "heldout"])
async def test_facts_of_labelled_calls_are_found_by_rules_alone(name: str) -> None:
    """docs/decisions/0004: the aim is a precision of 0.85 and a recall of 0.75."""
    assert _enough(await measure(name, RuleExtractor(lambda: None), show=False), 0.85, 0.75)


@pytest.mark.parametrize("name", ["dev", "heldout"])
async def test_facts_of_labelled_calls_are_found_with_the_sentence_encoder(name: str) -> None:
    """As above."""
    assert load_classifier(load_embedder()) is not None, (
        "fit the classifier again: python bench/train_facts.py"
    )
    assert _enough(await measure(name, RuleExtractor(), show=False), 0.85, 0.75)


async def test_the_encoder_finds_facts_that_no_rule_names() -> None:
    """The classifier's reason to be."""
    said = "C: I volunteer at the fire station twice a month."
    assert texts(await heard(said)) == []
    assert len((await RuleExtractor().extract(call(said), [], at=AT)).add) == 1


class _OtherEncoder:
    """Stands for an encoder that the weights were not fitted to."""

    model_id = "another"
    dimensions = 512

    def embed(self, texts: object) -> object:
        raise AssertionError("its vectors mean nothing to these weights")

    similarity = embed


def test_weights_fitted_to_another_encoder_are_not_used() -> None:
    """Vectors of two encoders cannot be compared."""
    assert load_classifier(_OtherEncoder()) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (
            "hi my name is anna, i'm calling about a bill can you hear me",
            ["Hi my name is anna."],
        ),
        (
            "I'm staying with my aunt in Hull till the ninth so can you bring it there",
            ["I'm staying with my aunt in Hull till the ninth."],
        ),
        ("If I had a dog, I would walk it, I would call it Rex", []),
        (
            "my neighbour's a plumber, I'm allergic to nuts. I like tea, my dog is called Rex",
            ["I like tea, my dog is called Rex."],
        ),
    ],
)
async def test_speech_without_stops_is_cut_into_statements(said: str, kept: list[str]) -> None:
    """Speech recognition writes few stops. What follows a comma is supposed or quoted with what stands before it."""
    assert texts(await heard(f"C: {said}")) == kept


@pytest.mark.parametrize(
    "said",
    [
        "I'm the queen of Sheba.",
        "Oh wonderful, I just love waiting.",
        "I'm allergic to Mondays, ha ha.",
        "My mate Tom lives in Rome.",
        "A friend of mine works as a nurse.",
        "The man behind me goes I'm from Rome.",
        "I just wanted to know if you have vegetarian food.",
        "Ich wollte nur wissen, ob ich einen Termin brauche.",
        "Quería saber si tengo que pedir cita.",
        "Je voulais savoir si ma commande est prête.",
        "Queria saber se tenho consulta.",
        "Volevo sapere se ho una prenotazione.",
        "Ik wilde weten of mijn bestelling klaar is.",
        "do i need an appointment for my dog",
        "I don't have my insurance number with me.",
        "Don't write this down, but I have diabetes.",
        "Between you and me, I have diabetes.",
    ],
)
async def test_jokes_other_people_and_indirect_questions_are_no_facts(said: str) -> None:
    """Kinds of false facts that were found in strangers' calls and in sentences written to provoke them."""
    assert texts(await heard(f"C: {said}")) == []


@pytest.mark.parametrize(
    "said",
    [
        "hi it's greg about my order",
        "Hello, this is Paul Finch speaking.",
        "fletcher here, good morning",
        "Guten Tag, Köhler hier",
        "hola, soy Marisa",
        "bonjour, c'est madame Perrin",
        "olá, daqui fala a Teresa",
        "buongiorno, sono la signora Conti",
        "ja hallo met Joke de Wit",
    ],
)
async def test_who_says_their_name_as_a_greeting_is_known_by_it(said: str) -> None:
    """Callers seldom say "my name is"."""
    (fact,) = (await heard(f"C: {said}")).add
    assert fact.static


@pytest.mark.parametrize(
    "said", ["hi it's about my bill", "hi it's raining", "I'm here", "hello, it's me again"]
)
async def test_a_greeting_without_a_name_is_no_name(said: str) -> None:
    """As above."""
    assert texts(await heard(f"C: {said}")) == []


@pytest.mark.parametrize(
    "said",
    [
        "it's oh seven seven, double two, four one nine six three",
        "ann dot lee at mail dot com",
        "555 0143 7712",
    ],
)
async def test_numbers_and_addresses_are_facts_as_they_are_spoken(said: str) -> None:
    """A number or an e-mail address is spelled out on the phone; an answer in digits has no letters at all."""
    assert len((await heard("A: How can we reach you?", f"C: {said}")).add) == 1


async def test_a_pronoun_reaches_back_to_the_callers_animal() -> None:
    """ "He can't eat beef" says nothing without the dog; said of nobody it is no fact."""
    later = ("A: Sure.", "C: Is it in stock? Oh, and he can't eat beef.")
    extractor = RuleExtractor()
    changes = await extractor.extract(call("C: Our dog is called Rex.", *later), [], at=AT)
    assert texts(changes) == ["Our dog is called Rex. And he can't eat beef."]
    assert (await extractor.extract(call(*later), [], at=AT)).add == ()


async def test_what_the_agent_had_wrong_is_replaced_by_what_holds_now() -> None:
    """The new sentence need not name the slot: "No, I'm at a school now"."""
    known = (memory("job", "I work at the bank."), memory("tea", "I like tea."))
    changes = await heard(
        "A: Are you still working at the bank?", "C: No, I work for a school now.", known=known
    )
    assert [fact.replaces for fact in changes.add] == [("job",)]
    milk = (memory("milk", "I take my tea with two sugars."),)
    changes = await heard("A: Tea with two sugars?", "C: No, I always take honey now.", known=milk)
    assert [fact.replaces for fact in changes.add] == [("milk",)]


async def test_an_answer_that_confirms_what_is_known_adds_nothing() -> None:
    """Reference: the same fact is stored once."""
    known = (memory("home", "I live at 12 Elm Road."),)
    assert texts(await heard("A: Do you still live at 12 Elm Road?", "C: Yes.", known=known)) == []


async def test_an_answer_to_a_question_that_names_nothing_is_not_kept() -> None:
    """'Asked "Since when?": last year' cannot be understood later."""
    assert texts(await heard("C: I live in Porto.", "A: Since when?", "C: last year")) == ["I live in Porto."]


async def test_a_memory_is_named_also_by_a_longer_wish() -> None:
    """Callers add which one they mean."""
    known = (memory("home", "I live at 12 Elm Road."), memory("tea", "I like tea."))
    changes = await heard("C: Forget my old address, the one near the park please.", known=known)
    assert changes == Changes((), ("home",))


async def test_facts_of_strangers_calls_are_found() -> None:
    """docs/decisions/0004: calls written by somebody who never saw the rules."""
    assert _enough(await measure("strangers", RuleExtractor(), show=False), 0.88, 0.78)


async def test_facts_of_talkative_strangers_are_found() -> None:
    """docs/decisions/0004: calls of people who digress, written by somebody who never saw the rules."""
    assert _enough(await measure("talkers", RuleExtractor(), show=False), 0.76, 0.69)


async def test_facts_of_calls_that_nobody_has_read_are_found() -> None:
    """docs/decisions/0004: short calls of all kinds, by a third stranger; their sums alone are known."""
    assert _enough(await measure("unread", RuleExtractor(), show=False), 0.9, 0.8)


@pytest.mark.parametrize(
    "said",
    [
        "A: How was the concert? / C: my brother lost his hat and we all sang",
        "A: How are you today? / C: like a rusty gate",
        "A: When can the nurse call? / C: this week is a bad one",
        "A: Would you rather mornings or evenings? / C: Hold on. It's the parcel man.",
        "C: I work in Kilburn, no, what am I saying.",
        "C: The man at the till goes, I'm allergic to coins, and I'm off for my tea.",
    ],
)
async def test_moods_stories_quotes_and_half_sentences_are_no_facts(said: str) -> None:
    """docs/decisions/0004: what talkative people say on the way to a fact."""
    assert texts(await heard(*said.split(" / "))) == []


async def test_an_answer_that_only_confirms_what_the_agent_repeats_adds_nothing() -> None:
    """Reference: the same fact is stored once."""
    said = (
        "C: My email is ann dot lee at mail dot com.",
        "A: So ann dot lee at mail dot com?",
        "C: that's it",
    )
    assert len((await heard(*said)).add) == 1


async def test_a_tag_does_not_make_a_question_of_a_statement() -> None:
    """ "You know?" asks for nothing."""
    assert texts(await heard("C: I work nights at the hospital, you know?")) == [
        "I work nights at the hospital."
    ]


@pytest.mark.parametrize(
    "said",
    [
        "Ich habe Diabetes, aber das bitte nicht aufschreiben.",
        "Tengo diabetes, pero eso no lo apunte.",
        "J'ai du diabète, mais ne le notez surtout pas.",
        "J'ai du diabète, mais notez pas ça.",
        "Tenho diabetes, mas isso não é para apontar.",
        "Ho il diabete, però questo non lo scriva.",
        "Ik heb diabetes, maar dat hoeft u niet op te schrijven.",
    ],
)
async def test_what_is_not_to_be_written_down_is_not_in_any_language(said: str) -> None:
    """Issue: consent; a wish that comes after the words holds for them."""
    assert texts(await heard(f"C: {said}")) == []


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ("Können Sie bitte meine Adresse löschen?", "Meine Adresse ist Lindenweg 4."),
        ("¿Puede borrar mi dirección?", "Mi dirección es calle Sol 4."),
        ("Pourriez-vous supprimer mon adresse ?", "Mon adresse est 4 rue du Lac."),
        ("Olhe, pode apagar a minha morada, obrigado?", "A minha nova morada é Rua do Sol 4."),
        ("Può cancellare il mio indirizzo?", "Il mio indirizzo è via Roma 4."),
        ("Kunt u mijn adres verwijderen?", "Mijn adres is Dorpsstraat 4."),
    ],
)
async def test_a_polite_wish_to_have_something_forgotten_is_one_in_any_language(
    said: str, known: str
) -> None:
    """Issue: "forget my old address"."""
    changes = await heard(f"C: {said}", known=(memory("k1", known),))
    assert list(changes.forget) == ["k1"]
    assert texts(changes) == []
