"""The manifest `claims.toml` and the tests hold each other to account."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
CLAIMS: list[dict[str, Any]] = tomllib.loads((HERE / "claims.toml").read_text("utf-8"))["claim"]
CASES: list[dict[str, Any]] = tomllib.loads((HERE / "cases.toml").read_text("utf-8"))["case"]


def docstrings_of_tests() -> dict[str, str]:
    """Every test function below this folder, as `path::name`, with its docstring."""
    found: dict[str, str] = {}
    for path in sorted(HERE.rglob("test_*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
                found[f"{path.relative_to(HERE).as_posix()}::{node.name}"] = ast.get_docstring(node) or ""
    return found


TESTS = docstrings_of_tests()


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim["id"])
def test_a_claim_of_the_specification_is_shown_by_tests_that_exist(claim: dict[str, Any]) -> None:
    """Design 7: each claim is listed with the test that shows it."""
    assert claim["tests"], "no test shows this claim"
    assert [test for test in claim["tests"] if test not in TESTS] == []


def test_a_test_that_names_the_specification_is_listed_under_a_claim() -> None:
    """Design 7: checked both ways."""
    listed = {test for claim in CLAIMS for test in claim["tests"]}
    naming = {test for test, docstring in TESTS.items() if "Specification:" in docstring}
    assert sorted(naming - listed) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_fault_that_others_had_is_shown_by_a_test_or_left_for_a_reason(case: dict[str, Any]) -> None:
    """Design 7: each known fault of comparable products is a test here, or says why it is none yet."""
    named = [test for test, docstring in TESTS.items() if case["id"] in cases_named_in(docstring)]
    if "open" in case:
        assert case["open"].strip()
    else:
        assert named, "no test names this case"


def test_a_case_named_by_a_test_is_in_the_list() -> None:
    """Design 7: checked both ways."""
    known = {case["id"] for case in CASES}
    named = {name for docstring in TESTS.values() for name in cases_named_in(docstring)}
    assert sorted(named - known) == []


def cases_named_in(docstring: str) -> set[str]:
    """The ids after `Case` or `Cases`, as in "Cases C1, C2 and L1: …"."""
    return {
        name
        for run in re.findall(r"\bCases? ((?:[RCSTLP]\d+)(?:(?:, | and |,)(?:[RCSTLP]\d+))*)", docstring)
        for name in re.findall(r"[RCSTLP]\d+", run)
    }
