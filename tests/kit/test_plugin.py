"""The pytest plugin as users meet it: loaded by itself, quiet, and free for those who do not use it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = "pytester"

INI = """
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
filterwarnings = error
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini(INI)
    return pytester


def run(project: pytest.Pytester, *args: str) -> pytest.RunResult:
    return project.runpytest_inprocess("-p", "no:cacheprovider", *args)


@pytest.mark.timeout(120)
def test_a_run_that_uses_no_fixture_imports_neither_livekit_nor_the_package(tmp_path: Path) -> None:
    """Kit: pytest loads the plugin in every project of the environment; there it must cost nothing."""
    (tmp_path / "pytest.ini").write_text(INI, "utf-8")
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_it(pytestconfig):\n"
        "    assert pytestconfig.pluginmanager.has_plugin('supermemory_livekit')\n"
        "    loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "    assert not loaded & {'livekit', 'supermemory', 'supermemory_livekit', 'httpx', 'pydantic'}\n",
        "utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "warning" not in done.stdout


def test_every_fixture_has_the_prefix_and_says_what_it_is(project: pytest.Pytester) -> None:
    """Kit: names that never collide, found by `pytest --fixtures`."""
    import _supermemory_livekit_pytest as plugin

    names = {name for name in vars(plugin) if name.startswith("supermemory")}
    assert names == {"supermemory_clock", "supermemory_local", "supermemory_store"}
    listed = run(project, "--fixtures").stdout.str()
    assert [
        name for name in names if not re.search(rf"^{name} -- .*\n    (?!no docstring)", listed, re.M)
    ] == []


def test_the_store_is_verified_after_a_test_that_passed(project: pytest.Pytester) -> None:
    """Style 3: doubles fail loudly when they are called unexpectedly or not used up."""
    project.makepyfile(
        """
        from supermemory_livekit.testing import Hang

        def test_unused(supermemory_store):
            supermemory_store.script("search", Hang())

        async def test_forbidden(supermemory_store):
            supermemory_store.forbid("profile")
            try:
                await supermemory_store.profile("ana", timeout=1)
            except AssertionError:
                pass

        def test_fine(supermemory_store):
            assert supermemory_store.calls == []
        """
    )
    result = run(project)
    result.assert_outcomes(passed=3, errors=2)
    result.stdout.fnmatch_lines(
        [
            "*1 scripted step(s) of 'search' were not used; *InputParams(mirror=False)*",
            "*'profile' was called*",
        ]
    )


def test_a_test_that_failed_is_reported_once(project: pytest.Pytester) -> None:
    """Kit: steps that were not used because the test stopped are no news."""
    project.makepyfile(
        """
        from supermemory_livekit.testing import Hang

        def test_it(supermemory_store):
            supermemory_store.script("search", Hang())
            assert False, "wrong for another reason"
        """
    )
    run(project).assert_outcomes(failed=1)


def test_the_clock_makes_a_wait_instant_and_is_gone_in_the_next_test(project: pytest.Pytester) -> None:
    """Style 6: no sleeps; pytest-asyncio, in the order in which it runs tests."""
    project.makepyfile(
        """
        import asyncio, time

        REAL = time.monotonic

        async def test_virtual(supermemory_clock):
            before = time.time()
            await asyncio.sleep(100_000)
            assert time.time() - before >= 100_000
            assert supermemory_clock.elapsed >= 100_000

        async def test_real():
            assert time.monotonic is REAL
            assert abs(asyncio.get_running_loop().time() - REAL()) < 10
        """
    )
    run(project).assert_outcomes(passed=2)


def test_a_test_in_a_shared_loop_runs_in_real_time_and_not_for_ever(project: pytest.Pytester) -> None:
    """Kit: the fixture's loop is another one then; a clock that stood still in the test's would hang it."""
    project.makepyfile(
        """
        import asyncio, pytest
        from supermemory_livekit.testing import virtual_time

        @pytest.mark.asyncio(loop_scope="module")
        async def test_shared(supermemory_clock):
            await asyncio.wait_for(asyncio.sleep(0.01), 10)
            assert supermemory_clock.elapsed < 1

        @pytest.mark.asyncio(loop_scope="module")
        async def test_by_hand():
            with virtual_time() as clock:
                await asyncio.sleep(100_000)
            assert clock.elapsed >= 100_000
        """
    )
    run(project).assert_outcomes(passed=2)


def test_each_test_has_an_embedded_service_of_its_own(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kit: no test finds what another one stored, and none asks the service of the person who runs it."""
    pytest.importorskip("starlette", reason="the extra [local] is not installed")
    monkeypatch.setenv("SUPERMEMORY_BASE_URL", "https://memory.invalid")
    monkeypatch.setenv("OPENAI_MODEL", "a-model")
    project.makepyfile(
        """
        import os, pytest
        from supermemory_livekit import SupermemoryLiveKit

        @pytest.mark.parametrize("number", [1, 2])
        async def test_it(supermemory_local, number):
            memory = SupermemoryLiveKit(container_tag="ana")
            assert "tea" not in (await memory.search("tea")).partition("\\n")[2]
            assert "Saved" in await memory.remember("Likes tea.")
            assert "tea" in (await memory.search("tea")).partition("\\n")[2]
            await memory.aclose()
            assert supermemory_local.is_file()
            assert "OPENAI_MODEL" not in os.environ
        """
    )
    run(project).assert_outcomes(passed=2)
