"""How well facts are taken from calls, measured on labelled excerpts.

    python bench/facts.py [--rules-only] [--model] [--show]
    python bench/facts.py --file mine.json --show

`tests/data/facts/dev.json` was used while the rules were written, `heldout.json` was labelled before and is only
measured, `strangers.json` was written by somebody who knew nothing of the rules; half of it was looked at later.
`talkers.json` was written in the same way, by somebody else, of people who talk a lot and digress, and `unread.json`
by a third person; nobody has read it for the rules: keep it so. A kept fact is right when it holds all key words of
a label that no other kept fact has met; precision is the share of kept facts that are right, recall the share of labels
that are met. Labels may also state `static`, `replaces` and
`expires`, and a call which memories are to be forgotten; those are counted apart.

`--file` measures labelled calls of your own instead: a JSON list of the same form, for example

    [{"id": "1", "kind": "home", "call": ["A: Hello.", "C: I live in Porto."], "facts": [{"has": ["Porto"]}]}]

`--rules-only` works without the sentence encoder, `--model` asks the configured chat model instead of the rules.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from supermemory_livekit.local.extraction import (
    Changes,
    Extractor,
    Fact,
    Known,
    Line,
    RuleExtractor,
    extractor_from_env,
)

DATA = Path(__file__).resolve().parent.parent / "tests/data/facts"
SUNDAY = datetime(2026, 11, 29, 10, tzinfo=timezone.utc)


@dataclass
class Score:
    kept: int = 0
    right: int = 0
    expected: int = 0
    met: int = 0
    details: int = 0
    details_right: int = 0

    @property
    def precision(self) -> float:
        return self.right / self.kept if self.kept else 1.0

    @property
    def recall(self) -> float:
        return self.met / self.expected if self.expected else 1.0


def lines_of(case: dict[str, Any]) -> list[Line]:
    return [
        Line(SUNDAY + timedelta(seconds=5 * i), "caller" if said.startswith("C: ") else "agent", said[3:])
        for i, said in enumerate(case["call"])
    ]


def known_of(case: dict[str, Any]) -> list[Known]:
    return [
        Known(it["id"], it["text"], it["static"], SUNDAY - timedelta(days=30)) for it in case.get("known", [])
    ]


def holds(fact: Fact, label: dict[str, Any]) -> bool:
    text = fact.text.casefold()
    return all(word.casefold() in text for word in label["has"]) and not any(
        word.casefold() in text for word in label.get("not", [])
    )


def details_of(fact: Fact, label: dict[str, Any]) -> list[bool]:
    checks: list[bool] = []
    if "static" in label:
        checks.append(fact.static == label["static"])
    if "replaces" in label:
        checks.append(list(fact.replaces) == label["replaces"])
    if "expires" in label:
        day = datetime.fromisoformat(label["expires"]).replace(tzinfo=timezone.utc)
        checks.append(fact.expires is not None and day < fact.expires <= day + timedelta(days=2))
    return checks


def score(case: dict[str, Any], changes: Changes, total: Score) -> str:
    """Adds the case to `total`; returns what is wrong with it, "" when nothing is."""
    labels: list[dict[str, Any]] = list(case["facts"])
    total.kept += len(changes.add)
    total.expected += len(labels)
    wrong: list[str] = []
    for fact in changes.add:
        met = [label for label in labels if holds(fact, label)]
        if met:
            total.right += 1
        else:
            wrong.append(f"+ {fact.text}")
        for label in met:
            labels.remove(label)
            total.met += 1
            checks = details_of(fact, label)
            total.details += len(checks)
            total.details_right += sum(checks)
            if not all(checks):
                wrong.append(f"~ {fact}")
    wrong += [f"- {label['has']}" for label in labels]
    total.details += 1
    total.details_right += list(changes.forget) == case.get("forget", [])
    if list(changes.forget) != case.get("forget", []):
        wrong.append(f"forget {list(changes.forget)}")
    return "\n    ".join(wrong)


def cases_of(name: str) -> list[dict[str, Any]]:
    """One of the project's own sets, or the labelled calls in a file."""
    path = Path(name) if name.endswith(".json") else DATA / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


async def measure(name: str, extractor: Extractor, show: bool) -> Score:
    """Prints the counts of the set `name`; `show` also prints what is wrong, case by case."""
    total = Score()
    for case in cases_of(name):
        changes = await extractor.extract(lines_of(case), known_of(case), at=SUNDAY)
        wrong = score(case, changes, total)
        if wrong and show:
            print(f"{case['id']} {case['kind']}\n    {wrong}")
    print(
        f"{name}: kept={total.kept} right={total.right} expected={total.expected} met={total.met} "
        f"details={total.details_right}/{total.details}"
    )
    return total


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rules-only", action="store_true", help="without the sentence encoder")
    parser.add_argument("--model", action="store_true", help="the chat model that the environment configures")
    parser.add_argument(
        "--show", action="store_true", help="print what is wrong with the dev set, or the file"
    )
    parser.add_argument(
        "--file", metavar="FILE.json", help="labelled calls of your own, instead of the project's"
    )
    options = parser.parse_args()
    extractor: Extractor = RuleExtractor(lambda: None) if options.rules_only else RuleExtractor()
    if options.model:
        extractor = extractor_from_env()
    if options.file is not None:
        own = await measure(options.file, extractor, options.show)
        print(f"precision={own.precision:.3f} recall={own.recall:.3f}")
        return
    dev = await measure("dev", extractor, options.show)
    held = await measure("heldout", extractor, False)
    strangers = await measure("strangers", extractor, False)
    talkers = await measure("talkers", extractor, False)
    unread = await measure("unread", extractor, False)
    print(
        f"facts_precision={dev.precision:.3f} facts_recall={dev.recall:.3f} "
        f"heldout_precision={held.precision:.3f} heldout_recall={held.recall:.3f} "
        f"strangers_precision={strangers.precision:.3f} strangers_recall={strangers.recall:.3f} "
        f"talkers_precision={talkers.precision:.3f} talkers_recall={talkers.recall:.3f} "
        f"unread_precision={unread.precision:.3f} unread_recall={unread.recall:.3f}"
    )


if __name__ == "__main__":
    asyncio.run(main())
