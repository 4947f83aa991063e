"""What the service answers when it will not do what it was asked. No message repeats what a client sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .shapes import Problem

__all__ = ["AlreadyDone", "Fault", "Missing", "Refused", "TooLarge", "Unsupported", "each"]


class Fault(Exception):
    """An answer other than success."""

    status = 500

    def __init__(self, error: str, details: str | None = None) -> None:
        super().__init__(error)
        self.error = error
        self.details = details


class Refused(Fault):
    """The request is not one the service understands."""

    status = 400


class Missing(Fault):
    """There is no such thing under this tag."""

    status = 404


class AlreadyDone(Fault):
    """It cannot be done twice, or it collides with something else."""

    status = 409


class TooLarge(Fault):
    status = 413


class Unsupported(Fault):
    """The body is of a type that is not taken."""

    status = 415


def each(keys: Iterable[str], do: Callable[[str], object]) -> list[Problem]:
    """Do it for each key; which ones failed, and why."""
    problems: list[Problem] = []
    for key in keys:
        try:
            do(key)
        except Fault as fault:  # noqa: PERF203 - one that fails must not stop the others
            problems.append({"id": key, "error": fault.error})
    return problems
