"""The records of a spool file: a checksum and one JSON object a line. Pure.

A damaged or torn record costs only itself. docs/decisions/0008-spool.md describes the records.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, cast

from supermemory_livekit.scope import Scope
from supermemory_livekit.transcript import Line, Turn, restored_line

__all__ = [
    "Key",
    "Left",
    "ack_record",
    "began_after",
    "document_record",
    "header_record",
    "keys_of",
    "read_records",
    "refused_record",
    "sent_record",
    "turn_record",
    "turns_under",
    "without_tag",
]

Key = tuple[int, int]
"""`order` and `part` of a piece of a turn: which one it is in its file."""

_FORMAT = "supermemory-livekit-spool"
_VERSION = 2
_READABLE = (1, 2)
"""Version 1 had no time of sending, and several documents in one file."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass
class Left:
    """What a file holds that no acknowledgement covers."""

    waiting: dict[Scope, list[Turn]] = field(default_factory=lambda: dict[Scope, list[Turn]]())
    """Pieces of turns that were never sent."""
    sent: dict[Scope, list[Line]] = field(default_factory=lambda: dict[Scope, list[Line]]())
    """Lines that may be stored, with the stamps they were sent with."""
    sent_at: datetime | None = None
    """When the last request with such lines began; None when the file does not say."""
    refused: int = 0
    """Turns that the service will never take."""
    unscoped: int = 0
    """Turns whose caller was never bound."""
    damaged: int = 0
    """Records that cannot be read."""
    began: datetime | None = None
    """When the call began; None in files that do not say."""
    known: bool = True
    """False for a file of another format or version: it is not ours to judge."""

    @property
    def scopes(self) -> list[Scope]:
        return list(dict.fromkeys([*self.sent, *self.waiting]))

    @property
    def pieces(self) -> list[Turn]:
        """All that can be delivered."""
        sent = [line.turn for lines in self.sent.values() for line in lines]
        return [*sent, *(turn for turns in self.waiting.values() for turn in turns)]

    def drop_erased(self, scope: Scope, erased_at: datetime) -> None:
        """The caller of this document was erased then: take out all of a call that had begun, as a live one does.

        Where the file does not tell when that was, take out what was said until then.
        """
        if self.began is not None and self.began > erased_at:
            return
        over = self.began is not None
        self.waiting[scope] = [
            turn for turn in self.waiting.get(scope, []) if not over and turn.at > erased_at
        ]
        self.sent[scope] = [
            line for line in self.sent.get(scope, []) if not over and line.turn.at > erased_at
        ]
        self.waiting = {scope: turns for scope, turns in self.waiting.items() if turns}
        self.sent = {scope: lines for scope, lines in self.sent.items() if lines}

    @property
    def turns(self) -> int:
        """Whole turns that can be delivered: the last piece stands for its turn."""
        return sum(turn.part == turn.parts for turn in self.pieces)


def keys_of(pieces: Sequence[Turn]) -> list[Key]:
    """Which pieces these are."""
    return [(piece.order, piece.part) for piece in pieces]


def header_record(began: datetime | None = None) -> bytes:
    """The first record of a file. `began`: the beginning of the call."""
    header: dict[str, Any] = {"format": _FORMAT, "version": _VERSION}
    return _encoded(header if began is None else {**header, "began": _to_ms(began)})


def document_record(number: int, scope: Scope) -> bytes:
    """Gives the document a number, for the records that follow."""
    return _encoded({"t": "doc", "d": number, "tag": scope.container_tag, "doc": scope.document_id})


def turn_record(piece: Turn, number: int | None) -> bytes:
    """One piece of a turn, of the document with this number; None when its caller is not known yet."""
    return _encoded(
        {
            "t": "turn",
            "d": number,
            "n": piece.order,
            "p": piece.part,
            "of": piece.parts,
            "role": piece.role,
            "at": _to_ms(piece.at),
            "i": piece.interrupted,
            "text": piece.text,
        }
    )


def sent_record(stamps: Iterable[tuple[Key, datetime]], at: datetime) -> bytes:
    """A request that begins at `at` carries these pieces with these stamps."""
    lines = [[order, part, _to_ms(stamp)] for (order, part), stamp in stamps]
    return _encoded({"t": "sent", "at": _to_ms(at), "lines": lines})


def ack_record(keys: Iterable[Key]) -> bytes:
    """The service has these."""
    return _encoded({"t": "ack", "lines": [list(key) for key in keys]})


def refused_record(keys: Iterable[Key]) -> bytes:
    """The service will never take these."""
    return _encoded({"t": "refused", "lines": [list(key) for key in keys]})


def without_tag(data: bytes, tag: str) -> tuple[bytes, int]:
    """The contents of a file without what belongs to this container tag, and how many turns of it nobody has.

    Empty when no turn of anybody else is left. A file that does not name the tag stays as it is.
    """
    header, *lines = data.split(b"\n")
    if not read_records(data).known:
        return data, 0
    reader = _Reader()
    for line in filter(None, lines):
        reader.read(line)
    if tag not in reader.tags:
        return data, 0
    kept = [header]
    others = False
    for line in filter(None, lines):
        record = _decoded(line)
        if record is None:  # torn or damaged: nobody can tell whose words it holds
            continue
        if record.get("t") == "doc" and record.get("tag") == tag:
            continue
        if record.get("t") == "turn":
            owner = reader.owner_of((record.get("n"), record.get("p")))
            if owner is not None and owner.container_tag == tag:
                continue
            others = True
        kept.append(line)
    return (b"\n".join([*kept, b""]) if others else b""), sum(
        turn.part == turn.parts for _, turn in reader.pieces_of(tag)
    )


def turns_under(data: bytes, tag: str) -> list[tuple[Scope, Turn]]:
    """The pieces of turns in a file with these contents that belong to a container tag and nobody has."""
    reader = _Reader()
    if data and read_records(data).known:
        for line in filter(None, data.split(b"\n")[1:]):
            reader.read(line)
    return reader.pieces_of(tag)


def read_records(data: bytes) -> Left:
    """What a file with these contents holds."""
    first, *lines = data.split(b"\n")
    header = _decoded(first)
    if header is None or header.get("format") != _FORMAT or header.get("version") not in _READABLE:
        # Blank: emptied when all of it was acknowledged, and perhaps looked at by a process that died.
        return Left(known=not data.strip())
    reader = _Reader()
    for line in filter(None, lines):
        reader.read(line)
    left = reader.left()
    left.began = _began(header)
    return left


def began_after(data: bytes, moment: datetime) -> bool:
    """Whether the call that left a file with these contents is known to have begun after `moment`."""
    header = _decoded(data.split(b"\n", 1)[0])
    began = _began(header) if header is not None else None
    return began is not None and began > moment


def _began(header: dict[str, Any]) -> datetime | None:
    try:
        return _from_ms(header["began"])
    except (KeyError, TypeError, OverflowError):
        return None


class _Reader:
    """Plays the records of one file back."""

    def __init__(self) -> None:
        self._scopes: dict[int, Scope] = {}
        self._pieces: dict[Key, Turn] = {}
        self._owners: dict[Key, int | None] = {}
        self._stamps: dict[Key, datetime] = {}
        self._times: dict[Key, datetime | None] = {}
        self._refused: set[Key] = set()
        self._damaged = 0

    def read(self, line: bytes) -> None:
        try:
            record = _decoded(line)
            if record is None:
                raise ValueError
            self._play(record)
        except (KeyError, TypeError, ValueError, OverflowError):
            self._damaged += 1

    def _play(self, record: dict[str, Any]) -> None:
        kind = record["t"]
        if kind == "doc":
            self._scopes[record["d"]] = Scope(record["tag"], record["doc"], record["doc"])
        elif kind == "turn":
            turn = Turn(
                record["role"],
                record["text"],
                _from_ms(record["at"]),
                record["n"],
                record["i"],
                record["p"],
                record["of"],
            )
            self._pieces[turn.order, turn.part] = turn
            self._owners[turn.order, turn.part] = record["d"]
        elif kind == "bound":
            self._owners.update({key: record["d"] for key, owner in self._owners.items() if owner is None})
        elif kind == "sent":
            at = _from_ms(record["at"]) if "at" in record else None
            stamps = {(n, p): _from_ms(stamp) for n, p, stamp in record["lines"]}
            self._stamps.update(stamps)
            self._times.update(dict.fromkeys(stamps, at))
        elif kind == "ack":
            for n, p in record["lines"]:
                self._pieces.pop((n, p), None)
        elif kind == "refused":
            self._refused.update((n, p) for n, p in record["lines"])
        else:
            raise ValueError

    @property
    def tags(self) -> set[str]:
        """The container tags that the file names."""
        return {scope.container_tag for scope in self._scopes.values()}

    def owner_of(self, key: object) -> Scope | None:
        """Whose a piece is; None when its caller was never bound."""
        owner = self._owners.get(cast("Key", key))
        return self._scopes.get(owner) if owner is not None else None

    def pieces_of(self, tag: str) -> list[tuple[Scope, Turn]]:
        """The pieces of a caller's turns that no acknowledgement covers."""
        owned = ((self.owner_of(key), turn) for key, turn in self._pieces.items())
        return [(owner, turn) for owner, turn in owned if owner is not None and owner.container_tag == tag]

    def left(self) -> Left:
        left = Left(damaged=self._damaged)
        times: list[datetime | None] = []
        for key, turn in self._pieces.items():
            owner = self._owners[key]
            scope = self._scopes.get(owner) if owner is not None else None
            last = turn.part == turn.parts
            if key in self._refused:
                left.refused += last
            elif scope is None:
                left.unscoped += last
            elif key in self._stamps:
                left.sent.setdefault(scope, []).append(restored_line(turn, self._stamps[key]))
                times.append(self._times[key])
            else:
                left.waiting.setdefault(scope, []).append(turn)
        for sent in left.sent.values():
            sent.sort(key=lambda line: line.stamp)
        known = [at for at in times if at is not None]
        left.sent_at = max(known) if known and len(known) == len(times) else None
        return left


def _encoded(record: dict[str, Any]) -> bytes:
    data = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(data), data)


def _decoded(line: bytes) -> dict[str, Any] | None:
    checksum, _, data = line.partition(b" ")
    if b"%08x" % zlib.crc32(data) != checksum:
        return None
    try:
        record = json.loads(data)
    except ValueError:
        return None
    return cast("dict[str, Any]", record) if isinstance(record, dict) else None


def _to_ms(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(milliseconds=1)


def _from_ms(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)
