"""What a caller said must not be in the log."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import pytest

__all__ = ["assert_private"]


def assert_private(caplog: pytest.LogCaptureFixture, secrets: Iterable[str], *, logger: str = "") -> None:
    """Fail when a log record holds a secret: in its message, its arguments, its exception or an extra.

    Extras named `lk.pii.*` may hold anything, since LiveKit strips them where redaction is on. `logger`
    limits the check to one logger and those below it. Capture at DEBUG, or this proves little.
    """
    wanted = [secret for secret in secrets if secret]
    assert wanted, "no secret to look for"
    for record in caplog.records:
        if logger and record.name != logger and not record.name.startswith(f"{logger}."):
            continue
        text = _everything(record)
        for secret in wanted:
            if secret.casefold() in text.casefold():
                pytest.fail(f"a {record.levelname} record of {record.name!r} holds {secret!r}: {text!r}")


_STANDARD = frozenset(vars(logging.makeLogRecord({})))
_FORMATTER = logging.Formatter()


def _everything(record: logging.LogRecord) -> str:
    parts = [record.getMessage(), repr(record.args)]
    if record.exc_info:
        parts.append(_FORMATTER.formatException(record.exc_info))
    parts += [
        repr(value)
        for name, value in vars(record).items()
        if name not in _STANDARD and not name.startswith("lk.pii.")
    ]
    return "\n".join(parts)
