"""Callers of the reply benchmark: what is remembered of them, and what they ask. Made of templates, from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

__all__ = ["Person", "Question", "people"]

PEOPLE = """Ana Ben Carla David Elena Frank Greta Hugo Ines Jonas Klara Leo Marta Nils Olga Paul Rosa Stefan Tilda Umar
Vera Walter Xenia Yusuf Zelda Anton Birgit Cesar Doris Emil Fatima Gustav Hanna Igor Julia Karim Lena Milan Nora
Oskar""".split()  # noqa: SIM905
PLACES = """Porto Lisbon Berlin Madrid Leeds Oslo Turin Lyon Ghent Graz Cork Malmo Bergen Utrecht Gdansk Seville Bath
Zurich Dresden Nantes""".split()  # noqa: SIM905
THINGS = """bicycle piano kayak camera violin tent telescope sofa fridge drill guitar laptop printer stove carpet lamp
dishwasher scooter projector freezer""".split()  # noqa: SIM905
DISHES = "peanuts mushrooms shrimp walnuts celery gluten soy eggs mustard sesame".split()  # noqa: SIM905
JOBS = "nurse baker pilot carpenter lawyer gardener plumber translator chemist tailor".split()  # noqa: SIM905
PETS = "cat dog parrot tortoise rabbit horse".split()  # noqa: SIM905
DOCTORS = "dentist physiotherapist optician dermatologist cardiologist vet".split()  # noqa: SIM905
PARTS = "bathroom kitchen cellar balcony garage attic hallway bedroom".split()  # noqa: SIM905
COLOURS = "green yellow grey blue white red purple orange".split()  # noqa: SIM905
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday".split()  # noqa: SIM905
BILLS = "electricity water internet phone insurance heating parking gym".split()  # noqa: SIM905


@dataclass(frozen=True)
class Relation:
    """One kind of fact. `{key}` is what tells it from others of its kind, the telling word of its questions."""

    keys: list[str]
    values: list[str]
    fact: str
    early: tuple[str, ...]
    """Questions that name the key at the beginning."""
    late: tuple[str, ...]
    """Questions that end with the key."""


RELATIONS = (
    Relation(
        PEOPLE,
        PLACES,
        "Caller's friend {key} lives in {value}.",
        (
            "{key}, you know, in what town do they live these days",
            "has {key} moved or where do they live now",
        ),
        (
            "sorry I keep forgetting this what was the town of my friend {key}",
            "where is it again that I visit {key}",
        ),
    ),
    Relation(
        THINGS,
        [f"{n} euros" for n in range(45, 990, 35)],
        "Caller paid {value} for the {key}.",
        ("that {key} I bought, how much was it again", "the {key}, what did I end up paying for it"),
        (
            "could you tell me how much money I spent on the {key}",
            "hey quick thing what did I pay for that {key}",
        ),
    ),
    Relation(
        PEOPLE,
        [f"{day} {month}" for month in ("March", "May", "July", "October") for day in (3, 9, 14, 22, 27)],
        "{key}'s birthday is on {value}.",
        (
            "when {key} has a birthday I always forget the date, when is it",
            "so {key}, which day is the birthday",
        ),
        (
            "I need to buy a present so on which date is the birthday of {key}",
            "when do I have to congratulate {key}",
        ),
    ),
    Relation(
        PEOPLE,
        JOBS,
        "{key} works as a {value}.",
        (
            "{key} changed jobs, what is it they do for a living now",
            "what {key} does for work, did I ever say",
        ),
        (
            "I was wondering if you know what kind of job they have, I mean {key}",
            "what is the profession of {key}",
        ),
    ),
    Relation(
        PEOPLE,
        DISHES,
        "{key} is allergic to {value}.",
        ("{key} is coming for dinner, is there anything they must not eat", "is {key} allergic to anything"),
        (
            "I am cooking tonight, which food is bad for my guest {key}",
            "remind me what allergy they have, {key}",
        ),
    ),
    Relation(
        PETS,
        ["Biscuit", "Pepper", "Mocha", "Ziggy", "Luna", "Pickle", "Waffle", "Comet"],
        "Caller's {key} is called {value}.",
        ("my {key} needs a name tag, what is the name I gave you", "the {key} I have, what do I call it"),
        (
            "did I ever tell you the name of our {key}",
            "let us see if you remember, what is the name of my {key}",
        ),
    ),
    Relation(
        DOCTORS,
        [f"{day} at {hour}" for day in DAYS for hour in ("nine", "eleven", "three")],
        "Caller's appointment with the {key} is on {value}.",
        ("the {key}, when am I supposed to be there", "is my {key} appointment this week or when is it"),
        ("can you check for me when I have the appointment with the {key}", "when am I due at the {key}"),
    ),
    Relation(
        PARTS,
        COLOURS,
        "Caller painted the {key} {value}.",
        (
            "the {key} walls, which colour did I choose in the end",
            "for the {key} I need paint, what colour is it",
        ),
        (
            "I am at the shop, what was the colour we used in the {key}",
            "which colour of paint is in our {key}",
        ),
    ),
    Relation(
        BILLS,
        [str(n) for n in range(20417, 99000, 1931)],
        "Caller's customer number for {key} is {value}.",
        (
            "the {key} company wants my customer number, what is it",
            "for {key}, do you have my customer number",
        ),
        (
            "I have them on the other line, what is my customer number for {key}",
            "give me my number for the {key}",
        ),
    ),
    Relation(
        PLACES,
        [str(n) for n in range(10_311, 99_000, 2_113)],
        "Caller's booking number for the hotel in {key} is {value}.",
        (
            "{key}, the hotel there, what was my booking number",
            "my trip to {key}, which hotel booking number is it",
        ),
        (
            "I am packing now and need the booking number of the hotel in {key}",
            "what was my hotel booking in {key}",
        ),
    ),
    Relation(
        THINGS,
        PEOPLE,
        "Caller lent the {key} to {value}.",
        ("the {key} is missing, who did I lend it to", "who has my {key} at the moment"),
        ("I am looking all over the house, who is it that borrowed my {key}", "to whom did I lend the {key}"),
    ),
    Relation(
        PLACES,
        DAYS,
        "Caller's train to {key} leaves on {value}.",
        ("to {key}, what day is my train going", "I am going to {key} by train, which day was that"),
        ("what day of the week did I say I am taking the train to {key}", "when does my train go to {key}"),
    ),
)


@dataclass(frozen=True)
class Question:
    """What a caller asks in one turn."""

    segments: tuple[str, ...]
    """The words, with a short silence between segments."""
    fact: str
    """The memory that answers it."""
    late: bool
    """The telling word comes last."""


@dataclass(frozen=True)
class Person:
    """One caller."""

    tag: str
    memories: tuple[str, ...]
    questions: tuple[Question, ...]


def people(seed: int, sizes: list[int], questions: int) -> list[Person]:
    """One caller for each size, with that many memories, who asks so many questions, each about another memory."""
    return [
        _person(random.Random(f"{seed}:{n}"), f"caller-{n}", size, questions) for n, size in enumerate(sizes)
    ]


def _person(made: random.Random, tag: str, size: int, questions: int) -> Person:
    kinds = [(relation, key) for relation in RELATIONS for key in relation.keys]
    if not questions <= size <= len(kinds) * 4:
        raise ValueError(f"a caller with {size} memories cannot ask {questions} questions")
    made.shuffle(kinds)
    held = [
        (relation, key, relation.fact.format(key=key, value=made.choice(relation.values)))
        for relation, key in kinds[:size]
    ]
    asked = [
        _question(made, relation, key, fact, late=number % 2 == 1)
        for number, (relation, key, fact) in enumerate(held[:questions])
    ]
    memories = [fact for _, _, fact in held]
    while len(memories) < size:
        other = f"On the {len(memories)}th call, {made.choice(PEOPLE)} and the caller talked of {made.choice(PLACES)}"
        memories.append(f"{other} and of a {made.choice(THINGS)}.")
    made.shuffle(asked)
    made.shuffle(memories)
    return Person(tag, tuple(memories), tuple(asked))


def _question(made: random.Random, relation: Relation, key: str, fact: str, *, late: bool) -> Question:
    words = made.choice(relation.late if late else relation.early).format(key=key).split()
    if made.random() < 0.25 and len(words) > 6:  # with a pause for thought
        cut = made.randrange(3, len(words) - 2)
        return Question((" ".join(words[:cut]), " ".join(words[cut:])), fact, late)
    return Question((" ".join(words),), fact, late)
