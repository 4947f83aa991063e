"""What tells the tests that they run in the lane, and takes its figures."""

from __future__ import annotations

from typing import Any

import pytest

__all__ = ["Lane"]


class Lane:
    """A pytest plugin that is there when the lane was asked for."""

    def __init__(self) -> None:
        self.figures: dict[str, object] = {}

    @staticmethod
    def of(config: pytest.Config) -> Lane | None:
        """The lane that is running; None in the test suite."""
        plugins: set[Any] = config.pluginmanager.get_plugins()
        return next((plugin for plugin in plugins if isinstance(plugin, Lane)), None)
