"""What the scripted caller says in two calls, and what the agent has to know in the second one.

Everything that matters is drawn at random, so that no answer can be written down beforehand.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

__all__ = ["Question", "Script"]

_NAMES = ("Amara", "Bastian", "Chiara", "Dmitri", "Elif", "Farah", "Goran", "Hanneke", "Ingrid", "Jorge")
_CITIES = (
    "Aberdeen",
    "Bergen",
    "Coimbra",
    "Dresden",
    "Esbjerg",
    "Ghent",
    "Lausanne",
    "Porto",
    "Turku",
    "Zagreb",
)
_FOODS = ("cashews", "celery", "kiwi", "lupin", "mustard", "oysters", "peanuts", "sesame", "shrimps", "soy")
_INSTRUMENTS = (
    "accordion",
    "bassoon",
    "cello",
    "clarinet",
    "flute",
    "harp",
    "oboe",
    "trombone",
    "viola",
    "zither",
)
_SISTERS = ("Klara", "Leonie", "Mireille", "Noor", "Olga", "Paulina", "Renata", "Sanne", "Tamsin", "Ulrike")
_DOGS = ("Bruno", "Domino", "Fidget", "Ginger", "Hobbit", "Mocha", "Nacho", "Pepper", "Waffle", "Ziggy")


@dataclass(frozen=True)
class Question:
    """A question of the second call."""

    text: str
    expected: str | None
    """What the answer has to hold; None when the agent must not know."""
    refused: tuple[str, ...] = ()
    """What neither the answer nor the recalled notes may hold."""
    outdated: tuple[str, ...] = ()
    """What the answer must not hold."""
    about: str = ""
    """What a right answer shows, for the list at the end."""


@dataclass(frozen=True)
class Script:
    """One scripted caller."""

    seed: int
    name: str
    city: str
    food: str
    sister: str
    instrument: str
    wrong_dog: str
    dog: str
    card: str

    @classmethod
    def draw(cls, seed: int) -> Script:
        """The caller with this number: the same number gives the same caller."""
        chance = random.Random(seed)  # noqa: S311 - no secret, a caller to play
        wrong_dog, dog = chance.sample(_DOGS, 2)
        return cls(
            seed=seed,
            name=chance.choice(_NAMES),
            city=chance.choice(_CITIES),
            food=chance.choice(_FOODS),
            sister=chance.choice(_SISTERS),
            instrument=chance.choice(_INSTRUMENTS),
            wrong_dog=wrong_dog,
            dog=dog,
            card=str(chance.randint(10_000, 99_999)),
        )

    @property
    def tag(self) -> str:
        """The caller's container tag."""
        return f"demo-caller-{self.seed}"

    @property
    def other_tag(self) -> str:
        """The container tag of somebody else, who has never rung."""
        return f"demo-other-caller-{self.seed}"

    @property
    def known_before(self) -> str:
        """A fact that another part of the product stored before the first call."""
        return f"My loyalty card number is {self.card}."

    def first_call(self) -> tuple[str, ...]:
        """Turns of the caller."""
        return (
            f"Hello, my name is {self.name}. I live in {self.city}.",
            f"I am allergic to {self.food}, so please be careful in the kitchen.",
            f"My sister {self.sister} comes along on Friday. She plays the {self.instrument}.",
            f"Please remember that my dog is called {self.wrong_dog}.",
            f"Sorry, that was wrong: my dog is called {self.dog}.",
            "Please forget my loyalty card number.",
            "Thank you, goodbye.",
        )

    def second_call(self) -> tuple[Question, ...]:
        """Questions of the caller, each with what its answer has to hold."""
        return (
            Question("Where do I live?", self.city, about="what was said in the first call"),
            Question("What am I allergic to?", self.food, about="what was said in the first call"),
            Question(
                "Which instrument does my sister play?",
                self.instrument,
                about="what was said in the first call",
            ),
            Question(
                "What is my dog called?",
                self.dog,
                outdated=(self.wrong_dog,),
                about="the corrected fact, not the first one",
            ),
            Question(
                "What is my loyalty card number?",
                None,
                refused=(self.card,),
                about="the forgotten fact is gone",
            ),
        )

    def other_call(self) -> tuple[str, ...]:
        """What somebody else asks, who must be given nothing of it."""
        return ("What is my dog called?", "Where do I live?")

    def secrets(self) -> tuple[str, ...]:
        """What must not reach another caller."""
        return (
            self.name,
            self.city,
            self.food,
            self.sister,
            self.instrument,
            self.wrong_dog,
            self.dog,
            self.card,
        )
