"""What the ready-made redactor costs: to load, and per turn of a caller.

    python bench/redact.py [--turns 400]

CPU time of one thread, so that a busy machine tells the same; the turns are as a recogniser writes them.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time

TURNS = (
    "I moved to Porto last week and my sister will visit in May.",
    "Yes please, a table for four on Friday at half past seven.",
    "My number is +351 912 345 678 and you can also write to ana.costa@example.com",
    "The card is 4111 1111 1111 1111, it expires next year",
    "My order number is 2023 1187 and the flight is at 10 15",
    "Call me at 415 555 2671 please",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=400)
    turns: int = parser.parse_args().turns
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    from supermemory_livekit.pii import PiiRedactor

    redactors = {"default": PiiRedactor(), "one_region": PiiRedactor(regions=["US"])}
    figures = {
        "load_s": time.process_time() - started,
        "load_mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
    }
    for name, redact in redactors.items():
        for turn in TURNS:  # patterns are compiled by their first use
            redact(turn)
        spent: list[float] = []
        for number in range(turns):
            began = time.process_time()
            redact(TURNS[number % len(TURNS)])
            spent.append((time.process_time() - began) * 1000)
        figures[f"{name}_median_ms"] = statistics.median(spent)
        figures[f"{name}_p95_ms"] = statistics.quantiles(spent, n=20)[-1]
    print(" ".join(f"{name}={figure:.2f}" for name, figure in figures.items()))


if __name__ == "__main__":
    main()
