"""The commands and their options. What a command does is in a module of its own, imported when it runs."""

from __future__ import annotations

import asyncio
import logging
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from supermemory_livekit._version import __version__

__all__ = ["app"]

app = typer.Typer(
    help="Memory for LiveKit voice agents, kept in Supermemory.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"supermemory-livekit {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None: ...


Verbose = Annotated[bool, typer.Option("--verbose", help="Show texts in full, and the logs.")]
Path_ = Annotated[
    Path | None,
    typer.Option("--path", help="Database file to use and keep.", dir_okay=False, show_default=False),
]


@app.command()
def demo(
    *,
    seed: Annotated[
        int | None, typer.Option(help="Play the caller with this number.", show_default="drawn at random")
    ] = None,
    path: Path_ = None,
    chat: Annotated[
        bool, typer.Option("--chat", help="Be the caller yourself: type, one line a turn.")
    ] = False,
    caller: Annotated[str, typer.Option(help="With --chat: who is calling.")] = "demo-caller",
    voice: Annotated[
        bool,
        typer.Option(
            "--voice",
            help="Speak: real audio, kept as WAVs. Needs further packages, and names those that are missing.",
        ),
    ] = False,
    without_recall: Annotated[
        bool,
        typer.Option("--without-recall", help="Check of the demo itself: recall nothing. It must fail then."),
    ] = False,
    verbose: Verbose = False,
) -> None:
    """A caller rings twice and is remembered: on this machine, with no key and no network.

    The last line says whether the caller was recognised on the second call; the exit code is 0 if so. With --chat the
    call is yours; it is kept in the local database, so that you are remembered the next time.
    """
    if voice and (chat or without_recall):
        raise typer.BadParameter("--voice goes with neither --chat nor --without-recall")
    _logs(verbose=verbose)
    if chat:
        from .demo.chat import run_chat
        from .demo.database import why_unusable

        if (why := why_unusable(path)) is not None:
            typer.echo(f"Cannot start: {why}", err=True)
            raise typer.Exit(2)
        raise typer.Exit(asyncio.run(run_chat(caller=caller, path=path, verbose=verbose)))
    if voice:
        from .demo.voice import run_voice

        raise typer.Exit(run_voice(seed=seed, path=path, verbose=verbose))
    from .demo.run import run_demo

    raise typer.Exit(run_demo(seed=seed, path=path, recall=not without_recall, verbose=verbose))


@app.command()
def serve(
    *,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on; 0.0.0.0 or :: for all interfaces. The connection is not encrypted."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 6767,
    path: Path_ = None,
    database: Annotated[
        str | None,
        typer.Option(
            envvar="SUPERMEMORY_LOCAL_DATABASE",
            help="Instead of --path: the address of a PostgreSQL database, postgresql://user@host/name.",
            show_default=False,
            show_envvar=True,
        ),
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option(
            envvar="SUPERMEMORY_LOCAL_KEY",
            help="Key that clients must send.",
            show_default="made once and kept beside the database",
        ),
    ] = None,
    dynamic_delay: Annotated[
        float,
        typer.Option(min=0.0, help="Seconds of quiet before a call stored as `dynamic` becomes memories."),
    ] = 60.0,
    inspector: Annotated[
        bool, typer.Option(help="A page at / that shows what is stored, and searches as they happen.")
    ] = True,
    no_key: Annotated[
        bool, typer.Option("--no-key", help="Ask for no key. On the loopback address alone.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Another name that clients may call the server by, such as a proxy's. May be repeated."
        ),
    ] = None,
    rate_limit: Annotated[
        float, typer.Option(min=0.0, help="Requests per second of one peer; 0 sets no limit.")
    ] = 1000.0,
) -> None:
    """Serve the embedded memory service to several workers on this machine.

    It speaks the API of Supermemory: the address and the key go into SUPERMEMORY_BASE_URL and SUPERMEMORY_API_KEY.
    """
    _logs(verbose=False)
    from .serve import run_serve

    raise typer.Exit(
        run_serve(
            host=host,
            port=port,
            database=path or database,
            api_key=api_key,
            dynamic_delay=dynamic_delay,
            inspector=inspector,
            require_key=not no_key,
            allow_hosts=allow_host or (),
            rate=rate_limit,
        )
    )


def _core_command(name: str, help_: str) -> None:
    """A command that reads its own arguments, since it runs without typer too. It is here for the list of commands."""

    @app.command(
        name,
        help=help_,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    )
    def run(context: typer.Context) -> None:  # pyright: ignore[reportUnusedFunction]
        raise typer.Exit(import_module(f".{name}", __package__).main(context.args))


_core_command("flush", "Deliver what workers that were killed left in their spool.")
_core_command("inspect", "Show what is known of one caller.")
_core_command("export", "Write everything that is known of one caller as JSON Lines.")
_core_command("erase", "Delete everything of one caller, and prove it by reading back.")
_core_command("doctor", "Check whether the memory works from here, and say what to do.")


class Part(str, Enum):
    first = "first"
    second = "second"


@app.command("demo-part", hidden=True)
def demo_part(
    part: Part,
    *,
    seed: Annotated[int, typer.Option()],
    path: Annotated[Path, typer.Option()],
    report: Annotated[Path, typer.Option()],
    run: Annotated[str, typer.Option()],
    without_recall: Annotated[bool, typer.Option("--without-recall")] = False,
    verbose: Verbose = False,
) -> None:
    """One process of the scripted demo."""
    _logs(verbose=verbose)
    from .demo import parts
    from .demo.output import Output
    from .demo.script import Script

    script = Script.draw(seed)
    output = Output(verbose=verbose)
    recall = not without_recall
    if part is Part.first:
        asyncio.run(parts.first_call(script, path, output, recall=recall, run=run))
    else:
        asyncio.run(parts.second_call(script, path, output, recall=recall, run=run)).write(report)


def _logs(*, verbose: bool) -> None:
    """Warnings of this package always, everything when verbose.

    LiveKit logs stack traces; it is quiet otherwise, since the commands themselves say what went wrong.
    """
    logging.basicConfig(level=logging.WARNING, format="      %(levelname)s %(name)s: %(message)s")
    if verbose:
        logging.getLogger("supermemory_livekit").setLevel(logging.DEBUG)
    else:
        logging.getLogger("livekit").setLevel(logging.CRITICAL)
