"""The inspector's static page, and who may use the routes behind it. What they answer is in `test_inspector.py`."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

import supermemory_livekit.local.inspector as inspector
from supermemory_livekit.local.inspector import inspector_routes
from tests.browser.served import served

from .support import INSPECTOR_KEY, Inspected, call

STATIC = Path(inspector.__file__).parent / "static"


# -- the page


async def test_a_browser_gets_the_page_at_the_root_and_a_program_the_state_of_the_service(
    page: Inspected,
) -> None:
    """Brief of the inspector: a page at `/`; brief of the embedded service: `/` tells that something listens."""
    shown = await page.http.get("/", headers={"Accept": "text/html,*/*;q=0.8", "Authorization": ""})
    assert shown.headers["content-type"] == "text/html; charset=utf-8"
    assert "<title>Memory inspector</title>" in shown.text
    told = await page.http.get("/", headers={"Authorization": ""})
    assert told.json()["status"] == "ok"


@pytest.mark.parametrize("path", ["/", *(f"/inspector/{file.name}" for file in sorted(STATIC.iterdir()))])
async def test_every_file_of_the_page_is_given_without_a_key_and_with_a_strict_policy(
    page: Inspected, path: str
) -> None:
    """Brief of the inspector: strict CSP without unsafe-inline, no framing, no-store, no referrer."""
    if path == "/inspector/index.html":
        assert (await page.http.get(path)).status_code == 404
        return
    answer = await page.http.get(path, headers={"Accept": "text/html", "Authorization": ""})
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"https?:|\*|data:|blob:", policy)
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("file", sorted(STATIC.iterdir()), ids=lambda file: file.name)
def test_no_file_of_the_page_names_another_place_or_makes_markup_from_a_string(file: Path) -> None:
    """Brief of the inspector: no outside assets; textContent only."""
    text = file.read_text("utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?://|//[a-z]+\.[a-z]", text)
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setHTML|DOMParser|srcdoc",
        text,
    )
    assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son[a-z]+=\"", text)


@pytest.mark.parametrize(
    "path",
    [
        "/inspector/../pages.py",
        "/inspector/%2e%2e/pages.py",
        "/inspector/",
        "/inspector/nothing.js",
        "/inspector/api/nothing",
    ],
)
async def test_no_other_path_below_the_inspector_leads_anywhere(page: Inspected, path: str) -> None:
    """Brief of the embedded service: no traversal."""
    answer = await page.http.get(httpx.URL(f"http://localhost{path}"), headers={"Accept": "text/html"})
    assert answer.status_code == 404
    assert answer.json()["error"]


def test_a_server_may_go_without_the_page(tmp_path: Path) -> None:
    """`serve --no-inspector`: neither page nor routes, and a browser is told what a program is told."""
    with served(tmp_path / "memory.db", "--no-inspector") as server:
        assert server.http.get("/", headers={"Accept": "text/html"}).json()["status"] == "ok"
        assert server.http.get("/inspector/app.js").status_code == 404
        assert server.http.post("/inspector/api/overview", json={}).status_code == 404


# -- who may use it

ASKS: dict[str, dict[str, object]] = {
    "overview": {},
    "callers": {},
    "caller": {"tag": "ana"},
    "memories": {"tag": "ana"},
    "memory": {"tag": "ana", "id": "x"},
    "calls": {"tag": "ana"},
    "call": {"tag": "ana", "id": "x"},
    "search": {"tag": "ana", "q": "tea"},
    "recalls": {},
    "forget": {"tag": "ana", "id": "x"},
    "erase-call": {"tag": "ana", "id": "x"},
    "erase-caller": {"tag": "ana"},
}


def test_the_list_of_routes_above_is_complete(page: Inspected) -> None:
    """The tests below are over all of them."""
    paths = {getattr(route, "path", "") for route in inspector_routes(page.service.engine)}
    assert {path for path in paths if path.startswith("/inspector/api/")} == {
        f"/inspector/api/{name}" for name in ASKS
    }


@pytest.mark.parametrize("name", ASKS)
async def test_data_is_given_for_the_key_alone(page: Inspected, name: str) -> None:
    """Brief of the inspector: the key is needed for data also in the inspector."""
    await page.stored(call("C: I like tea."))
    for key in ("", "Bearer", "Bearer wrong", INSPECTOR_KEY, f"Basic {INSPECTOR_KEY}"):
        refused = await page.http.post(
            f"/inspector/api/{name}", json=ASKS[name], headers={"Authorization": key}
        )
        assert refused.status_code == 401
        assert "tea" not in refused.text
    cookie = await page.http.post(
        f"/inspector/api/{name}",
        json=ASKS[name],
        headers={"Authorization": "", "Cookie": f"key={INSPECTOR_KEY}"},
    )
    assert cookie.status_code == 401
    assert await page.service.found("ana", "tea"), "something was taken away without a key"


@pytest.mark.parametrize("name", ASKS)
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
    ids=["another site", "another port", "plain text", "a form"],
)
async def test_a_page_of_another_site_cannot_use_it_even_with_the_key(
    page: Inspected, name: str, headers: dict[str, str], status: int
) -> None:
    """Brief of the inspector: CSRF impossible, cross-site pages cannot use it, CORS closed."""
    answer = await page.http.post(f"/inspector/api/{name}", json=ASKS[name], headers=headers)
    assert answer.status_code == status
    question = await page.http.request(
        "OPTIONS",
        f"/inspector/api/{name}",
        headers={"Origin": "https://example.com", "Access-Control-Request-Method": "POST"},
    )
    assert not question.is_success
    assert not [one for one in (*answer.headers, *question.headers) if one.startswith("access-control")]


async def test_answers_are_kept_nowhere(page: Inspected) -> None:
    """Brief of the inspector: no-store, nosniff, referrer none."""
    answer = await page.http.post("/inspector/api/overview", json={})
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
