"""What the inspector's routes answer. Its page, and who may use it, are in `test_inspector_page.py`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from supermemory_livekit.local.extraction import Changes, Fact

from .support import Inspected, Scripted, Service, call, execute, word_model

DATABASES = ("sqlite", "postgresql")

DATA = {"containerTag": "ana"}


# -- callers and their memories


async def test_callers_are_found_by_a_part_of_their_tag_and_come_in_pages(page: Inspected) -> None:
    """Brief of the inspector: callers."""
    for number in range(5):
        await page.api(
            "POST", "/v4/memories", containerTag=f"user_{number}", memories=[{"content": "Likes tea"}]
        )
    await page.api("POST", "/v4/memories", containerTag="ana", memories=[{"content": "Likes tea"}])
    first = await page.ask("callers", find="USER", limit=3)
    second = await page.ask("callers", find="USER", limit=3, page=2)
    assert first["total"] == second["total"] == 5
    tags = [caller["tag"] for caller in (*first["callers"], *second["callers"])]
    assert len(first["callers"]) == 3
    assert sorted(tags) == [f"user_{number}" for number in range(5)]
    await page.api("POST", "/v4/memories", containerTag="user_2", memories=[{"content": "Likes coffee"}])
    assert (await page.ask("callers"))["callers"][0]["tag"] == "user_2", "changed last first"
    assert (await page.ask("overview"))["memories"] == 7


async def test_the_profile_shown_is_the_one_an_agent_is_given(page: Inspected) -> None:
    """Brief of the inspector: their profile."""
    await page.api(
        "POST",
        "/v4/memories",
        **DATA,
        memories=[{"content": "Is called Ana", "isStatic": True}, {"content": "Waits for a parcel"}],
    )
    given = (await page.api("POST", "/v4/profile", **DATA))["profile"]
    shown = (await page.ask("caller", tag="ana"))["profile"]
    assert [line["text"] for line in shown["lasting"]] == given["static"]
    assert [line["text"] for line in shown["recent"]] == given["dynamic"]
    memory = await page.ask("memory", tag="ana", id=shown["lasting"][0]["id"])
    assert memory["text"] == "Is called Ana"


async def test_memories_are_narrowed_by_state_and_by_any_text_taken_literally(page: Inspected) -> None:
    """Brief of the inspector: works with 10,000 memories (paged); `%` and `_` are characters like others."""
    texts = [
        "Likes tea",
        "Pays 5% more",
        "Pays 50 more",
        "Uses snake_case",
        "Uses snakeXcase",
        "Wohnt in KÖLN",
    ]
    await page.api("POST", "/v4/memories", **DATA, memories=[{"content": text} for text in texts])
    await page.api("DELETE", "/v4/memories", **DATA, content="Likes tea")

    async def listed(**options: object) -> set[str]:
        answer = await page.ask("memories", tag="ana", **options)
        assert answer["total"] == len(answer["memories"])
        return {memory["text"] for memory in answer["memories"]}

    assert await listed() == {*texts} - {"Likes tea"}
    assert await listed(state="forgotten") == {"Likes tea"}
    assert await listed(state="all") == {*texts}
    assert await listed(find="5%") == {"Pays 5% more"}
    assert await listed(find="snake_") == {"Uses snake_case"}
    assert await listed(find="köln") == {"Wohnt in KÖLN"}
    assert await listed(find="\\") == set()


MANY_MEMORIES = """
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n+1 FROM numbers WHERE n<9999)
INSERT INTO memories
(id, tag_id, text, norm, static, metadata, at, version, latest, created_at, updated_at, changed)
SELECT 'memory-' || n, (SELECT id FROM tags), 'Fact number ' || n, 'fact number ' || n, 0, '{}', n, 1, 1, 0, 0, 1
FROM numbers"""
"""Beside one that is there: to store each by itself would take half a minute."""


async def test_pages_of_ten_thousand_memories_hold_each_once(page: Inspected) -> None:
    """Brief of the inspector: works with 10,000 memories (paged)."""
    await page.api("POST", "/v4/memories", **DATA, memories=[{"content": "Fact number 0"}])
    execute(page.service.engine.location, MANY_MEMORIES)
    seen: list[str] = []
    for number in range(1, 51):
        answer = await page.ask("memories", tag="ana", page=number, limit=200)
        assert answer["total"] == 10_000
        seen += [memory["id"] for memory in answer["memories"]]
    assert len(seen) == len(set(seen)) == 10_000
    assert (await page.ask("memories", tag="ana", page=51, limit=200))["memories"] == []


async def test_a_memory_shows_the_versions_before_it_and_the_turn_that_says_each(
    inspect: Callable[..., Inspected],
) -> None:
    """Brief of the inspector: memories with history and source turn."""
    then = datetime(2026, 11, 1, 10, tzinfo=timezone.utc)
    scripted = Scripted([Changes(add=(Fact("Lives in Porto.", True, then + timedelta(seconds=1)),))])
    page = inspect(extractor=scripted)
    await page.stored(
        call("A: Where do you live?", "C: By the Douro, near the bridge.", "A: Nice."), customId="first"
    )
    old = (await page.ask("memories", tag="ana"))["memories"][0]["id"]
    later = Fact("Lives in Braga.", True, then + timedelta(minutes=5), replaces=(old,))
    scripted.changes.append(Changes(add=(later,)))
    await page.stored(call("C: I moved to Braga.", "A: Good to know.", minute=5), customId="second")
    memory = await page.ask(
        "memory", tag="ana", id=(await page.ask("memories", tag="ana"))["memories"][0]["id"]
    )
    assert (memory["text"], memory["version"]) == ("Lives in Braga.", 2)
    assert turn_of(memory["said"][0]) == ("second", "I moved to Braga.")
    (before,) = memory["history"]
    assert (before["text"], before["state"]) == ("Lives in Porto.", "replaced")
    assert turn_of(before["said"][0]) == ("first", "By the Douro, near the bridge.")
    assert before["said"][0]["lines"][0]["text"] == "Where do you live?"
    assert [one["text"] for one in (await page.ask("memory", tag="ana", id=old))["later"]] == [
        "Lives in Braga."
    ]


async def test_a_fact_that_was_said_again_is_found_in_the_earlier_call_by_its_words(
    inspect: Callable[..., Inspected],
) -> None:
    """A memory is dated with the last time it was said; in the call before its words have to tell."""
    then = datetime(2026, 11, 1, 10, tzinfo=timezone.utc)
    first, second = (Fact("Likes green tea.", True, then + timedelta(minutes=minute)) for minute in (0, 9))
    page = inspect(extractor=Scripted([Changes(add=(first,)), Changes(add=(second,))]))
    await page.stored(call("C: Hello.", "A: Tea?", "C: Yes, I like green tea."), customId="first")
    await page.stored(call("C: The green one.", "C: Well, tea.", minute=9), customId="second")
    memory = await page.ask(
        "memory", tag="ana", id=(await page.ask("memories", tag="ana"))["memories"][0]["id"]
    )
    assert [turn_of(source) for source in memory["said"]] == [
        ("first", "Yes, I like green tea."),
        ("second", "The green one."),
    ]


def turn_of(source: dict[str, Any]) -> tuple[str, str]:
    """The name of the call and the words of the marked turn."""
    (said,) = [line["text"] for line in source["lines"] if line["turn"] == source["turn"]]
    return source["document"]["name"], said


# -- calls


async def test_a_call_shows_its_turns_its_state_and_what_it_became(page: Inspected) -> None:
    """Brief of the inspector: calls with transcripts and processing state."""
    await page.stored(call("A: Good morning.", "C: I like tea."), customId="lk-1")
    (listed,) = (await page.ask("calls", tag="ana"))["calls"]
    assert (listed["name"], listed["turns"], listed["memories"], listed["spoken"]) == ("lk-1", 2, 1, True)
    shown = await page.ask("call", tag="ana", id=listed["id"])
    assert [(line["role"], line["text"]) for line in shown["lines"]] == [
        ("agent", "Good morning."),
        ("caller", "I like tea."),
    ]
    assert [memory["text"] for memory in shown["made"]] == ["I like tea."]
    assert (shown["searchable"], shown["remembered"]) == (True, True)


async def test_a_call_that_waits_to_become_memories_says_so(inspect: Callable[..., Inspected]) -> None:
    """Brief of the inspector: processing state."""
    page = inspect(dynamic_delay=3600.0)
    await page.stored(call("C: I like tea."), dreaming="dynamic")
    (listed,) = (await page.ask("calls", tag="ana"))["calls"]
    assert (listed["searchable"], listed["remembered"], listed["memories"]) == (True, False, 0)


async def test_a_long_call_comes_in_pages_of_turns(page: Inspected) -> None:
    """A call may have thousands of turns."""
    stamps = (datetime(2026, 11, 1, tzinfo=timezone.utc) + timedelta(seconds=number) for number in range(450))
    lines = [f"[{at.isoformat()}] Agent: Turn {number}." for number, at in enumerate(stamps)]
    key = await page.stored("\n".join(lines))
    last = await page.ask("call", tag="ana", id=key, page=3, limit=200)
    assert last["turns"] == 450
    assert [line["turn"] for line in last["lines"]] == list(range(400, 450))


# -- search


async def test_search_shows_what_recall_returns_in_its_order_and_what_comes_next(
    inspect: Callable[..., Inspected],
) -> None:
    """Brief of the inspector: a search box that shows what recall would return."""
    page = inspect(load=word_model)
    texts = ["Likes green tea", "Likes black tea", "Has a dog", "Drinks tea in the evening", "Owns a boat"]
    await page.api("POST", "/v4/memories", **DATA, memories=[{"content": text} for text in texts])
    await page.service.settled()
    asked = {"q": "green tea", "limit": 2, "threshold": 0.1}
    recalled = await page.api("POST", "/v4/search", **DATA, searchMode="hybrid", **asked)
    shown = await page.ask("search", tag="ana", **asked)
    assert [(hit["id"], hit["similarity"]) for hit in shown["recalled"]] == [
        (hit["id"], hit["similarity"]) for hit in recalled["results"]
    ]
    missed = [hit["text"] for hit in shown["missed"]]
    assert "Drinks tea in the evening" in missed
    assert not {*missed} & {hit["text"] for hit in shown["recalled"]}


async def test_search_tells_why_by_words_meaning_and_age(inspect: Callable[..., Inspected]) -> None:
    """Brief of the inspector: and why (scores by part: full text, semantic, recency)."""
    page = inspect(load=word_model)
    old = {"content": "Keeps a canine", "temporalContext": {"documentDate": "2020-01-01"}}
    await page.api("POST", "/v4/memories", **DATA, memories=[{"content": "Walks the dog"}, old])
    await page.service.settled()
    shown = {
        hit["text"]: hit for hit in (await page.ask("search", tag="ana", q="dog", threshold=0))["recalled"]
    }
    same, meant = shown["Walks the dog"]["parts"], shown["Keeps a canine"]["parts"]
    assert same["words"] > 0.5
    assert meant["words"] == 0
    assert meant["meaning"] > 0.3
    assert meant["age"] < same["age"] == 1


async def test_search_tells_of_a_turn_what_is_said_around_it_and_by_whom(page: Inspected) -> None:
    """A turn is judged together with its neighbours; docs/decisions/0013-retrieval.md."""
    await page.stored(call("A: Which ferry do you take?", "C: The blue one.", "A: Understood."))
    shown = await page.ask("search", tag="ana", q="which ferry do I take", mode="documents", threshold=0)
    said = {hit["text"]: hit["parts"] for hit in (*shown["recalled"], *shown["missed"])}
    assert said, "nothing was found"
    for parts in said.values():
        assert {*parts} == {"words", "context", "speaker", "time", "age"}
        assert parts["context"] > 0
        assert all(0 <= part <= 1 for part in parts.values())


async def test_without_a_model_search_tells_of_no_meaning(page: Inspected) -> None:
    """A part that was not looked at is not shown as 0."""
    await page.api("POST", "/v4/memories", **DATA, memories=[{"content": "Walks the dog"}])
    (hit,) = (await page.ask("search", tag="ana", q="dog"))["recalled"]
    assert {*hit["parts"]} == {"words", "age"}


# -- forget and erase


async def test_what_is_forgotten_here_is_recalled_no_more(page: Inspected) -> None:
    """Brief of the inspector: forget and erase."""
    await page.api("POST", "/v4/memories", **DATA, memories=[{"content": "Likes tea"}])
    (memory,) = (await page.ask("memories", tag="ana"))["memories"]
    await page.ask("forget", tag="ana", id=memory["id"])
    assert await page.service.found("ana", "tea") == []
    shown = await page.ask("memory", tag="ana", id=memory["id"])
    assert shown["state"] == "forgotten"
    again = await page.http.post("/inspector/api/forget", json={"tag": "ana", "id": memory["id"]})
    assert again.status_code == 409


async def test_an_erased_call_is_gone_with_what_stems_from_it_alone(page: Inspected) -> None:
    """Brief of the inspector: forget and erase."""
    key = await page.stored(call("C: I like tea."))
    await page.stored("Owns a boat", customId="note")
    await page.ask("erase-call", tag="ana", id=key)
    assert [one["name"] for one in (await page.ask("calls", tag="ana"))["calls"]] == ["note"]
    assert [
        memory["text"] for memory in (await page.ask("memories", tag="ana", state="all"))["memories"]
    ] == ["Owns a boat"]


async def test_an_erased_caller_leaves_nothing_and_no_other_caller_is_touched(page: Inspected) -> None:
    """Brief of the inspector: forget and erase."""
    await page.stored(call("C: I like tea."))
    await page.stored(call("C: I like coffee."), containerTag="ben")
    assert await page.ask("erase-caller", tag="ana") == {"documents": 1, "memories": 1}
    assert [caller["tag"] for caller in (await page.ask("callers"))["callers"]] == ["ben"]
    assert await page.service.found("ben", "coffee")


@pytest.mark.parametrize("name", ["memory", "forget", "call", "erase-call"])
async def test_what_one_caller_has_is_not_reached_under_the_tag_of_another(
    page: Inspected, name: str
) -> None:
    """Brief of the embedded service: no row of a caller is reachable with another's tag, by any route."""
    call_id = await page.stored(call("C: I like tea."))
    await page.stored(call("C: I like coffee."), containerTag="ben")
    memory_id = (await page.ask("memories", tag="ana"))["memories"][0]["id"]
    for key in (call_id, memory_id):
        refused = await page.http.post(f"/inspector/api/{name}", json={"tag": "ben", "id": key})
        assert refused.status_code == 404
        assert "tea" not in refused.text
    assert await page.service.found("ana", "tea")


# -- recalls as they happen


async def test_recalls_appear_with_what_was_asked_and_found(page: Inspected) -> None:
    """Brief of the inspector: live view of recalls."""
    await page.stored(call("C: I like tea."), customId="lk-1")
    await page.api("POST", "/v4/search", **DATA, q="which tea", searchMode="hybrid", threshold=0.1)
    await page.api("POST", "/v4/profile", **DATA)
    await page.api("POST", "/v3/search", **DATA, q="tea")
    seen = (await page.ask("recalls"))["recalls"]
    assert [(one["kind"], one["query"]) for one in seen] == [
        ("search", "which tea"),
        ("profile", ""),
        ("documents", "tea"),
    ]
    assert seen[0]["found"][0]["text"] == "I like tea."
    assert seen[0]["total"] == len(seen[0]["found"])
    assert (await page.ask("recalls", after=seen[-1]["number"]))["recalls"] == []
    await page.ask("search", tag="ana", q="tea")
    await page.ask("caller", tag="ana")
    assert (await page.ask("recalls", after=seen[-1]["number"]))["recalls"] == [], "looking is no recall"


async def test_recalls_show_nothing_that_was_forgotten_or_erased_since(page: Inspected) -> None:
    """Kept are ids, not words; questions go with their caller."""
    await page.api("POST", "/v4/memories", **DATA, memories=[{"content": "Likes tea"}])
    await page.api("POST", "/v4/search", **DATA, q="tea", threshold=0)
    await page.api("DELETE", "/v4/memories", **DATA, content="Likes tea")
    (seen,) = (await page.ask("recalls"))["recalls"]
    assert (seen["found"], seen["gone"]) == ([], 1)
    await page.api("DELETE", "/v3/container-tags/ana")
    await page.api("POST", "/v4/memories", **DATA, memories=[{"content": "A new Ana"}])
    assert (await page.ask("recalls"))["recalls"] == []


async def test_recalls_are_few_and_none_are_kept_unless_the_inspector_is_served(
    page: Inspected, serve: Callable[..., Service]
) -> None:
    """Brief of the inspector: a bounded list in memory, off unless the inspector is served."""
    for number in range(230):
        await page.api("POST", "/v4/search", **DATA, q=f"question {number}")
    seen = (await page.ask("recalls"))["recalls"]
    assert [seen[0]["query"], seen[-1]["query"]] == ["question 30", "question 229"]
    plain = serve()
    await plain.found("ana", "tea")
    assert plain.engine.recent.after(0) == []
