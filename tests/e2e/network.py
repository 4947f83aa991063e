"""A network for the double: a namespace with one address of its own, that ends with the process that holds it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from signal import SIGKILL

__all__ = ["ADDRESS", "Network", "NoNetwork", "network"]

ADDRESS = "198.18.0.1"
"""An address for benchmarks (RFC 2544). Nobody outside the namespace sees it."""

_SET_UP = f"""
set -e
ip link add room0 type veth peer name room1
ip address add {ADDRESS}/30 dev room0
ip link set lo up
ip link set room0 up
ip link set room1 up
echo ready
exec cat
"""
"""Both ends of the pair stay inside: all that is wanted is an interface which is up and is no loopback one."""

Network = tuple[str, ...]
"""What to put before a command, so that it runs in this network."""


class NoNetwork(Exception):
    """This machine gives no network namespace; the message says why."""


@contextmanager
def network() -> Generator[Network]:
    """A namespace of its own. It is gone when the block and all processes in it have ended.

    Its name is in no file, so nothing is left behind even when the test process is killed: the process that
    holds the namespace then finds its stdin at an end.

    Raises:
        NoNetwork: Not Linux, `ip` or `unshare` is missing, or namespaces are not allowed here.
    """
    for tool, package in (("unshare", "util-linux"), ("nsenter", "util-linux"), ("ip", "iproute2")):
        if shutil.which(tool) is None:
            raise NoNetwork(f"there is no `{tool}` (Debian: {package})")
    # Without root, a user namespace may allow it; ids stay as they are outside of it.
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    holder = subprocess.Popen(
        ["unshare", *user, "--net", "sh", "-c", _SET_UP],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    assert holder.stderr is not None
    try:
        if holder.stdout.readline().strip() != "ready":
            holder.stdin.close()
            holder.wait(10)
            said = holder.stderr.read().strip()
            needs = "" if not user else " (root, or a user namespace, is needed)"
            raise NoNetwork(f"no network namespace{needs}: {said}")
        enter = ["--user", "--preserve-credentials"] if user else []
        yield ("nsenter", f"--target={holder.pid}", *enter, "--net", "--")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(holder.pid, SIGKILL)
        holder.wait(10)
        for pipe in (holder.stdin, holder.stdout, holder.stderr):
            pipe.close()
