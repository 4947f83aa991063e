"""Requests that are refused, and how: always JSON, never the caller's words, never a 5xx."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from supermemory_livekit.local import Engine, create_app, open_local

from .support import KeepEverything, Service

PRIVATE = "mysecretwords"
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v3/documents", {"containerTag": "ana"}, "content"),
        ("/v3/documents", {"containerTag": "ana", "content": "  "}, "content"),
        ("/v3/documents", {"containerTag": "ana", "content": PRIVATE, "dreaming": "later"}, "dreaming"),
        ("/v3/documents", {"containerTag": "ana", "content": PRIVATE, "customId": "x" * 256}, "customId"),
        ("/v3/documents", {"containerTag": "ana", "content": PRIVATE, "metadata": {PRIVATE: {}}}, "metadata"),
        (
            "/v3/documents",
            {"containerTag": "ana", "content": PRIVATE, "documentDate": "soon"},
            "documentDate",
        ),
        ("/v3/documents", {"containerTag": PRIVATE + " !", "content": "x"}, "containerTag"),
        ("/v4/search", {"containerTag": "ana", "q": ""}, "q"),
        ("/v4/search", {"containerTag": "ana", "q": PRIVATE, "limit": 0}, "limit"),
        ("/v4/search", {"containerTag": "ana", "q": PRIVATE, "limit": 101}, "limit"),
        ("/v4/search", {"containerTag": "ana", "q": PRIVATE, "threshold": 1.5}, "threshold"),
        ("/v4/search", {"containerTag": "ana", "q": PRIVATE, "searchMode": "all"}, "searchMode"),
        ("/v4/profile", {"containerTag": "ana", "include": [PRIVATE]}, "include"),
        ("/v4/memories", {"containerTag": "ana", "memories": []}, "memories"),
        ("/v4/memories", {"containerTag": "ana", "memories": [{"content": "x" * 10_001}]}, "content"),
    ],
)
async def test_a_refusal_names_the_field_and_repeats_nothing(
    http: httpx.AsyncClient, path: str, body: dict[str, Any], field: str, caplog: pytest.LogCaptureFixture
) -> None:
    """API reference 1.0: 400; the hosted service echoes the content here, this one must not. Case P2."""
    caplog.set_level(logging.DEBUG)
    answer = await http.post(path, json=body)
    assert answer.status_code == 400
    assert field in answer.json()["details"]
    assert PRIVATE not in answer.text
    assert PRIVATE not in caplog.text


async def test_an_unknown_key_is_refused(http: httpx.AsyncClient) -> None:
    """API contract: `additionalProperties: false`."""
    body = {"containerTag": "ana", "content": "x", PRIVATE: 1}
    answer = await http.post("/v3/documents", json=body)
    assert answer.status_code == 400
    assert "not known" in answer.json()["details"]
    assert PRIVATE not in answer.text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'{"containerTag":"ana","content":NaN}',
        b"[" * 100_000,
        b'{"containerTag":"ana","content":"x","metadata":{"n":1e999}}',
        b'{"containerTag":"ana","content":"x","metadata":{"n":' + b"9" * 5000 + b"}}",
        b'{"containerTag":"ana","q":"x","filters":' + b'{"AND":[' * 300 + b"]}" * 300 + b"}",
    ],
)
async def test_a_body_that_is_no_sensible_json_is_refused(http: httpx.AsyncClient, body: bytes) -> None:
    """Brief of the embedded service: bad JSON is 400."""
    for path in ("/v3/documents", "/v4/search"):
        answer = await http.post(path, content=body, headers=JSON)
        assert answer.status_code == 400
        assert answer.json()["error"] == "Invalid request parameters"


async def test_half_a_character_and_a_nul_can_be_stored(http: httpx.AsyncClient) -> None:
    """JSON can spell what no file can hold; speech to text services have sent both."""
    body = b'{"containerTag":"ana","content":"odd \\ud83d and \\u0000 here","customId":"c"}'
    assert (await http.post("/v3/documents", content=body, headers=JSON)).status_code == 200
    assert (await http.get("/v3/documents/c")).json()["content"] == "odd ? and \x00 here"


async def test_a_body_that_is_too_large_is_refused(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brief of the embedded service: 413, also when the length is not declared."""
    monkeypatch.setattr("supermemory_livekit.local.endpoint.MAX_BODY", 1000)
    body = json.dumps({"containerTag": "ana", "content": "x" * 1000}).encode()
    assert (await http.post("/v3/documents", content=body, headers=JSON)).status_code == 413

    async def parts() -> AsyncIterator[bytes]:
        for byte in range(0, len(body), 100):
            yield body[byte : byte + 100]

    assert (await http.post("/v3/documents", content=parts(), headers=JSON)).status_code == 413


async def test_content_beyond_the_limit_is_refused(http: httpx.AsyncClient) -> None:
    """API reference 1.0: text of at most 1 MB, counted in bytes."""
    for content in ("x" * 1_000_001, "é" * 500_001):
        answer = await http.post("/v3/documents", json={"containerTag": "ana", "content": content})
        assert answer.status_code == 400
        assert "content" in answer.json()["details"]
    assert (
        await http.post("/v3/documents", json={"containerTag": "ana", "content": "é" * 500_000})
    ).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/nowhere"), ("GET", "/v3/documents"), ("PUT", "/v4/search"), ("POST", "/ns/ana/connectors")],
)
async def test_other_routes_answer_404_as_json(http: httpx.AsyncClient, method: str, path: str) -> None:
    """API reference 5.2: JSON for every status including unknown routes."""
    answer = await http.request(method, path)
    assert answer.status_code == 404
    assert answer.json()["error"] == "Not found"


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Bearer right-key-and-more",
        "Basic right-key",
        "right-key",
        "Bearer schlüssel",
    ],
)
async def test_without_the_key_nothing_is_answered(tmp_path: Path, header: str | None) -> None:
    """API reference 1.0: 401 and its body, for unknown routes too; only the health check is open."""
    engine = Engine(tmp_path / "memory.db", extractor=KeepEverything(), load=lambda: None)
    transport = httpx.ASGITransport(create_app(engine, api_key="right-key"))
    async with httpx.AsyncClient(transport=transport, base_url="http://local") as client:
        headers = {} if header is None else {b"Authorization": header.encode()}
        for path in ("/v4/profile", "/v3/container-tags/list", "/nowhere"):
            answer = await client.post(path, json={"containerTag": "ana"}, headers=headers)
            assert answer.status_code == 401
            assert answer.json()["error"] == "Unauthorized"
            assert "details" in answer.json()
        assert (await client.get("/health", headers=headers)).status_code == 200
        right = await client.post(
            "/v4/profile", json={"containerTag": "ana"}, headers={"Authorization": "Bearer right-key"}
        )
        assert right.status_code == 200
    await engine.aclose()


async def test_a_file_that_cannot_be_used_is_said_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Brief of the embedded service: a foreign file is refused with a clear error; no exception reaches a call."""
    (tmp_path / "memory.db").write_text("not a database" * 100)
    async with open_local(tmp_path / "memory.db") as client:
        answer = await client.post("/v4/profile", json={"containerTag": "ana"})
    assert answer.status_code == 503
    assert "no SQLite file" in answer.json()["details"]


async def test_no_log_line_holds_what_a_caller_said(
    serve: Callable[..., Service], caplog: pytest.LogCaptureFixture
) -> None:
    """Case P2: no spoken word, memory text or tag in a log message, not even when work fails."""

    class Broken:
        async def extract(self, *_: object, **__: object) -> Any:
            raise RuntimeError(PRIVATE)

    caplog.set_level(logging.DEBUG, logger="supermemory_livekit")
    service = serve(extractor=Broken())
    text = f"[2026-11-01T10:00:00.000Z] Caller: {PRIVATE}"
    await service.http.post(
        "/v3/documents", json={"content": text, "containerTag": PRIVATE, "dreaming": "instant"}
    )
    await service.settled()
    assert "dream failed: RuntimeError" in caplog.text
    assert PRIVATE not in "".join(
        record.getMessage() for record in caplog.records if "httpx" not in record.name
    )


keys = st.sampled_from(
    [
        "content",
        "containerTag",
        "containerTags",
        "customId",
        "metadata",
        "dreaming",
        "documentDate",
        "q",
        "limit",
        "threshold",
        "searchMode",
        "filters",
        "include",
        "id",
        "ids",
        "newContent",
        "reason",
        "memories",
        "documents",
        "page",
        "sort",
        "order",
        "query",
        "dryRun",
        "forgetAfter",
        "x",
    ]
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(
        ["ana", "ben", "instant", "hybrid", "2026-11-01", "0001-01-01T00:00:00+14:00", "x" * 200]
    ),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(keys | st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=8,
)
bodies = st.dictionaries(keys, values, max_size=6).map(
    lambda body: {"containerTag": "ana", "q": "tea", "content": "tea", **body}
) | st.dictionaries(keys, values, max_size=6)
requests = st.tuples(
    st.sampled_from(["GET", "POST", "PATCH", "DELETE"]),
    st.sampled_from(
        [
            "/v3/documents",
            "/v3/documents/batch",
            "/v3/documents/list",
            "/v3/documents/bulk",
            "/v3/documents/processing?containerTags=ana",
            "/v3/documents/c%2F1",
            "/v3/search",
            "/v3/container-tags/ana",
            "/v4/profile",
            "/v4/search",
            "/v4/memories",
            "/v4/memories/list",
            "/v4/memories/forget-matching",
        ]
    )
    | st.text(st.characters(codec="utf-8"), max_size=10).map(
        lambda text: "/v3/documents/" + text.replace("?", "").replace("#", "")
    ),
    bodies,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(request=requests)
async def test_no_request_is_answered_with_a_5xx(
    request: tuple[str, str, Any], http: httpx.AsyncClient
) -> None:
    """Brief of the embedded service: no 5xx on any input, and every answer with a body is JSON."""
    method, path, body = request
    try:
        content = json.dumps(body).encode()
        built = http.build_request(method, path, content=content, headers=JSON)
    except httpx.InvalidURL:
        return
    answer = await http.send(built)
    assert answer.status_code < 500
    if answer.status_code != 204:
        answer.json()
