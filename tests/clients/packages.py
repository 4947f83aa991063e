"""The official clients, each where no other can see it.

Two of them are the same package in versions that cannot live side by side, others bring a framework. So each is
installed into a directory of its own below `.cache/clients`, without the dependencies that the development environment
has already. The network is needed once; what cannot be installed skips its tests.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["CLIENTS", "Client", "installed"]

_CACHE = Path(__file__).resolve().parents[2] / ".cache" / "clients"
_TIMEOUT = 300


@dataclass(frozen=True)
class Client:
    """A client's packages, and the program that uses it."""

    program: str
    packages: tuple[str, ...]
    npm: bool = False


CLIENTS = {
    "python-3.48": Client("python_v3.py", ("supermemory==3.48.0",)),
    "python-3.62": Client("python_v3.py", ("supermemory==3.62.0",)),
    "python-5.0": Client("python_v5.py", ("supermemory==5.0.1",)),
    "npm-4.25": Client("npm.mjs", ("supermemory@4.25",), npm=True),
    "pipecat": Client(
        "pipecat_service.py",
        (
            "supermemory-pipecat==0.1.5",
            "supermemory==3.62.0",
            "pipecat-ai==1.14.0",
            "loguru==0.7.3",
            "wait_for2==0.4.1",
            "loudness==0.2.0",
            "soxr==1.0.0",
            "sentencex==1.0.32",
        ),
    ),
    "cartesia": Client(
        "cartesia_agent.py",
        (
            "supermemory-cartesia==0.1.5",
            "supermemory==3.62.0",
            "cartesia-line==0.2.19",
            "loguru==0.7.3",
            "python-dotenv==1.2.1",
            "fastapi==0.135.1",
        ),
    ),
}


def installed(name: str) -> Path:
    """The directory with the client in it. Skips the test when it cannot be had."""
    client = CLIENTS[name]
    target = _CACHE / f"{name}-{sys.version_info[0]}.{sys.version_info[1]}"
    wanted = "\n".join(client.packages)
    done = target / "installed.txt"
    if not (done.exists() and done.read_text() == wanted):
        if client.npm and shutil.which("npm") is None:
            pytest.skip("npm is not installed")
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        try:
            result = subprocess.run(
                _command(client, target),
                cwd=target,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            pytest.skip(f"{name} was not installed in {_TIMEOUT} s")
        if result.returncode != 0:
            pytest.skip(f"{name} cannot be installed: {result.stderr.strip().splitlines()[-1:]}")
        done.write_text(wanted)
    return target


def _command(client: Client, target: Path) -> list[str]:
    if client.npm:
        return ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(target), *client.packages]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    return [*pip, "--no-deps", "--target", str(target), *client.packages]
