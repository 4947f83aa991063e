"""The command itself: version, and what it says without the extra."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from supermemory_livekit._version import __version__

from .support import environment, run


def test_it_tells_its_version(tmp_path: Path) -> None:
    """Design 1: one command."""
    assert run("--version", home=tmp_path).stdout == f"supermemory-livekit {__version__}\n"


@pytest.mark.parametrize("module", ["typer", "uvicorn"])
def test_without_the_extra_it_says_what_to_install(module: str, tmp_path: Path) -> None:
    """Design 1: `pip install supermemory-livekit` brings the command too, so it has to explain itself."""
    without = f"import sys; sys.modules[{module!r}] = None; from supermemory_livekit.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", without, "demo"],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(tmp_path),
        check=False,
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == (
        f'This command needs the extra "local" ({module} missing): pip install "supermemory-livekit[local]"\n'
    )


def test_help_without_the_extra_names_what_works_and_what_needs_it(tmp_path: Path) -> None:
    """A stranger finds what there is, also with the core install."""
    without = "import sys; sys.modules['typer'] = None; from supermemory_livekit.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", without, "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(tmp_path),
        check=True,
    )
    core, needs = result.stdout.split("With the extra")
    assert all(command in core for command in ("doctor", "erase", "export", "flush", "inspect"))
    assert "demo, serve" in needs


def test_help_names_the_commands_and_hides_the_inner_ones(tmp_path: Path) -> None:
    """A stranger finds what there is."""
    result = run("--help", home=tmp_path)
    assert "demo" in result.stdout
    assert "serve" in result.stdout
    assert "demo-part" not in result.stdout
