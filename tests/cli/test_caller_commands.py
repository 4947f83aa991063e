"""`inspect`, `export`, `erase` and `doctor`, as an operator runs them: with the core install, against a service."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from supermemory_livekit.cli import erase, export, inspect
from supermemory_livekit.scope import Scope, container_tag
from supermemory_livekit.sdk.client import make_client
from supermemory_livekit.sdk.store import SDKStore
from supermemory_livekit.spool.spool import Spool
from supermemory_livekit.transcript import Turn

from .support import environment, run
from .test_serve import serving

pytestmark = pytest.mark.timeout(180)

KEY = "sm-operator-key"
PHONE = "+49 30 1234567"
LINE = "[2026-11-29T17:16:29.123Z] Caller: I moved to Zanzibar."
FACT = "Likes [bold]tea\x1b[31m"
EXTRA = ("typer", "rich", "starlette", "uvicorn")


@dataclass
class Service:
    url: str
    home: Path

    def command(
        self, *arguments: str, stdin: int = subprocess.DEVNULL, **settings: str
    ) -> subprocess.CompletedProcess[str]:
        """One of the commands, in a process without the modules of the extra."""
        without = f"import sys; sys.modules.update(dict.fromkeys({EXTRA!r}))"
        return subprocess.run(
            [
                sys.executable,
                "-c",
                f"{without}; from supermemory_livekit.cli import main; main()",
                *arguments,
            ],
            stdin=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            env=environment(
                self.home,
                **{
                    "SUPERMEMORY_LIVEKIT_CACHE": "off",
                    "SUPERMEMORY_API_KEY": KEY,
                    "SUPERMEMORY_BASE_URL": self.url,
                    **settings,
                },
            ),
            check=False,
        )

    async def fill(self, tag: str) -> None:
        store = SDKStore(make_client(KEY, self.url))
        at = datetime.now(timezone.utc)
        await store.append(tag, "lk-room", LINE, dreaming="instant", at=at, timeout=10)
        await store.remember(tag, FACT, dreaming="instant", timeout=10)
        for _ in range(300):
            page = await store.memories(tag, page=1, limit=10, timeout=10)
            if len(page.entries) == 2:
                break
            await asyncio.sleep(0.1)
        else:
            pytest.fail("the service has made no memories")
        await store.aclose()

    async def documents(self, tag: str) -> list[str]:
        store = SDKStore(make_client(KEY, self.url))
        page = await store.list_documents(tag, page=1, limit=10, contents=True, timeout=10)
        await store.aclose()
        return [one.text for one in page.entries]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    home = tmp_path_factory.mktemp("home")
    with serving(home, "--api-key", KEY, "--no-inspector") as (_, printed):
        yield Service(printed.split("Memory service:")[1].split()[0], home)


def records(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def spooled(directory: Path, tag: str) -> Path:
    spool = Spool(directory)
    spool.turns([Turn("caller", "secret words", datetime.now(timezone.utc))], Scope(tag, "r", "lk-r"))
    spool.close()
    return directory


def test_a_caller_is_shown_exported_and_erased(service: Service, tmp_path: Path) -> None:
    """Issue: `inspect` shows profile, memories, documents; `export` writes everything known as JSON Lines; after
    `erase --tag` all of it is empty, and another caller keeps everything."""
    tag = container_tag(PHONE)
    asyncio.run(service.fill(tag))
    asyncio.run(service.fill("other"))
    spool = spooled(tmp_path / "spool", tag)

    shown = service.command("inspect", "--tag", PHONE)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith(f"Tag: {tag}\n")
    assert "Profile:" in shown.stdout
    assert "Memories (2):" in shown.stdout
    assert "Documents (2):" in shown.stdout
    assert "Likes [bold]tea [31m" in shown.stdout, "no markup, and nothing that steers a terminal"
    assert "\x1b" not in shown.stdout
    in_json = json.loads(service.command("inspect", "--tag", PHONE, "--json").stdout)
    assert in_json["tag"] == tag
    assert {one["custom_id"] for one in in_json["documents"]} == {"lk-room", None}

    exported = service.command("export", "--tag", PHONE, "--spool-dir", str(spool))
    found = records(exported.stdout)
    assert (exported.returncode, exported.stderr) == (0, f"Written: {len(found)} records of {tag}\n")
    assert {one["kind"] for one in found} == {"profile", "memory", "document", "turn"}
    texts = {one["text"] for one in found if "text" in one}
    assert {LINE, FACT, "secret words"} <= texts
    file = tmp_path / "caller.jsonl"
    to_file = service.command("export", "--tag", PHONE, "--output", str(file))
    assert (to_file.returncode, to_file.stderr) == (0, "")
    assert to_file.stdout.endswith(f" records of {tag}\n")
    assert records(file.read_text("utf-8")) == [one for one in found if one["kind"] != "turn"]
    assert file.stat().st_mode & 0o777 == 0o600

    erased = service.command("erase", "--tag", PHONE, "--spool-dir", str(spool), "--json", "--yes")
    assert (erased.returncode, erased.stderr) == (0, "")
    result = json.loads(erased.stdout)
    assert result["clean"]
    assert result["tag"] == tag
    assert (result["documents"], result["memories"], result["turns"]) == (2, 2, 1)
    empty = service.command("export", "--tag", PHONE, "--spool-dir", str(spool))
    assert (empty.returncode, empty.stdout, empty.stderr) == (0, "", f"Written: 0 records of {tag}\n")
    assert list(spool.glob("*.spool")) == []
    assert len(asyncio.run(service.documents("other"))) == 2


def test_erase_says_what_it_did_and_what_to_do(service: Service, tmp_path: Path) -> None:
    """Issue: exit codes for scripts; no caller's words in errors."""
    done = service.command("erase", "--tag", "nobody", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Left:      nothing\n" in done.stdout
    assert done.stdout.startswith("Tag:       nobody\n")
    assert "Read back: nothing is known of this caller\n" in done.stdout
    assert "To note:   nothing was found to delete either; was it the right tag?\n" in done.stdout
    asyncio.run(service.fill("known"))
    assert "To note:" not in service.command("erase", "--tag", "known", "--yes").stdout
    refused = service.command("erase", "--tag", "nobody", "--yes", SUPERMEMORY_API_KEY="wrong")
    assert refused.returncode == 1
    assert "Left:      not known" in refused.stdout
    assert "Problem:   documents, memories, profile, search: the service answered 401\n" in refused.stdout
    assert "Not read:  documents, memories, profile, search\n" in refused.stdout
    assert "To do:" in refused.stdout
    for arguments in (["--tag", " "], [], ["--tag", "x", "--spool-dir", str(tmp_path / "none")]):
        with pytest.raises(SystemExit) as ended:
            erase.main(arguments)
        assert ended.value.code == 2


def test_erase_says_when_other_processes_could_not_be_told(service: Service, tmp_path: Path) -> None:
    """Decision 0017: a call on the line may write the caller back then, so it is not clean."""
    (tmp_path / "cache").write_text("a file where a directory should be")
    done = service.command(
        "erase", "--tag", "nobody", "--yes", SUPERMEMORY_LIVEKIT_CACHE=str(tmp_path / "cache")
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "Problem:   leaving word for other processes: FileExistsError\n" in done.stdout
    assert "To do:     run this again as who may write" in done.stdout
    assert "Read back: nothing is known" not in done.stdout


def test_erase_deletes_nothing_when_nobody_has_agreed(service: Service) -> None:
    """A stranger's remark: through a pipe it asked nothing and deleted. A slip in a script must not cost a caller."""
    asyncio.run(service.fill("kept"))
    for arguments in ((), ("--json",)):
        done = service.command("erase", "--tag", "kept", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "Nothing was deleted: nobody is there to ask. Say --yes to delete without.\n"
    assert len(asyncio.run(service.documents("kept"))) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize(
    ("answer", "code", "left"),
    [(b"n\n", 1, 2), (b"\n", 1, 2), (b"\x04", 1, 2), (b"y\n", 0, 0)],
    ids=["no", "nothing", "end of input", "yes"],
)
def test_erase_asks_at_a_terminal(service: Service, answer: bytes, code: int, left: int) -> None:
    """Issue: it asks first. The question is no part of the result."""
    import pty

    tag = f"asked-{answer.hex()}"
    asyncio.run(service.fill(tag))
    ours, theirs = pty.openpty()
    try:
        os.write(ours, answer)
        done = service.command("erase", "--tag", tag, "--json", stdin=theirs)
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == code
    assert "cannot be undone. [y/N] " in done.stderr
    assert len(asyncio.run(service.documents(tag))) == left
    assert (done.stdout == "") == bool(left)


def test_export_overwrites_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What one caller's file held must not be lost to another's."""
    file = tmp_path / "there.jsonl"
    file.write_text("kept")
    database = f"local:{tmp_path / 'memory.db'}"
    assert export.main(["--tag", "ana", "--base-url", database, "--output", str(file)]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"Failed: {file} is there already, and is not overwritten. Give --output another")
    assert file.read_text() == "kept"
    nowhere = tmp_path / "none" / "x.jsonl"
    assert export.main(["--tag", "ana", "--base-url", database, "--output", str(nowhere)]) == 1
    assert capsys.readouterr().err.startswith(f"Failed: {nowhere} cannot be written (No such file")


def test_an_export_that_fails_leaves_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half an export would pass for a whole one, and the next attempt would find its name taken."""
    monkeypatch.delenv("SUPERMEMORY_API_KEY", raising=False)
    file = tmp_path / "caller.jsonl"
    for address, code in (("http://127.0.0.1:9", 1), ("nowhere", 2)):
        assert export.main(["--tag", "ana", "--base-url", address, "--output", str(file)]) == code
        assert not file.exists()
    assert "nothing listens at this address" in capsys.readouterr().err


def test_a_caller_nobody_knows_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A script that inspects a new caller goes on."""
    assert inspect.main(["--tag", "ana", "--base-url", f"local:{tmp_path / 'memory.db'}"]) == 0
    assert capsys.readouterr().out == "Tag: ana\nNothing is known of this caller.\n"


def test_a_service_that_does_not_answer_is_one_line_and_exit_code_1(service: Service) -> None:
    """Issue: exit codes for scripts."""
    for command in ("inspect", "export"):
        done = service.command(command, "--tag", "ana-secret", SUPERMEMORY_BASE_URL="http://127.0.0.1:9")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("Failed: nothing listens at this address. Start the service")
        assert "ana-secret" not in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_doctor_finds_a_working_memory_and_leaves_nothing(service: Service) -> None:
    """Issue: key, reach, tag, clock, API generation, a round trip."""
    done = service.command("doctor", "--tag", "caller-7", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    checks = records(done.stdout)
    assert {check["name"]: check["state"] for check in checks} == dict.fromkeys(
        ["tag", "key", "reach", "clock", "api", "write", "read back", "search", "erase"], "ok"
    )
    assert KEY not in done.stdout
    plain = service.command("doctor", "--no-round-trip", "--tag", PHONE)
    assert plain.returncode == 0
    assert f"sent as {container_tag(PHONE)}" in plain.stdout
    assert "write" not in plain.stdout


def test_doctor_says_what_is_wrong_and_what_to_do(service: Service, tmp_path: Path) -> None:
    """Issue: says what to do; exit codes for scripts."""
    refused = service.command("doctor", SUPERMEMORY_API_KEY="wrong")
    assert refused.returncode == 1
    assert "failed   key         the service refuses the key (401)\n" in refused.stdout
    assert "-> Set SUPERMEMORY_API_KEY to a key of this service" in refused.stdout
    assert "wrong" not in refused.stdout
    keyless = service.command("doctor", SUPERMEMORY_API_KEY="")
    assert "failed   key         the service asks for a key, and none is set (401)\n" in keyless.stdout
    nobody = service.command("doctor", SUPERMEMORY_BASE_URL="http://127.0.0.1:9")
    assert nobody.returncode == 1
    assert "failed   reach       nothing listens at this address\n" in nobody.stdout
    assert "`supermemory-livekit serve` starts one" in nobody.stdout


@pytest.mark.parametrize(
    ("settings", "found", "advice"),
    [
        ({"URL": "", "KEY": ""}, "service     neither a key nor", "Set SUPERMEMORY_API_KEY for"),
        ({"URL": "localhost:6767"}, "address     --base-url or SUPERMEMORY_BASE_URL", "http://HOST:PORT"),
        (
            {"URL": "local"},
            'extra       the embedded service ("local") is not',
            'pip install "supermemory-livekit[l',
        ),
        ({"URL": "", "KEY": "a b"}, "key         SUPERMEMORY_API_KEY holds a blank", "Set it again"),
        ({"URL": "https://api.supermemory.ai", "KEY": ""}, "key         Supermemory's platform", "console."),
    ],
    ids=["nothing", "address", "extra", "odd key", "no key"],
)
def test_doctor_names_the_setting_that_is_wrong(
    service: Service, settings: dict[str, str], found: str, advice: str
) -> None:
    """A stranger's remark: it blamed the key for a wrong address and for a missing extra, in words of Python."""
    values = {"URL": service.url, "KEY": KEY, **settings}
    told = service.command("doctor", SUPERMEMORY_BASE_URL=values["URL"], SUPERMEMORY_API_KEY=values["KEY"])
    assert told.returncode == 2
    assert f"failed   {found}" in told.stdout
    assert advice in told.stdout
    assert "api_key" not in told.stdout.replace("SUPERMEMORY_API_KEY", "")
    assert "base_url=" not in told.stdout


def test_help_of_each_command_is_its_own(tmp_path: Path) -> None:
    """The list of commands goes through typer, the commands do not."""
    listed = run("--help", home=tmp_path).stdout
    for name in ("inspect", "export", "erase", "doctor"):
        assert f"  {name} " in listed
    assert "--spool-dir" in run("erase", "--help", home=tmp_path).stdout
