"""What was forgotten is not found in the text that said it, where that text says nothing else."""

from __future__ import annotations

from .support import Service, call

DATABASES = ("sqlite", "postgresql")


async def test_a_forgotten_fact_is_not_found_in_the_note_that_stored_it(service: Service) -> None:
    """Specification: `forget` forgets one fact. The note that the tool `remember` stored is that fact."""
    await service.sdk.add(content="Loyalty card 48213.", container_tag="ana", dreaming="instant")
    await service.settled()
    assert set(await service.found("ana", "loyalty card")) == {"Loyalty card 48213."}
    await service.sdk.memories.forget(container_tag="ana", content="Loyalty card 48213.")
    assert await service.found("ana", "loyalty card") == []


async def test_forgetting_a_fact_leaves_the_words_of_a_call(service: Service) -> None:
    """Specification: the raw text of a call stays searchable; a fact is forgotten, not a conversation."""
    text = call("C: My card is 48213.", "A: Thank you.")
    await service.sdk.add(content=text, container_tag="ana", custom_id="lk-1", dreaming="instant")
    await service.settled()
    await service.sdk.memories.forget(container_tag="ana", content="My card is 48213.")
    assert await service.found("ana", "card 48213") == [text]


async def test_what_was_forgotten_stays_so_when_its_note_is_deleted_and_the_call_is_read_later(
    service: Service,
) -> None:
    """Case T7: a fact is saved and forgotten at once, its note is deleted, and the call that says it is read then."""
    note = await service.sdk.add(content="My dog is Rex.", container_tag="ana", dreaming="instant")
    await service.settled()
    await service.sdk.memories.forget(container_tag="ana", content="My dog is Rex.")
    await service.sdk.documents.delete(note.id)
    text = call("C: My dog is Rex.", "A: Noted.")
    await service.sdk.add(content=text, container_tag="ana", custom_id="lk-1", dreaming="instant")
    await service.settled()
    assert await service.profile("ana") == []
