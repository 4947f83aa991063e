"""What clients may send: the request bodies of Supermemory's v3/v4 API, as far as this service speaks it.

Unknown keys are refused, as the API's contract has it, so that a misspelt option is an error and not a
surprise. Every body that touches stored text names exactly one container tag: this service has no way to ask
for everything.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    StrictStr,
    model_validator,
)
from typing_extensions import Self

from .fields import (
    Content,
    CustomId,
    Dreaming,
    EntityContext,
    MemoryText,
    MetadataMap,
    Moment,
    Page,
    Strict,
    Tag,
    TaskType,
    Unit,
    count,
)
from .filters import Filters

__all__ = [
    "AddDocument",
    "BatchAdd",
    "BulkDelete",
    "Conversation",
    "CreateMemories",
    "DocumentSearch",
    "ForgetMatching",
    "ForgetMemory",
    "Include",
    "ListChunks",
    "ListDocuments",
    "ListMemories",
    "MemorySearch",
    "Message",
    "NewMemoryItem",
    "Profile",
    "TagQuery",
    "UpdateDocument",
    "UpdateMemory",
    "UpdateTag",
]


class _Tagged(Strict):
    """A body with exactly one tag, given as `containerTag` or as a `containerTags` of one."""

    container_tag: Tag | None = None
    container_tags: Annotated[list[Tag], Field(min_length=1, max_length=1)] | None = None

    @model_validator(mode="after")
    def _one_tag(self) -> Self:
        given = {*(self.container_tags or ()), *([self.container_tag] if self.container_tag else ())}
        if len(given) != 1:
            raise ValueError("containerTag: exactly one container tag is required")
        return self

    @property
    def tag(self) -> str:
        return self.container_tag or (self.container_tags or [""])[0]


class _DocumentFields(Strict):
    metadata: MetadataMap | None = None
    task_type: TaskType | None = None
    filepath: str | None = None
    filter_by_metadata: MetadataMap | None = None
    entity_context: EntityContext | None = None
    dreaming: Dreaming | None = None
    document_date: Moment | None = None


class AddDocument(_Tagged, _DocumentFields):
    """`POST /v3/documents`."""

    content: Content
    custom_id: CustomId | None = None


class BatchItem(_DocumentFields):
    content: Content
    custom_id: CustomId | None = None
    container_tag: Tag | None = None
    container_tags: Annotated[list[Tag], Field(min_length=1, max_length=1)] | None = None


class BatchAdd(_DocumentFields):
    """`POST /v3/documents/batch`. What stands beside `documents` holds for each that says nothing else."""

    documents: (
        Annotated[list[BatchItem], Field(min_length=1, max_length=600)]
        | Annotated[list[Content], Field(min_length=1, max_length=600)]
    )
    container_tag: Tag | None = None
    container_tags: Annotated[list[Tag], Field(min_length=1, max_length=1)] | None = None
    content: None = None

    def items(self) -> list[AddDocument]:
        """Raises pydantic's `ValidationError` when one has no tag."""
        shared = self.model_dump(by_alias=True, exclude_unset=True, exclude={"documents", "content"})
        return [AddDocument.model_validate(_merged(shared, item)) for item in self.documents]


class UpdateDocument(Strict):
    """`PATCH /v3/documents/{id}`. Content replaces; a tag may be named but not changed."""

    content: Content | None = None
    custom_id: CustomId | None = None
    container_tag: Tag | None = None
    container_tags: Annotated[list[Tag], Field(min_length=1, max_length=1)] | None = None
    metadata: MetadataMap | None = None
    task_type: TaskType | None = None
    filepath: str | None = None
    filter_by_metadata: MetadataMap | None = None


class _Listing(Strict):
    container_tags: Annotated[list[Tag], Field(min_length=1, max_length=1)]
    filters: Filters | None = None
    page: Page = 1
    order: Literal["asc", "desc"] = "desc"

    @property
    def tag(self) -> str:
        return self.container_tags[0]


class ListDocuments(_Listing):
    """`POST /v3/documents/list`."""

    sort: Literal["createdAt", "updatedAt"] = "createdAt"
    limit: Annotated[int, BeforeValidator(count), Field(ge=1, le=200)] = 10
    include_content: bool = False
    filepath: str | None = None


class ListChunks(_Listing):
    """A list of v5 alone: the pieces that documents are searched by."""

    limit: Annotated[int, BeforeValidator(count), Field(ge=1, le=200)] = 10
    sort: Literal["createdAt", "updatedAt", "position"] = "createdAt"


class ListMemories(_Listing):
    """`POST /v4/memories/list`."""

    sort: Literal["createdAt", "updatedAt"] = "createdAt"
    limit: Annotated[int, BeforeValidator(count), Field(ge=1, le=1100)] = 10


class TagQuery(Strict):
    """The query of `GET /v3/documents/processing`."""

    container_tags: Tag


class BulkDelete(Strict):
    """`DELETE /v3/documents/bulk`."""

    ids: Annotated[list[str], Field(min_length=1, max_length=100)] | None = None
    container_tags: Annotated[list[Tag], Field(min_length=1)] | None = None
    filepath: str | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.ids is None and self.container_tags is None:
            raise ValueError("either 'ids' or 'containerTags' must be provided")
        return self


class UpdateTag(Strict):
    """`PATCH /v3/container-tags/{tag}`. A tag's name and its profile buckets are not kept here."""

    entity_context: EntityContext | None = None


class TextPart(Strict):
    type: Literal["text"]
    text: str


class ImageAddress(Strict):
    url: str


class ImagePart(Strict):
    """Taken and not looked at."""

    type: Literal["image_url"]
    image_url: ImageAddress


class Message(Strict):
    role: Literal["user", "assistant", "system", "tool"]
    content: str | list[TextPart | ImagePart]
    name: str | None = None
    # In the contract's own spelling, and taken without being looked at.
    tool_calls: list[Any] | None = Field(default=None, alias="tool_calls")
    tool_call_id: str | None = Field(default=None, alias="tool_call_id")

    @property
    def text(self) -> str:
        """What was said, on one line."""
        parts = [self.content] if isinstance(self.content, str) else _texts(self.content)
        return " ".join(" ".join(parts).split())


class Conversation(_Tagged):
    """`POST /v4/conversations`."""

    conversation_id: CustomId
    messages: Annotated[list[Message], Field(min_length=1)]
    metadata: dict[str, StrictStr | bool | int | Annotated[float, Field(allow_inf_nan=False)]] | None = None
    entity_context: EntityContext | None = None


class Include(Strict):
    documents: bool = False
    summaries: bool = False
    related_memories: bool = False
    forgotten_memories: bool = False
    chunks: bool = False


class MemorySearch(_Tagged):
    """`POST /v4/search`."""

    q: Annotated[str, Field(min_length=1)]
    search_mode: Literal["memories", "hybrid", "documents"] = "memories"
    limit: Annotated[int, Field(ge=1, le=100)] = 10
    threshold: Unit = 0.6
    filters: Filters | None = None
    include: Include = Include()
    rerank: bool = False
    aggregate: bool = False
    rewrite_query: bool = False
    filepath: str | None = None


class DocumentSearch(_Tagged):
    """`POST /v3/search`."""

    q: Annotated[str, Field(min_length=1)]
    limit: Annotated[int, Field(ge=1, le=100)] = 10
    chunk_threshold: Unit = 0.0
    document_threshold: Unit = 0.0
    doc_id: Annotated[str, Field(max_length=255)] | None = None
    filters: Filters | None = None
    include_full_docs: bool = False
    include_summary: bool = False
    only_matching_chunks: bool = True
    rerank: bool = False
    rewrite_query: bool = False
    categories_filter: list[str] | None = None
    filepath: str | None = None


class Profile(Strict):
    """`POST /v4/profile`."""

    container_tag: Tag
    q: str | None = None
    threshold: Unit = 0.6
    filters: Filters | None = None
    include: list[Literal["static", "dynamic", "buckets"]] = Field(default=["static", "dynamic", "buckets"])
    buckets: list[str] | None = None


class TemporalContext(Strict):
    document_date: Moment | None = None
    event_date: list[str] | None = None


class NewMemoryItem(Strict):
    content: MemoryText
    is_static: bool = False
    metadata: MetadataMap | None = None
    forget_after: Moment | None = None
    forget_reason: str | None = None
    temporal_context: TemporalContext | None = None


class CreateMemories(Strict):
    """`POST /v4/memories`."""

    container_tag: Tag
    memories: Annotated[list[NewMemoryItem], Field(min_length=1, max_length=100)]


class _OneMemory(Strict):
    container_tag: Tag
    id: str | None = None
    content: str | None = None

    @model_validator(mode="after")
    def _named(self) -> Self:
        if not self.id and not (self.content or "").strip():
            raise ValueError("either 'id' or 'content' is required")
        return self


class ForgetMemory(_OneMemory):
    """`DELETE /v4/memories`."""

    reason: str | None = None


class UpdateMemory(_OneMemory):
    """`PATCH /v4/memories`."""

    new_content: MemoryText
    metadata: MetadataMap | None = None
    forget_after: Moment | None = None
    forget_reason: str | None = None
    temporal_context: TemporalContext | None = None


class ForgetMatching(Strict):
    """`POST /v4/memories/forget-matching`."""

    container_tag: Tag
    query: Annotated[str, Field(min_length=1, max_length=2000)] | None = None
    ids: Annotated[list[str], Field(min_length=1, max_length=500)] | None = None
    dry_run: bool = False
    threshold: Unit = 0.5
    max_forget: Annotated[int, Field(ge=1, le=500)] = 100
    reason: str | None = None

    @model_validator(mode="after")
    def _named(self) -> Self:
        if (self.query is None) is (self.ids is None):
            raise ValueError("exactly one of 'query' and 'ids' is required")
        return self


def _texts(parts: list[TextPart | ImagePart]) -> list[str]:
    return [part.text for part in parts if isinstance(part, TextPart)]


def _merged(shared: dict[str, Any], item: BatchItem | str) -> dict[str, Any]:
    own = {"content": item} if isinstance(item, str) else item.model_dump(by_alias=True, exclude_unset=True)
    if own.get("containerTag") or own.get("containerTags"):
        shared = {key: value for key, value in shared.items() if key not in ("containerTag", "containerTags")}
    return {**shared, **own}
