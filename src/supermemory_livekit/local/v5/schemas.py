"""What clients may send: the paths, queries and bodies of the v5 API, and what they mean to this service.

Each body turns itself into the request of v3/v4 that asks for the same, so that both generations of the API go
through one implementation.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictStr, field_validator

from supermemory_livekit.local import fields, filters
from supermemory_livekit.local import schemas as v4
from supermemory_livekit.local.texts import iso

__all__ = [
    "AddDocument",
    "BatchAdd",
    "Comparison",
    "DocumentPath",
    "Filter",
    "ForgetMemories",
    "ForgetSimilar",
    "Group",
    "ListPath",
    "ListQuery",
    "Listing",
    "MemoryPath",
    "NamespacePath",
    "NamespacesQuery",
    "Profile",
    "RemoveDocuments",
    "RetireQuery",
    "Search",
    "UpdateDocument",
    "UpdateNamespace",
    "filter_of",
]

_MOST_LEVELS = 5
_MOST_OPERANDS = 200

DocumentId = Annotated[str, Field(min_length=1, max_length=255)]
Count = Annotated[int, BeforeValidator(fields.count)]
PageNumber = Annotated[Count, Field(ge=1, le=2**53 - 1)]
PageSize = Annotated[Count, Field(ge=1, le=100)]
Number = StrictBool | int | Annotated[float, Field(allow_inf_nan=False)]


class NamespacePath(fields.Strict):
    namespace: fields.Tag


class DocumentPath(NamespacePath):
    id: DocumentId


class MemoryPath(NamespacePath):
    id: Annotated[str, Field(min_length=1)]


class ListPath(NamespacePath):
    type: Literal["documents", "chunks", "memories"]


class Comparison(fields.Strict):
    """One condition on one key of the metadata."""

    field: Annotated[str, Field(min_length=1, pattern=r"^[a-zA-Z0-9_.-]+$")]
    operator: Literal[
        "eq", "neq", "gt", "gte", "lt", "lte", "contains", "notContains", "arrayContains", "arrayNotContains"
    ]
    value: StrictStr | Number
    case_sensitive: bool = True

    @field_validator("value")
    @classmethod
    def _fits(cls, value: str | float, info: Any) -> str | float:
        operator = info.data.get("operator", "eq")
        if operator in _NUMERIC and (isinstance(value, str | bool)):
            raise ValueError("must be a number for this operator")
        if operator not in _NUMERIC and operator not in ("eq", "neq") and not isinstance(value, str):
            raise ValueError("must be a text for this operator")
        return value


class Group(fields.Strict):
    """Conditions that all have to hold, or one of them."""

    operator: Literal["and", "or"]
    operands: Annotated[list[Filter], Field(min_length=1, max_length=_MOST_OPERANDS)]


Filter = Comparison | Group

_NUMERIC: dict[str, Literal[">", "<", ">=", "<="]] = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def filter_of(rule: Filter | None) -> filters.Filter | None:
    """The same filter in the grammar of v3/v4. A number there matches the text that spells it."""
    if rule is None:
        return None
    if isinstance(rule, Group):
        parts = [part for operand in rule.operands if (part := filter_of(operand)) is not None]
        return filters.AllOf(AND=parts) if rule.operator == "and" else filters.AnyOf(OR=parts)
    return filters.Condition.model_validate(
        {
            "key": rule.field,
            "value": _spelled(rule.value),
            "filterType": _filter_type(rule),
            "numericOperator": _NUMERIC.get(rule.operator, "="),
            "negate": rule.operator in ("neq", "notContains", "arrayNotContains"),
            "ignoreCase": not rule.case_sensitive,
        }
    )


def _filter_type(rule: Comparison) -> str:
    if rule.operator in ("contains", "notContains"):
        return "string_contains"
    if rule.operator in ("arrayContains", "arrayNotContains"):
        return "array_contains"
    if rule.operator in _NUMERIC or (
        isinstance(rule.value, int | float) and not isinstance(rule.value, bool)
    ):
        return "numeric"
    return "metadata"


def _spelled(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _bounded(rule: Filter | None) -> Filter | None:
    levels, operands = _size(rule)
    if levels > _MOST_LEVELS or operands > _MOST_OPERANDS:
        raise ValueError(f"must have at most {_MOST_LEVELS} levels and {_MOST_OPERANDS} operands")
    return rule


def _size(rule: Filter | None) -> tuple[int, int]:
    if not isinstance(rule, Group):
        return 1, 0
    inner = [_size(operand) for operand in rule.operands]
    return 1 + max(levels for levels, _ in inner), len(inner) + sum(count for _, count in inner)


class _Filtered(fields.Strict):
    filter: Filter | None = None

    _size_of_filter = field_validator("filter")(_bounded)


class _DocumentFields(fields.Strict):
    id: DocumentId | None = None
    supporting_context: fields.EntityContext | None = None
    metadata: fields.MetadataMap | None = None
    group: fields.MetadataMap | None = None
    date: fields.Moment | None = None


class _Document(_DocumentFields):
    content: fields.Content

    def asked(self, namespace: str, task_type: str | None, dreaming: str | None) -> v4.AddDocument:
        return v4.AddDocument.model_validate(
            {
                "containerTag": namespace,
                "content": self.content,
                "customId": self.id,
                "entityContext": self.supporting_context,
                "metadata": self.metadata,
                "filterByMetadata": self.group,
                "documentDate": None if self.date is None else iso(self.date),
                "taskType": task_type,
                "dreaming": dreaming,
            }
        )


class AddDocument(_Document):
    """`POST /ns/{namespace}/document`."""

    task_type: fields.TaskType | None = None
    dreaming: fields.Dreaming | None = None


class BatchAdd(fields.Strict):
    """`POST /ns/{namespace}/document/batch`."""

    documents: Annotated[list[_Document], Field(min_length=1, max_length=600)]
    task_type: fields.TaskType | None = None
    dreaming: fields.Dreaming | None = None


class UpdateDocument(fields.Strict):
    """`PATCH /ns/{namespace}/document/{id}`. Content replaces."""

    content: fields.Content | None = None
    supporting_context: fields.EntityContext | None = None
    metadata: fields.MetadataMap | None = None
    group: fields.MetadataMap | None = None
    date: fields.Moment | None = None
    task_type: fields.TaskType | None = None
    dreaming: fields.Dreaming | None = None

    def asked(self) -> v4.UpdateDocument:
        return v4.UpdateDocument.model_validate(
            {"content": self.content, "metadata": self.metadata, "taskType": self.task_type}
        )


class RemoveDocuments(fields.Strict):
    """`DELETE /ns/{namespace}/document`, and what to count memories of."""

    ids: Annotated[list[DocumentId], Field(min_length=1, max_length=100)]


class SearchInclude(fields.Strict):
    documents: bool = False
    related: bool = False
    forgotten: bool = False


class Search(_Filtered):
    """`POST /ns/{namespace}/search`."""

    query: Annotated[str, Field(min_length=1)]
    search_mode: Literal["hybrid", "memories", "chunks"] = "hybrid"
    limit: Annotated[int, Field(ge=1, le=100)] = 10
    include: SearchInclude = SearchInclude()
    threshold: fields.Unit = 0.3
    rerank: Literal["none", "order", "aggregate"] = "none"
    rewrite_query: bool = False

    def asked(self, namespace: str) -> v4.MemorySearch:
        return v4.MemorySearch.model_validate(
            {
                "containerTag": namespace,
                "q": self.query,
                "searchMode": "documents" if self.search_mode == "chunks" else self.search_mode,
                "limit": self.limit,
                "threshold": self.threshold,
                "filters": filter_of(self.filter),
                "include": {
                    "documents": self.include.documents,
                    "relatedMemories": self.include.related,
                    "forgottenMemories": self.include.forgotten,
                },
            }
        )


class Profile(_Filtered):
    """`POST /ns/{namespace}/profile`."""

    buckets: (
        Annotated[
            list[Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[a-z0-9][a-z0-9_-]*$")]],
            Field(max_length=50),
        ]
        | None
    ) = None

    def asked(self, namespace: str) -> v4.Profile:
        return v4.Profile.model_validate({"containerTag": namespace, "filters": filter_of(self.filter)})


class ForgetMemories(fields.Strict):
    """`DELETE /ns/{namespace}/memories`."""

    ids: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1, max_length=500)]


class ForgetSimilar(fields.Strict):
    """`DELETE /ns/{namespace}/memories/semantic`."""

    query: Annotated[str, Field(min_length=1, max_length=2000)]
    dry_run: bool

    def asked(self, namespace: str) -> v4.ForgetMatching:
        return v4.ForgetMatching.model_validate(
            {"containerTag": namespace, "query": self.query, "dryRun": self.dry_run}
        )


class ListInclude(fields.Strict):
    content: bool = False
    memory_count: bool = True
    forgotten: bool = False


class Listing(_Filtered):
    """`POST /ns/{namespace}/list/{type}`."""

    include: ListInclude = ListInclude()


class ListQuery(fields.Strict):
    """The query of a list."""

    page: PageNumber = 1
    limit: PageSize = 10
    sort: Literal["createdAt", "updatedAt", "position"] = "createdAt"
    order: Literal["asc", "desc"] = "desc"

    def asked(self, namespace: str, rule: Filter | None) -> dict[str, Any]:
        """What the lists of v3/v4 take."""
        return {
            "containerTags": [namespace],
            "page": self.page,
            "limit": self.limit,
            "sort": self.sort,
            "order": self.order,
            "filters": filter_of(rule),
        }


def _names(value: object) -> object:
    return tuple(value.split(",")) if isinstance(value, str) else value


class DocumentQuery(fields.Strict):
    """The query of `GET /ns/{namespace}/document/{id}`."""

    include: Annotated[tuple[Literal["chunks", "memories"], ...], BeforeValidator(_names)] = ()


class MemoryQuery(fields.Strict):
    """The query of `GET /ns/{namespace}/memories/{id}`."""

    include: Annotated[tuple[Literal["related", "documents"], ...], BeforeValidator(_names)] = ()
    related_limit: PageSize = 10


class NamespacesQuery(fields.Strict):
    """The query of `GET /ns`."""

    page: PageNumber = 1
    limit: PageSize = 10
    q: Annotated[str, Field(max_length=100)] = ""


class RetireQuery(fields.Strict):
    """The query of `DELETE /ns/{namespace}`."""

    move_to: fields.Tag | None = None


class UpdateNamespace(fields.Strict):
    """`PATCH /ns/{namespace}`."""

    supporting_context: fields.EntityContext | None = None


Group.model_rebuild()
