"""Who may use the service: hosts, sites, keys and how often."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from starlette.types import ASGIApp

from supermemory_livekit.local import create_app
from supermemory_livekit.local.guard import Guard, TokenBuckets
from supermemory_livekit.local.server import serve

from .support import Service

KEY = "sm_local_x"
URL = "http://localhost:6767"


class Hand:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def client(service: Service) -> Callable[..., httpx.AsyncClient]:
    """A client of a guarded app, with the right key unless told otherwise."""

    def opened(
        app: ASGIApp | None = None, *, key: str | None = KEY, base_url: str = URL
    ) -> httpx.AsyncClient:
        app = app or create_app(service.engine, api_key=KEY, hosts=["localhost", "::1"])
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=base_url, headers=headers)

    return opened


@pytest.mark.parametrize("name", [URL, "http://LOCALHOST", "http://[::1]:6767"])
async def test_the_server_answers_to_its_own_names(
    client: Callable[..., httpx.AsyncClient], name: str
) -> None:
    """With and without a port, in any case."""
    assert (await client(base_url=name).get("/v3/container-tags/list")).status_code == 200


@pytest.mark.parametrize(
    "name",
    [
        "evil.example:6767",
        "localhost.evil.example",
        "127.0.0.1.nip.example",
        "[::2]:6767",
        "",
        "localhost@evil.example",
    ],
)
async def test_a_name_that_was_made_to_lead_here_is_refused(
    client: Callable[..., httpx.AsyncClient], name: str
) -> None:
    """DNS rebinding: a page of another site calls this machine by a name of its own."""
    answer = await client().get("/health", headers={"host": name})
    assert answer.status_code == 403
    assert answer.json()["error"] == "Forbidden"


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:8080"},
        {"origin": "file://"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
    ],
)
async def test_a_page_of_another_site_cannot_use_the_service(
    client: Callable[..., httpx.AsyncClient], headers: dict[str, str]
) -> None:
    """Not even with the key, and not to find out that the service is here."""
    for path in ("/health", "/v3/container-tags/list"):
        answer = await client().get(path, headers=headers)
        assert answer.status_code == 403
        assert not [name for name in answer.headers if name.startswith("access-control")]
    body = {"content": "x", "containerTag": "ana"}
    assert (await client().post("/v3/documents", json=body, headers=headers)).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": URL, "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
    ],
)
async def test_the_servers_own_page_and_a_link_to_it_work(
    client: Callable[..., httpx.AsyncClient], headers: dict[str, str]
) -> None:
    """The inspector is a page of this server."""
    assert (await client().get("/health", headers=headers)).status_code == 200


async def test_no_answer_invites_other_sites(client: Callable[..., httpx.AsyncClient]) -> None:
    """CORS is closed: a browser that asks is told nothing."""
    asks = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    answer = await client().request("OPTIONS", "/v3/documents", headers=asks)
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
async def test_only_json_is_taken(client: Callable[..., httpx.AsyncClient], kind: str) -> None:
    """A form on another site's page can send these without asking the browser's leave."""
    body = b'{"content":"x","containerTag":"ana"}'
    headers = {"content-type": kind} if kind else {}
    answer = await client().post("/v3/documents", content=body, headers=headers)
    assert answer.status_code == 415
    answer = await client().post(
        "/v3/documents", content=body, headers={"content-type": "application/json; charset=utf-8"}
    )
    assert answer.status_code == 200


async def test_what_is_stored_is_not_kept_by_caches(client: Callable[..., httpx.AsyncClient]) -> None:
    """Headers of every answer, refusals too."""
    for key in (KEY, "wrong"):
        answer = await client(key=key).get("/v3/container-tags/list")
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("key", [None, "", "sm_local_", "sm_local_xx", "sm_local_X"])
async def test_without_the_right_key_nothing_is_shown(
    client: Callable[..., httpx.AsyncClient], key: str | None
) -> None:
    """Brief of the embedded service: the key is required on the loopback address too."""
    for method, path in (
        ("GET", "/v3/container-tags/list"),
        ("GET", "/ns"),
        ("POST", "/nowhere"),
        ("GET", "/%2e%2e/ns"),
    ):
        answer = await client(key=key).request(method, path)
        assert answer.status_code == 401
    assert (await client(key=key).get("/health")).status_code == 200


async def test_two_keys_are_no_key(client: Callable[..., httpx.AsyncClient]) -> None:
    """A proxy may look at one header and the service at the other."""
    headers = [("authorization", f"Bearer {KEY}"), ("authorization", "Bearer other")]
    assert (await client(key=None).get("/ns", headers=headers)).status_code == 401


async def test_requests_without_a_key_guess_none(client: Callable[..., httpx.AsyncClient]) -> None:
    """The inspector asks like that whether a key is needed; who opens it often is not locked out."""
    answers = [
        (await client(key=None, base_url="http://localhost").get("/ns")).status_code for _ in range(40)
    ]
    assert answers == [401] * 40


async def test_guessing_keys_is_slowed_down_and_the_right_key_still_works(
    service: Service, client: Callable[..., httpx.AsyncClient]
) -> None:
    """20 wrong keys at once, then one per second."""
    clock = Hand()
    app = Guard(create_app(service.engine, api_key=None), api_key=KEY, now=clock)
    wrong = [(await client(app, key="wrong").get("/ns")).status_code for _ in range(22)]
    assert wrong == [401] * 20 + [429] * 2
    assert (await client(app).get("/ns")).status_code == 200
    clock.time = 1
    answers = [await client(app, key="wrong").get("/ns") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [401, 429]
    assert answers[1].headers["retry-after"] == "1"


async def test_a_flood_is_told_when_to_come_back(
    service: Service, client: Callable[..., httpx.AsyncClient]
) -> None:
    """429 with Retry-After in whole seconds, which both SDKs obey."""
    clock = Hand()
    app = Guard(create_app(service.engine, api_key=None), api_key=KEY, rate=0.5, now=clock)
    answers = [await client(app).get("/ns") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 429]
    assert answers[1].headers["retry-after"] == "2"
    assert answers[1].json()["error"] == "Too many requests"
    clock.time = 2
    assert (await client(app).get("/ns")).status_code == 200


def test_each_peer_has_a_bucket_of_its_own_and_old_ones_are_forgotten() -> None:
    """Memory is bounded, however many addresses a flood comes from."""
    clock = Hand()
    buckets = TokenBuckets(1, 2, now=clock)
    assert [buckets.take("a") for _ in range(3)] == [0, 0, 1]
    assert buckets.take("b") == 0
    clock.time = 0.25
    assert buckets.take("a") == 0.75
    for peer in range(5000):
        buckets.take(str(peer))
    assert buckets.take("a") == 0
    clock.time = 1000
    assert [buckets.take("b") for _ in range(3)] == [0, 0, 1]


def test_a_server_without_a_key_must_not_be_reached_from_outside() -> None:
    """Switched off by name, and then on the loopback address alone."""
    with pytest.raises(ValueError, match="loopback"):
        serve(host="0.0.0.0", port=0, require_key=False)
