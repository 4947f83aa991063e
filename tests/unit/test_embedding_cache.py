"""The file of vectors that calls on one machine share."""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.privacy import assert_private

from supermemory_livekit.mirror.embedding_cache import EmbeddingCache

MODEL = "model-1"
SPOKEN = "my secret word is marzipan"


def vector(seed: int, size: int = 8) -> NDArray[np.float32]:
    row = np.random.default_rng(seed).standard_normal(size).astype(np.float32)
    return np.divide(row, np.linalg.norm(row), dtype=np.float32)


def known(cache: EmbeddingCache, *texts: str, model: str = MODEL) -> set[str]:
    return set(cache.get(model, texts))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "embeddings.db"


@pytest.fixture
def cache(path: Path) -> EmbeddingCache:
    return EmbeddingCache(path)


def test_a_vector_comes_back_nearly_as_it_was(cache: EmbeddingCache, path: Path) -> None:
    """Issue "memory that costs the caller no time", point 1: embeddings are cached between calls. float16 is enough."""
    cache.put(MODEL, {SPOKEN: vector(1), "\ud800 half": vector(2)})
    found = EmbeddingCache(path).get(MODEL, [SPOKEN, "\ud800 half", "never seen"])
    assert set(found) == {SPOKEN, "\ud800 half"}
    assert found[SPOKEN].dtype == np.float32
    assert float(found[SPOKEN] @ vector(1)) == pytest.approx(1, abs=1e-3)
    assert float(np.linalg.norm(found[SPOKEN])) == pytest.approx(1, abs=1e-6)


def test_vectors_of_another_model_are_unknown(cache: EmbeddingCache) -> None:
    """Vectors of two models cannot be compared."""
    cache.put(MODEL, {SPOKEN: vector(1)})
    assert known(cache, SPOKEN, model="model-2") == set()


def test_the_file_holds_no_text_and_no_hash_that_another_file_has(tmp_path: Path) -> None:
    """Issue, point 1: hashes and vectors, no text. Keyed, so that no table made elsewhere fits."""
    hashes: list[set[bytes]] = []
    for name in ("one.db", "two.db"):
        EmbeddingCache(tmp_path / name).put(MODEL, {SPOKEN: vector(1)})
        raw = (tmp_path / name).read_bytes()
        for word in (SPOKEN, "marzipan", MODEL):
            assert word.encode() not in raw
        with sqlite3.connect(tmp_path / name) as connection:
            hashes.append({row[0] for row in connection.execute("SELECT hash FROM vectors")})
        connection.close()
    assert len(hashes[0]) == 1
    assert not hashes[0] & hashes[1]


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_only_the_owner_can_read_it(cache: EmbeddingCache, path: Path) -> None:
    """Brief of the mirror: mode 0600; whoever can read it can test guesses."""
    cache.put(MODEL, {SPOKEN: vector(1)})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    assert known(cache, SPOKEN) == {SPOKEN}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.skipif(os.name != "posix", reason="symbolic links")
def test_a_link_that_somebody_left_there_is_not_followed(
    cache: EmbeddingCache, path: Path, tmp_path: Path
) -> None:
    """A cache directory may lie where others can write."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path.parent.mkdir()
    path.symlink_to(victim)
    cache.put(MODEL, {SPOKEN: vector(1)})
    assert victim.read_text() == "precious"
    assert known(cache, SPOKEN) == set()


def test_what_was_used_longest_ago_goes_first(path: Path) -> None:
    """Issue, point 1: one bounded file."""
    day = [0.0]
    cache = EmbeddingCache(path, max_vectors=20, now=lambda: day[0] * 86_400)
    texts = [f"text {n}" for n in range(20)]
    for n, text in enumerate(texts):
        day[0] = float(n)
        cache.put(MODEL, {text: vector(n)})
    day[0] = 30.0
    assert known(cache, texts[0]) == {texts[0]}
    cache.put(MODEL, {"new": vector(99)})
    assert known(cache, *texts, "new") == {"new", texts[0], *texts[3:]}


def test_the_bound_holds_for_one_large_addition(path: Path) -> None:
    """Issue, point 1: bounded."""
    cache = EmbeddingCache(path, max_vectors=20)
    texts = [f"text {n}" for n in range(100)]
    cache.put(MODEL, {text: vector(n) for n, text in enumerate(texts)})
    assert 0 < len(known(cache, *texts)) <= 20


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "no database": lambda raw: b"hello" * 1_000,
    "half a file": lambda raw: raw[: len(raw) // 2],
    "pages of zeros": lambda raw: raw[:4096] + bytes(len(raw) - 4096),
    "a header of zeros": lambda raw: bytes(100) + raw[100:],
    "another version": lambda raw: raw[:60] + (7).to_bytes(4, "big") + raw[64:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_made_anew(cache: EmbeddingCache, path: Path, damage: str) -> None:
    """Brief of the mirror: a damaged file is thrown away and made anew."""
    cache.put(MODEL, {f"text {n}": vector(n, 512) for n in range(50)})
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    cache.get(MODEL, [SPOKEN])
    cache.put(MODEL, {SPOKEN: vector(1)})
    cache.put(MODEL, {"after": vector(2)})
    assert known(cache, SPOKEN, "after") == {SPOKEN, "after"}


def test_a_database_without_our_tables_is_made_anew(cache: EmbeddingCache, path: Path) -> None:
    """As above, for a file that SQLite finds nothing wrong with."""
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    cache.put(MODEL, {SPOKEN: vector(1)})
    assert known(cache, SPOKEN) == {SPOKEN}


@pytest.mark.parametrize("stored", [b"", b"x", b"\x00" * 16, b"\xff" * 16, "text", None])
def test_a_vector_that_is_none_is_not_known(cache: EmbeddingCache, path: Path, stored: object) -> None:
    """Robustness: a flipped bit must not raise in a search much later."""
    cache.put(MODEL, {SPOKEN: vector(1), "sound": vector(2)})
    with sqlite3.connect(path) as connection:
        row = connection.execute("SELECT sql FROM sqlite_master WHERE name='vectors'").fetchone()
        assert row is not None
        if stored is None:
            connection.execute("DELETE FROM vectors")
        else:
            connection.execute("UPDATE vectors SET vector=?", (stored,))
    connection.close()
    assert known(cache, SPOKEN) == set()


def test_where_nothing_can_be_kept_nothing_breaks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Design 6: said once, and the call goes on."""
    caplog.set_level(logging.DEBUG)
    (tmp_path / "file").write_text("in the way")
    cache = EmbeddingCache(tmp_path / "file" / "embeddings.db")
    for _ in range(3):
        cache.put(MODEL, {SPOKEN: vector(1)})
        assert known(cache, SPOKEN) == set()
    assert len(caplog.records) == 1
    assert_private(caplog, [SPOKEN, "marzipan"])


def test_a_file_that_another_process_keeps_locked_is_not_thrown_away(path: Path) -> None:
    """Several processes; whoever waits too long embeds anew."""
    cache = EmbeddingCache(path, patience=0.0)
    cache.put(MODEL, {SPOKEN: vector(1)})
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    assert known(cache, SPOKEN) == set()
    connection.execute("COMMIT")
    connection.close()
    assert known(cache, SPOKEN) == {SPOKEN}


WRITER = """
import sys, numpy as np
from supermemory_livekit.mirror.embedding_cache import EmbeddingCache
cache = EmbeddingCache(sys.argv[1])
for n in range(20):
    cache.put("model-1", {f"{sys.argv[2]} {n}": np.eye(8, dtype=np.float32)[n % 8]})
    cache.get("model-1", [f"{sys.argv[2]} {n}"])
"""


def test_several_processes_use_one_file(cache: EmbeddingCache, path: Path) -> None:
    """Brief of the mirror. LiveKit runs each call in a process of its own."""
    names = ("a", "b", "c")
    running = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in names]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    texts = [f"{name} {n}" for name in names for n in range(20)]
    assert known(cache, *texts) == set(texts)


def test_the_environment_says_where_it_is_or_that_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brief of the mirror: user cache directory, off by the environment, path override."""
    monkeypatch.setenv("SUPERMEMORY_LIVEKIT_CACHE", "off")
    assert EmbeddingCache.from_env() is None
    monkeypatch.setenv("SUPERMEMORY_LIVEKIT_CACHE", str(tmp_path / "here"))
    named = EmbeddingCache.from_env()
    assert named is not None
    assert named.path == tmp_path / "here" / "embeddings.db"
    monkeypatch.delenv("SUPERMEMORY_LIVEKIT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    by_user = EmbeddingCache.from_env()
    assert by_user is not None
    assert by_user.path == tmp_path / "xdg" / "supermemory-livekit" / "embeddings.db"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    by_home = EmbeddingCache.from_env()
    assert by_home is not None
    assert by_home.path == tmp_path / ".cache" / "supermemory-livekit" / "embeddings.db"
