"""The plugin over the SDK 5.x, which cannot be installed beside 3.x: tests in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .packages import installed

ROOT = Path(__file__).parents[2]
TESTS = (
    "tests/clients/programs/plugin_v5.py",
    "tests/service/test_store.py",
    "tests/service/test_privacy.py::test_no_word_memory_tag_or_key_is_logged_on_any_path[no fault]",
)
"""What 5.x alone does, what a store promises, and a whole call with all its tools, of which nothing is logged."""


# Installing counts, too, the first time.
@pytest.mark.timeout(400)
def test_the_plugin_works_with_the_sdk_5() -> None:
    """Issue: with 3.x and 5.x, whichever is installed."""
    packages = installed("python-5.0")
    program = [sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", *TESTS]
    done = subprocess.run(
        program,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    assert "skipped" not in done.stdout
