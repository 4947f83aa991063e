"""The service's own contract: an OpenAPI document made of what each endpoint says it takes and gives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from inspect import cleandoc
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter
from typing_extensions import NotRequired, TypedDict

from supermemory_livekit._version import __version__

from .endpoint import AnyPath, Endpoint, NoBody

__all__ = ["contract"]

Json = dict[str, Any]
_Use = Literal["body", "answer"]
_Mode = Literal["validation", "serialization"]


class ErrorAnswer(TypedDict):
    error: str
    details: NotRequired[str]


@cache
def contract(endpoints: tuple[Endpoint, ...], open_paths: tuple[str, ...]) -> Json:
    """An OpenAPI 3.1 document of these endpoints. Those on `open_paths` need no key."""
    schemas, definitions = _schemas(endpoints)
    paths: dict[str, Json] = {}
    for number, endpoint in enumerate(endpoints):
        operation = _operation(
            endpoint, {use: schema for (at, use), schema in schemas.items() if at == number}
        )
        if endpoint.path in open_paths:
            operation["security"] = []
        paths.setdefault(_path(endpoint), {})[endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "supermemory-livekit: the embedded memory service", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}],
    }


def _schemas(endpoints: Sequence[Endpoint]) -> tuple[dict[tuple[int, _Use], Json], Json]:
    """The JSON schema of each type by the endpoint's number and use, and the definitions they refer to."""
    refusal: TypeAdapter[Any] = TypeAdapter(ErrorAnswer)
    wanted: list[tuple[tuple[int, _Use], _Mode, TypeAdapter[Any]]] = [
        ((-1, "answer"), "serialization", refusal)
    ]
    for number, endpoint in enumerate(endpoints):
        if endpoint.body is not NoBody:
            wanted.append(((number, "body"), "validation", TypeAdapter(endpoint.body)))
        if endpoint.gives is not None:
            wanted.append(((number, "answer"), "serialization", TypeAdapter(endpoint.gives)))
    found, definitions = TypeAdapter.json_schemas(wanted, ref_template="#/components/schemas/{model}")
    return {key: schema for (key, _), schema in found.items()}, dict(definitions.get("$defs", {}))


def _path(endpoint: Endpoint) -> str:
    return re.sub(r"\{(\w+):path\}", r"{\1}", endpoint.path)


def _operation(endpoint: Endpoint, schemas: dict[_Use, Json]) -> Json:
    error = {"$ref": "#/components/schemas/ErrorAnswer"}
    success: Json = {"description": "Done"}
    if "answer" in schemas:
        success["content"] = {"application/json": {"schema": schemas["answer"]}}
        if endpoint.also is not None:
            success["content"][endpoint.also] = {"schema": {"type": "string"}}
    refusal = {"description": "Refused", "content": {"application/json": {"schema": error}}}
    operation: Json = {
        "summary": cleandoc(endpoint.answer.__doc__ or ""),
        "parameters": [*_path_parameters(endpoint), *_parameters(endpoint.query, "query")],
        "responses": {str(endpoint.status): success, "4XX": refusal, "5XX": refusal},
    }
    if "body" in schemas:
        operation["requestBody"] = {
            "required": not endpoint.body_optional,
            "content": {"application/json": {"schema": schemas["body"]}},
        }
    return operation


def _path_parameters(endpoint: Endpoint) -> list[Json]:
    if endpoint.parameters is not AnyPath:
        return _parameters(endpoint.parameters, "path")
    names = re.findall(r"\{(\w+)", endpoint.path)
    schema = {"type": "string", "minLength": 1}
    return [{"name": name, "in": "path", "required": True, "schema": schema} for name in names]


def _parameters(schema: type[BaseModel] | None, where: Literal["path", "query"]) -> list[Json]:
    if schema is None:
        return []
    described = schema.model_json_schema(by_alias=True)
    required = described.get("required", [])
    return [
        {
            "name": name,
            "in": where,
            "required": name in required,
            "schema": one,
            # A list is one text with commas.
            **({"style": "form", "explode": False} if one.get("type") == "array" else {}),
        }
        for name, one in described.get("properties", {}).items()
    ]
