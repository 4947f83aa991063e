"""The service keeps to the contract it publishes, whatever is asked of it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from supermemory_livekit.local.app import ENDPOINTS

from .support import Service

# Schemathesis reads the contract anew for each test, and shrinks what fails.
pytestmark = pytest.mark.timeout(180)

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]


@pytest.fixture
async def contract(http: httpx.AsyncClient) -> Any:
    document = (await http.get("/openapi.json")).json()
    # Inside the process no key is asked for; `test_guard` has the tests of keys.
    del document["security"]
    return schemathesis.openapi.from_dict(document)


async def test_every_route_is_in_the_published_contract(http: httpx.AsyncClient) -> None:
    """Brief: the service publishes its contract; one operation per route, each with words of its own."""
    document = (await http.get("/openapi.json")).json()
    published = {
        (method.upper(), path): operation["summary"]
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    assert set(published) == {(one.method, one.path.replace(":path", "")) for one in ENDPOINTS}
    assert all(published.values())


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
async def test_every_answer_keeps_to_the_contract(
    mode: GenerationMode, data: st.DataObject, contract: Any, service: Service
) -> None:
    """Brief: Schemathesis against the contract, no 5xx. What is stored is what the requests before stored."""
    operation = data.draw(st.sampled_from([result.ok() for result in contract.get_all_operations()]))
    case = data.draw(operation.as_strategy(generation_mode=mode))
    request = case.as_transport_kwargs(base_url="http://local")
    answer = await service.http.request(
        request["method"],
        request["url"],
        params=request.get("params"),
        headers=dict(request["headers"]),
        **({"json": request["json"]} if "json" in request else {"content": request.get("data")}),
    )
    case.validate_response(answer, checks=CHECKS)
