"""The service keeps to the contract it publishes, whatever is asked of it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core import NOT_SET
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from supermemory_livekit.local.app import ENDPOINTS
from supermemory_livekit.local.inspector.api import api_endpoints
from supermemory_livekit.local.openapi import contract as published
from supermemory_livekit.local.recalls import RecentSearches

from .support import OTHER_THREADS_USE_RANDOM, Inspected

DATABASES = ("sqlite", "postgresql")

pytestmark = [
    pytest.mark.timeout(180),  # Schemathesis shrinks what fails
    OTHER_THREADS_USE_RANDOM,
]

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]


KEY = object()
MARKUP = "<img src=x onerror=alert(88213)>"


@pytest.fixture(scope="module")
def operations() -> list[Any]:
    """All routes: those of the published contract, and those that only the inspector's page asks."""
    document = {**published((*ENDPOINTS, *api_endpoints(RecentSearches())), ())}
    # What is said of the key is in `test_guard` and `test_inspector_page`.
    del document["security"]
    return [found.ok() for found in schemathesis.openapi.from_dict(document).get_all_operations()]


async def test_every_route_is_in_the_published_contract(http: httpx.AsyncClient) -> None:
    """Brief: the service publishes its contract; one operation per route, each with words of its own."""
    document = (await http.get("/openapi.json")).json()
    operations = {
        (method.upper(), path): operation["summary"]
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert set(operations) == {(one.method, one.path.replace(":path", "")) for one in ENDPOINTS}
    assert all(operations.values())


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
async def test_every_answer_keeps_to_the_contract(
    mode: GenerationMode, data: st.DataObject, operations: list[Any], page: Inspected
) -> None:
    """Brief: Schemathesis against the contract, no 5xx. What is stored is what the requests before stored."""
    case = data.draw(data.draw(st.sampled_from(operations)).as_strategy(generation_mode=mode))
    answer = await asked(page, case)
    case.validate_response(answer, checks=CHECKS)


@settings(  # what fails is one request of a thousand, of which shrinking would take an hour
    max_examples=2, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
)
@given(data=st.data())
async def test_markup_in_a_request_comes_back_in_no_refusal_and_in_no_page(
    data: st.DataObject, operations: list[Any], page: Inspected
) -> None:
    """Brief of the inspector: what a client sends never becomes a page. Each place of a request to each route."""
    for operation in operations:
        case = data.draw(operation.as_strategy())
        parts = {"path_parameters": case.path_parameters, "query": case.query, "body": case.body}
        for name, place in [(name, place) for name, part in parts.items() for place in places(part)]:
            if name == "path_parameters" and place[-1] == KEY:
                continue
            setattr(case, name, marked(parts[name], place))
            answer = await asked(page, case)
            setattr(case, name, parts[name])
            assert answer.status_code < 500
            assert answer.headers["x-content-type-options"] == "nosniff"
            if answer.content:
                kind = answer.headers["content-type"].partition(";")[0]
                assert kind in ("application/json", "text/markdown")
            assert answer.is_success or MARKUP not in answer.text


async def asked(page: Inspected, case: Any) -> httpx.Response:
    request = case.as_transport_kwargs(base_url="http://localhost")
    return await page.http.request(
        request["method"],
        request["url"],
        params=request.get("params"),
        headers=dict(request["headers"]),
        **({"json": request["json"]} if "json" in request else {"content": request.get("data")}),
    )


def places(value: Any) -> list[tuple[Any, ...]]:
    """Ways to each key and each value in a request; one that ends with `KEY` leads to the key."""
    if isinstance(value, dict):
        return [
            place
            for key, inner in value.items()
            for place in ((key, KEY), *((key, *rest) for rest in places(inner)))
        ]
    if isinstance(value, list):
        return [(number, *rest) for number, inner in enumerate(value) for rest in places(inner)] or [()]
    return [] if value is NOT_SET else [()]


def marked(value: Any, place: tuple[Any, ...]) -> Any:
    """The same with `MARKUP` at that place."""
    if not place:
        return MARKUP
    first, *rest = place
    if rest == [KEY]:
        return {MARKUP if key == first else key: inner for key, inner in value.items()}
    copied = value.copy()
    copied[first] = marked(value[first], tuple(rest))
    return copied
