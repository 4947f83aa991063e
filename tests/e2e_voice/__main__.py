"""`make e2e-voice`: the tests of this folder, then one line with figures, for machines.

They are no part of the test suite: they need packages that nothing else needs, and real time.
"""

from __future__ import annotations

import sys

import pytest

from supermemory_livekit.cli.demo.spoken.parts import how_to_install, missing_parts
from tests.e2e_voice.lane import Lane


def main(arguments: list[str]) -> int:
    """Run the lane. Returns pytest's exit code; 0 when parts are missing, which is said."""
    if missing := missing_parts():
        print(how_to_install(missing))
        print("e2e-voice: skipped, parts are missing")
        return 0
    lane = Lane()
    code = pytest.main(["tests/e2e_voice", "--confcutdir=tests/e2e_voice", "-q", *arguments], plugins=[lane])
    print(
        " ".join(f"{name}={value}" for name, value in lane.figures.items()) or "e2e-voice: no call came about"
    )
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
