"""Search and profile, through the official SDK and as plain HTTP."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any, Literal

import httpx

from supermemory_livekit.local.extraction import Changes, Fact
from supermemory_livekit.retrieval import load_embedder

from .support import Scripted, Service, call, word_model

DATABASES = ("sqlite", "postgresql")

SAID = datetime(2026, 11, 1, 10, 0, tzinfo=timezone.utc)


async def test_call_text_is_found_the_moment_it_is_stored(serve: Callable[..., Service]) -> None:
    """Specification: in both modes `search_memories` finds the raw call text as soon as it is stored."""
    service = serve(dynamic_delay=3600)
    modes: tuple[Literal["instant", "dynamic"], ...] = ("instant", "dynamic")
    for dreaming in modes:
        text = call(f"C: My {dreaming} locker code is 88213.", "A: Fine.")
        await service.sdk.add(content=text, container_tag=dreaming, custom_id="lk-1", dreaming=dreaming)
        answer = await service.sdk.search.memories(
            q="88213", container_tag=dreaming, search_mode="hybrid", threshold=0.1
        )
        assert "88213" in (answer.results[0].memory or answer.results[0].chunk or "")


async def test_an_answer_is_found_together_with_its_question(service: Service) -> None:
    """Brief of the embedded service: windows of neighbouring turns, not lone lines; also across two writes."""
    await service.sdk.add(content=call("C: Hello.", "A: Any allergies?"), container_tag="ana", custom_id="c")
    await service.sdk.add(
        content=call("C: Yes, peanuts.", "A: Noted.", minute=1), container_tag="ana", custom_id="c"
    )
    best = (await service.found("ana", "allergies peanuts", searchMode="documents"))[0]
    assert "Any allergies?" in best
    assert "Yes, peanuts." in best


async def test_a_hit_is_a_stretch_of_the_call_and_no_line_comes_twice(service: Service) -> None:
    """Decision 0013: neighbouring turns that are found are one hit, word for word and with who and when."""
    noise = [f"A: Anything else, number {n}?" for n in range(8)]
    talk = [*noise, "C: My boat leaks.", "A: Which boat?", *noise, "C: I sold the boat.", *noise]
    text = call(*talk)
    await service.sdk.add(content=text, container_tag="ana", custom_id="c")
    hits = await service.found("ana", "boat", searchMode="documents", limit=3)
    assert len(hits) == 2
    assert all(hit in text for hit in hits)
    assert all(hit.startswith("[2026-11-01T10:00:") for hit in hits)
    lines = [line for hit in hits for line in hit.split("\n")]
    assert len(lines) == len(set(lines))
    assert "leaks." in hits[0]
    assert "Which boat?" in hits[0]


async def test_a_turn_gets_its_meaning_together_with_the_turn_before(serve: Callable[..., Service]) -> None:
    """Decision 0013: "Yes." means what was asked; also when it is stored later than the question."""
    model = word_model("words-1")
    service = serve(load=lambda: model)
    await service.sdk.add(content=call("A: Got a dog then?"), container_tag="ana", custom_id="c")
    await service.settled()
    await service.sdk.add(content=call("C: Yes, two.", minute=1), container_tag="ana", custom_id="c")
    await service.settled()
    embedded = [text for text in model.texts if "Yes, two." in text]
    assert embedded
    assert all("Got a dog then?" in text for text in embedded if text.startswith("["))
    best = await service.found("ana", "canine", searchMode="documents", limit=1)
    assert "Got a dog then?" in best[0]
    assert "Yes, two." in best[0]


async def test_modes_choose_between_memories_and_call_text(service: Service) -> None:
    """API reference 1.4: memories (default), hybrid, documents."""
    text = call("C: I sail at dawn.", "A: Sailing is fun.")
    await service.sdk.add(content=text, container_tag="ana", dreaming="instant")
    await service.settled()
    assert await service.found("ana", "sail", searchMode="memories") == ["I sail at dawn."]
    assert await service.found("ana", "sail", searchMode="documents") == [text]
    assert set(await service.found("ana", "sail", searchMode="hybrid")) == {"I sail at dawn.", text}
    default = await service.http.post("/v4/search", json={"containerTag": "ana", "q": "sail at dawn"})
    assert ["memory" in hit for hit in default.json()["results"]] == [True]


async def test_only_a_memory_carries_an_id_that_can_be_forgotten(service: Service) -> None:
    """API reference 1.4: exactly one of memory and chunk; required keys are always there."""
    await service.sdk.add(content=call("C: I sail."), container_tag="ana", dreaming="instant")
    await service.settled()
    answer = await service.http.post(
        "/v4/search", json={"containerTag": "ana", "q": "sail", "searchMode": "hybrid", "threshold": 0}
    )
    body = answer.json()
    assert body["total"] == len(body["results"]) == 2
    assert isinstance(body["timing"], int)
    for hit in body["results"]:
        assert {"id", "metadata", "updatedAt", "similarity"} <= hit.keys()
        assert ("memory" in hit) is not ("chunk" in hit)
        assert hit["updatedAt"] == "2026-11-01T10:00:00.000Z"


async def test_threshold_and_limit_bound_what_is_found(service: Service) -> None:
    """Case R9: no hit below the threshold. Design 2: threshold and limit are always applied."""
    memories = [{"content": f"Caller drinks tea number {n}"} for n in range(12)] + [
        {"content": "Caller sails"}
    ]
    await service.http.post("/v4/memories", json={"containerTag": "ana", "memories": memories})
    assert len(await service.found("ana", "tea")) == 10
    assert len(await service.found("ana", "tea", limit=3)) == 3
    answer = await service.http.post(
        "/v4/search", json={"containerTag": "ana", "q": "tea number 7 please", "threshold": 0.5, "limit": 50}
    )
    similarities = [hit["similarity"] for hit in answer.json()["results"]]
    assert similarities
    assert all(0.5 <= similarity <= 1 for similarity in similarities)
    assert similarities == sorted(similarities, reverse=True)


async def test_meaning_finds_what_words_do_not(meaning: Service) -> None:
    """Embedded engine, section A: short facts are asked for in other words than they are stored in."""
    await meaning.sdk.add(content="dog Rex", container_tag="ana", dreaming="instant")
    await meaning.settled()
    assert (await meaning.found("ana", "canine", searchMode="memories"))[0] == "dog Rex"


async def test_the_real_model_ranks_a_paraphrase_first(serve: Callable[..., Service]) -> None:
    """Decision 0002: the model of the extra `[local]`."""
    service = serve(load=load_embedder)
    memories = ["Caller is allergic to peanuts.", "Caller lives in Porto.", "Caller drives a red van."]
    body = {"containerTag": "ana", "memories": [{"content": text} for text in memories]}
    await service.http.post("/v4/memories", json=body)
    await service.settled()
    assert (await service.found("ana", "Which city is my home in?"))[0] == "Caller lives in Porto."


async def test_vectors_of_another_model_are_made_anew(serve: Callable[..., Service]) -> None:
    """Brief of the embedded service: re-embed when the model id changes; work without a model."""
    first = serve(load=lambda: word_model("words-1"))
    await first.sdk.add(content="dog Rex", container_tag="ana", dreaming="instant")
    await first.settled()
    await first.sdk.close()
    without = serve()
    assert await without.found("ana", "rex")
    await without.sdk.close()
    model = word_model("words-2")
    second = serve(load=lambda: model)
    await second.engine.start()
    await second.settled()
    assert "dog Rex" in model.texts
    assert (await second.found("ana", "canine", searchMode="memories")) == ["dog Rex"]


async def test_filters_narrow_a_search_by_metadata(service: Service) -> None:
    """API reference 1.4: filters, as an object or as JSON."""
    await service.sdk.add(content="tea at home", container_tag="ana", metadata={"place": "Home"})
    await service.sdk.add(content="tea at work", container_tag="ana", metadata={"place": "work"})
    rule = {"AND": [{"key": "place", "value": "home", "ignoreCase": True}]}
    assert await service.found("ana", "tea", searchMode="documents", filters=rule) == ["tea at home"]
    text = '{"AND":[{"key":"place","value":"home","negate":"true","ignoreCase":true}]}'
    assert await service.found("ana", "tea", searchMode="documents", filters=text) == ["tea at work"]


async def test_a_newer_fact_takes_the_place_of_the_older(serve: Callable[..., Service]) -> None:
    """API reference 5.3: updates; the old version leaves search and profile and stays as history."""
    extractor = Scripted([Changes(add=(Fact("Caller lives in Porto.", True, SAID),))])
    service = serve(extractor=extractor)
    await service.sdk.add(content=call("C: Porto."), container_tag="ana", dreaming="instant")
    await service.settled()
    old = (await service.http.post("/v4/memories/list", json={"containerTags": ["ana"]})).json()[
        "memoryEntries"
    ]
    new = Fact("Caller lives in Lisbon.", True, SAID + timedelta(days=2), replaces=(old[0]["id"],))
    extractor.changes.append(Changes(add=(new,)))
    await service.sdk.add(content=call("C: Lisbon."), container_tag="ana", dreaming="instant")
    await service.settled()

    assert extractor.known[0].text == "Caller lives in Porto."
    assert await service.profile("ana") == ["[2026-11-03] Caller lives in Lisbon."]
    answer = await service.http.post(
        "/v4/search",
        json={"containerTag": "ana", "q": "lives", "threshold": 0, "include": {"relatedMemories": True}},
    )
    (hit,) = answer.json()["results"]
    assert (hit["memory"], hit["version"]) == ("Caller lives in Lisbon.", 2)
    assert [(one["relation"], one["version"], one["memory"]) for one in hit["context"]["parents"]] == [
        ("updates", -1, "Caller lives in Porto.")
    ]


async def test_a_fact_that_has_run_out_is_gone_by_itself(service: Service) -> None:
    """API reference 5.3: `forgetAfter` expiry, in search, profile and an index that is already in memory."""
    soon = datetime.now(timezone.utc) + timedelta(milliseconds=400)
    memories = [
        {"content": "Dentist tomorrow", "forgetAfter": soon.isoformat()},
        {"content": "Dentist is Dr Silva"},
    ]
    await service.http.post("/v4/memories", json={"containerTag": "ana", "memories": memories})
    assert len(await service.found("ana", "dentist")) == 2
    while datetime.now(timezone.utc) < soon:
        await service.found("ana", "dentist")
    assert await service.found("ana", "dentist") == ["Dentist is Dr Silva"]
    assert len(await service.profile("ana")) == 1
    forgotten = await service.found("ana", "dentist", include={"forgottenMemories": True})
    assert set(forgotten) == {"Dentist is Dr Silva", "Dentist tomorrow"}


async def test_a_profile_has_durable_facts_and_recent_ones_newest_first(
    serve: Callable[..., Service],
) -> None:
    """Brief of the embedded service: bounded lists, newest first, each line with the day it was said."""
    facts = [Fact(f"durable {n}", True, SAID - timedelta(days=n)) for n in range(60)]
    facts += [Fact(f"recent {n}", False, SAID + timedelta(hours=n)) for n in range(30)]
    service = serve(extractor=Scripted([Changes(add=tuple(facts))]))
    await service.sdk.add(content=call("C: A lot."), container_tag="ana", dreaming="instant")
    await service.settled()
    profile = (await service.sdk.profile(container_tag="ana")).profile
    assert profile.static is not None
    assert profile.dynamic is not None
    assert len(profile.static) == 50
    assert profile.static[0] == "[2026-11-01] durable 0"
    assert len(profile.dynamic) == 20
    assert profile.dynamic[0] == "[2026-11-02] recent 29"
    assert profile.dynamic[-1] == "[2026-11-01] recent 10"


async def test_a_caller_nobody_knows_has_an_empty_profile(service: Service) -> None:
    """Case R1: a new caller is no error."""
    answer = await service.http.post("/v4/profile", json={"containerTag": "nobody", "q": "tea"})
    assert answer.json()["profile"] == {"static": [], "dynamic": [], "buckets": {}}
    assert answer.json()["searchResults"]["results"] == []
    assert await service.found("nobody", "tea") == []


async def test_a_profile_with_a_question_brings_search_results(service: Service) -> None:
    """API reference 1.3: `q` gives `searchResults`; `include` chooses sections."""
    await service.sdk.add(content="Likes green tea", container_tag="ana", dreaming="instant")
    await service.settled()
    answer = await service.sdk.profile(container_tag="ana", q="green tea", threshold=0.1, include=["static"])
    assert answer.search_results is not None
    hit: Any = answer.search_results.results[0]
    # Older releases of the SDK leave it a dict.
    assert (hit["memory"] if isinstance(hit, dict) else hit.memory) == "Likes green tea"
    assert len(answer.search_results.results) == 1
    assert answer.profile.dynamic is None


async def test_documents_are_found_with_their_matching_pieces(service: Service) -> None:
    """API reference 1.4: `POST /v3/search`."""
    await service.sdk.add(content=call("C: I sail.", "A: Nice."), container_tag="ana", custom_id="lk-1")
    await service.sdk.add(content=call("C: I cook."), container_tag="ana", custom_id="lk-2")
    answer = await service.sdk.search.documents(q="sail", container_tags=["ana"], include_full_docs=True)
    (found,) = answer.results
    assert "I sail." in found.chunks[0].content
    assert found.content is not None
    assert found.score > 0
    none = await service.sdk.search.documents(q="sail", container_tags=["ana"], doc_id="lk-2")
    assert none.results == []


async def test_a_blank_question_finds_nothing(http: httpx.AsyncClient) -> None:
    """Brief of the embedded service: no 5xx on any input."""
    answer = await http.post("/v4/search", json={"containerTag": "ana", "q": "  "})
    assert (answer.status_code, answer.json()["results"]) == (200, [])


async def test_what_is_gone_takes_no_place_among_the_hits(service: Service) -> None:
    """Design 2: at most `limit` hits, of which none is spent on something forgotten since the last search."""
    memories = [{"content": "tea tea tea"}, {"content": "tea tea"}, {"content": "likes a cup of tea"}]
    await service.http.post("/v4/memories", json={"containerTag": "ana", "memories": memories})
    assert (await service.found("ana", "tea", limit=1)) != ["likes a cup of tea"]
    for text in ("tea tea tea", "tea tea"):
        await service.sdk.memories.forget(container_tag="ana", content=text)
    assert await service.found("ana", "tea", limit=1) == ["likes a cup of tea"]


async def test_a_remembered_text_is_one_hit(service: Service) -> None:
    """Case R6: the same words once. A remembered text is a document and a memory; the memory is shown."""
    await service.sdk.add(content="Likes green tea", container_tag="ana", dreaming="instant")
    await service.settled()
    answer = await service.http.post(
        "/v4/search",
        json={"containerTag": "ana", "q": "green tea", "threshold": 0, "searchMode": "hybrid"},
    )
    assert [hit.get("memory") for hit in answer.json()["results"]] == ["Likes green tea"]
