"""Compares what the service has with what was spoken."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import httpx

from .truth import Spoken

__all__ = ["Documents", "Verdict", "compare", "read_documents"]

Documents = Mapping[tuple[str, str], str]
"""Container tag and custom id -> the text that is stored."""

_LINE = re.compile(r"\[[^\]]+\] ((?:Caller|Agent)(?: \(interrupted\))?): ((\S+).*)")
_PAGE = 200


def read_documents(url: str, key: str) -> dict[tuple[str, str], str]:
    """Every document under every tag that the service knows."""
    found: dict[tuple[str, str], str] = {}
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False) as client:
        for tag in client.get("/v3/container-tags/list").raise_for_status().json():
            name, page, pages = tag["containerTag"], 1, 1
            while page <= pages:
                body = {"containerTags": [name], "includeContent": True, "limit": _PAGE, "page": page}
                answer = client.post("/v3/documents/list", json=body).raise_for_status().json()
                for document in answer["memories"]:
                    found[name, document["customId"]] = document["content"]
                page, pages = page + 1, answer["pagination"]["totalPages"]
    return found


@dataclass
class Verdict:
    """Tokens of turns by what is wrong with them."""

    lost: list[str] = field(default_factory=lambda: list[str]())
    doubled: list[str] = field(default_factory=lambda: list[str]())
    reordered: list[str] = field(default_factory=lambda: list[str]())
    crossed: list[str] = field(default_factory=lambda: list[str]())
    """In another caller's tag, or in another document; and lines that nobody has spoken."""
    excused: Counter[str] = field(default_factory=lambda: Counter[str]())
    """Turns that are not stored and need not be, by the reason."""

    @property
    def good(self) -> bool:
        return not (self.lost or self.doubled or self.reordered or self.crossed)


def compare(
    spoken: Mapping[str, Spoken], documents: Documents, excuse: Callable[[Spoken], str | None]
) -> Verdict:
    """`excuse` says why a turn that is not stored need not be, None when it has to."""
    verdict = Verdict()
    stored: Counter[str] = Counter()
    for (tag, document), content in documents.items():
        there: list[Spoken] = []
        for line in content.splitlines():
            match = _LINE.fullmatch(line)
            turn = spoken.get(match[3]) if match else None
            if turn is None or match is None:
                verdict.crossed.append(line[:40])
                continue
            if (turn.tag, turn.document) != (tag, document):
                verdict.crossed.append(turn.token)
            elif (match[1], match[2]) == (turn.role, " ".join(turn.text.split())):
                stored[turn.token] += 1
                there.append(turn)
        verdict.reordered += _out_of_order(there)
    for token, turn in spoken.items():
        if stored[token] > 1:
            verdict.doubled.append(token)
        elif not stored[token]:
            reason = "killed while it was being captured" if not turn.confirmed else excuse(turn)
            if reason is None:
                verdict.lost.append(token)
            else:
                verdict.excused[reason] += 1
    return verdict


def _out_of_order(turns: Sequence[Spoken]) -> list[str]:
    """Turns above which one stands that was spoken later, and was given to `Capture` later.

    The two clocks differ for a reply that is interrupted, which is given when it ends; either order is right then.
    """
    return [
        turn.token
        for place, turn in enumerate(turns)
        if any(above.order > turn.order and above.at > turn.at for above in turns[:place])
    ]
