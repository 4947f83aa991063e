"""Examples run on an embedded memory service of their own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the embedded service. It is there once something asked the service for anything."""
    path = tmp_path / "memory.db"
    monkeypatch.setenv("SUPERMEMORY_BASE_URL", "local")
    monkeypatch.setenv("SUPERMEMORY_LOCAL_PATH", str(path))
    monkeypatch.setenv("SUPERMEMORY_API_KEY", "unused")
    monkeypatch.delenv("OPENAI_MODEL", raising=False)
    return path
