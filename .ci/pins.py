"""Write constraints.txt: what a fresh install takes today, on every supported Python.

    python .ci/pins.py python3.10 python3.11 python3.12 python3.13

Installs the package with everything that developing it needs into a throw-away environment per interpreter, and merges
what each one got. A version that not every Python takes carries a marker. Needs an index to install from; writes no
name of it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
HEAD = """\
# Exact versions for developing and for `make demo`; what the package itself allows is in pyproject.toml.
# Written by `python .ci/pins.py` for Python {pythons}, on Linux.
"""


def frozen(python: str, folder: Path) -> tuple[str, dict[str, str]]:
    """The version of an interpreter, like "3.11", and what a fresh install into it takes: name -> version."""
    inside = folder / "bin" / "python"
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    pip = [str(inside), "-m", "pip"]
    subprocess.run([*pip, "install", "-q", "--upgrade", "pip"], check=True)
    subprocess.run([*pip, "install", "-q", "-e", ".[local]", "--group", "dev"], check=True, cwd=REPOSITORY)
    listing = _output([*pip, "freeze", "--exclude-editable", "--all"])
    pins = dict(line.split("==", 1) for line in listing.splitlines() if "==" in line)
    pins.pop("setuptools", None)  # came with the environment, nobody asked for it
    version = _output([str(inside), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
    return version.strip(), pins


def _output(command: list[str]) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def merged(pins: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Constraint lines for what each Python version takes."""
    lines: list[str] = []
    for name in sorted({name for taken in pins.values() for name in taken}, key=str.lower):
        versions: dict[str, list[str]] = {}
        for python, taken in pins.items():
            if name in taken:
                versions.setdefault(taken[name], []).append(python)
        for version, pythons in versions.items():
            everywhere = len(versions) == 1 and len(pythons) == len(pins)
            markers = " or ".join(f'python_version == "{python}"' for python in pythons)
            lines.append(f"{name}=={version}" if everywhere else f"{name}=={version} ; {markers}")
    return lines


def main(pythons: list[str]) -> None:
    pins: dict[str, dict[str, str]] = {}
    for python in pythons:
        with tempfile.TemporaryDirectory() as folder:
            version, taken = frozen(python, Path(folder))
        pins[version] = taken
        print(f"{version}: {len(taken)} packages", flush=True)
    text = HEAD.format(pythons=", ".join(pins)) + "\n".join(merged(pins)) + "\n"
    (REPOSITORY / "constraints.txt").write_text(text)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
