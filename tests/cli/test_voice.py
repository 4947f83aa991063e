"""`demo --voice` where its parts are absent. Where they are there, it is the business of `make e2e-voice`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from supermemory_livekit.cli.demo.spoken.parts import PARTS, Part, how_to_install

from .support import environment, run

REPOSITORY = Path(__file__).resolve().parents[2]

_WITHOUT = """
import sys
from importlib import util
found = util.find_spec
util.find_spec = lambda name, package=None: None if name in {absent!r} else found(name, package)
"""


def test_without_its_parts_it_names_them_and_the_command_that_installs_them(tmp_path: Path) -> None:
    """Issue: where parts are absent the lane says so."""
    result = _without_two(
        "from supermemory_livekit.cli import main; main()", "demo", "--voice", home=tmp_path
    )
    assert result.returncode == 2
    assert "  faster-whisper==1.2.1: offline speech recognition\n" in result.stdout
    assert 'pip install "faster-whisper==1.2.1"' in result.stdout
    assert '"piper-tts==1.8.0"' in result.stdout
    assert result.stderr == ""


def test_the_lane_skips_where_its_parts_are_absent_and_says_so(tmp_path: Path) -> None:
    """Issue: where they are absent the lane says so and skips."""
    result = _without_two("from tests.e2e_voice.__main__ import main; sys.exit(main([]))", home=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "  piper-tts==1.8.0: speech synthesis" in result.stdout
    assert result.stdout.splitlines()[-1] == "e2e-voice: skipped, parts are missing"


@pytest.mark.parametrize("other", ["--chat", "--without-recall"])
def test_it_is_not_mixed_with_another_kind_of_demo(other: str, tmp_path: Path) -> None:
    """An option that would be passed over without a word is refused."""
    result = run("demo", "--voice", other, home=tmp_path)
    assert result.returncode == 2
    assert "--voice goes with neither" in result.stderr


def test_the_names_for_pip_are_those_of_the_example() -> None:
    """What the demo tells people to install is what the lane runs on."""
    pinned = (REPOSITORY / "examples/spoken_call/requirements.in").read_text("utf-8").splitlines()
    wanted = {part.distribution for part in PARTS if not part.distribution.startswith("livekit")}
    assert {line for line in pinned if line and not line.startswith("#")} == wanted


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.module)
def test_one_missing_part_is_named_alone(part: Part) -> None:
    """Somebody who has the others is not sent to install them again."""
    text = how_to_install([part])
    assert part.distribution in text
    assert not any(other.distribution in text for other in PARTS if other is not part)


def _without_two(code: str, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run `code` where the recogniser and the synthesis are not installed, whatever is here."""
    absent = {part.module for part in PARTS if part.module in ("piper", "faster_whisper")}
    assert len(absent) == 2
    return subprocess.run(
        [sys.executable, "-c", _WITHOUT.format(absent=absent) + code, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(home),
        cwd=REPOSITORY,
        check=False,
    )
