"""The documentation site: complete, and true to the commands."""

from __future__ import annotations

import re

import pytest

from tests.docs.update_readme import REPOSITORY, help_of, helps

DOCS = REPOSITORY / "docs"
COMMANDS = helps((DOCS / "reference" / "cli.md").read_text("utf-8"))


def test_every_command_is_in_the_reference() -> None:
    """Style 11: the help of commands is generated into the documentation."""
    listed = re.findall(r"^  ([a-z]+)  ", help_of("").partition("Commands:")[2], re.MULTILINE)
    assert listed == list(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_reference_names_the_options_that_a_command_has(command: str) -> None:
    """By options, not by letters: how lines are wrapped is the library's. Mended by tests/docs/update_readme.py."""
    options = set(re.findall(r"--[a-z][a-z-]+", help_of(command)))
    assert options == set(re.findall(r"--[a-z][a-z-]+", COMMANDS[command]))


def test_every_decision_is_in_the_list_of_decisions() -> None:
    """A page that nothing leads to is not read."""
    pages = sorted(page.name for page in (DOCS / "decisions").glob("0*.md"))
    listed = re.findall(r"\]\((0[\w-]+\.md)\)", (DOCS / "decisions" / "index.md").read_text("utf-8"))
    assert listed == pages
