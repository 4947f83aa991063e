"""Tools by which a caller goes off the record, and on it again. Offered only when `InputParams` asks for them."""

from __future__ import annotations

from collections.abc import Callable

from livekit.agents import llm

__all__ = ["record_tools"]


def record_tools(goes: Callable[[bool], None]) -> list[llm.Tool | llm.Toolset]:
    """The two tools; `goes` is called with True when the caller goes off the record, with False when they come back."""

    @llm.function_tool
    async def go_off_the_record() -> str:
        """Stop storing and looking up what is said, when the caller asks for it: "off the record", "do not write this
        down", "please do not keep this". What they say from now on, and in this turn, is not kept.
        """
        goes(True)
        return "Off the record: from now on nothing is stored or looked up, until the caller wants it again."

    @llm.function_tool
    async def go_on_the_record() -> str:
        """Store and look up what is said again, when the caller who went off the record asks for it."""
        goes(False)
        return "On the record again: what is said from now on is stored."

    return [go_off_the_record, go_on_the_record]
