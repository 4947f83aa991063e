"""What a scripted service does with one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["Answer", "Fail", "Hang", "Step", "UnexpectedCall", "Work"]


class UnexpectedCall(AssertionError):
    """A double was called in a way that its test did not allow, or its script was not used up.

    The code under test may swallow it, as it must swallow any failure of a service; so doubles also collect
    what was wrong and raise it again from `verify()` and at the end of their context.
    """


@dataclass(frozen=True)
class Answer:
    """Return `value` as it is and change nothing, `after` seconds of the loop's clock."""

    value: Any
    after: float = 0.0


@dataclass(frozen=True)
class Work:
    """Do what was asked at once, and say so `after` seconds later.

    A deadline that passes before that ends the call, although what was asked is done.
    """

    after: float = 0.0


@dataclass(frozen=True)
class Fail:
    """Raise `error`, `after` seconds of the loop's clock.

    With `committed`, what was asked is done all the same.
    """

    error: BaseException
    after: float = 0.0
    committed: bool = False


@dataclass(frozen=True)
class Hang:
    """Never answer: the call ends by its own deadline or by cancellation.

    With `committed`, what was asked is done all the same. With `deaf`, the deadline is ignored too, as by a
    client that does not keep its contract.
    """

    committed: bool = False
    deaf: bool = False


Step: TypeAlias = "Answer | Fail | Hang | Work"
