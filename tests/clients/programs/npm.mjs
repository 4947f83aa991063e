// A program that uses the npm package `supermemory` 4.25 as its own documentation does. Prints what it saw as JSON.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.env.CLIENT_PACKAGES}/package.json`);
const { default: Supermemory } = await import(pathToFileURL(require.resolve("supermemory")));

const client = new Supermemory({ maxRetries: 0 });
const containerTag = "ana";

async function write() {
  const content = "User: I sail on weekends.\nAssistant: Nice";
  const added = await client.add({ content, containerTag, customId: "call-1", dreaming: "instant" });
  await client.documents.add({ content: "Likes tea", containerTag, metadata: { kind: "note" }, dreaming: "instant" });
  const batch = await client.documents.batchAdd({
    documents: [{ content: "Plays chess", containerTag }],
    dreaming: "instant",
  });
  return { id: added.id, status: added.status, batch: batch.success };
}

async function read() {
  const { profile, searchResults } = await client.profile({ containerTag, q: "tea", threshold: 0.1 });
  const found = await client.search({ q: "sail", containerTag, searchMode: "hybrid", threshold: 0.1 });
  const documents = await client.search.documents({ q: "sail", containerTag });
  const executed = await client.search.execute({ q: "tea", containerTags: [containerTag] });
  const document = await client.documents.get("call-1");
  const listed = await client.documents.list({ containerTags: [containerTag], limit: 2, order: "asc" });
  await client.documents.update("call-1", { metadata: { seen: true } });
  const updated = await client.memories.updateMemory({ containerTag, content: "Plays chess", newContent: "Plays go" });
  const tea = await client.search.memories({ q: "likes tea", containerTag, threshold: 0.5 });
  const forgotten = await client.memories.forget({ containerTag, id: tea.results[0].id });
  await client.documents.delete(document.id);
  const bulk = await client.documents.deleteBulk({ containerTags: [containerTag] });
  return {
    recalled: searchResults.results.map((hit) => hit.memory),
    static: profile.static,
    dynamic: profile.dynamic,
    found: found.results.map((hit) => hit.memory ?? hit.chunk),
    documents: documents.results.map((hit) => hit.chunks[0].content),
    executed: executed.results.map((hit) => hit.metadata),
    status: [document.status, document.dreamingStatus],
    listed: [listed.memories.length, listed.pagination.totalItems],
    updated: [updated.memory, updated.version],
    forgotten: forgotten.forgotten,
    deleted: bulk.deletedCount,
  };
}

const seen = process.argv[2] === "write" ? await write() : await read();
const { version } = JSON.parse(readFileSync(`${process.env.CLIENT_PACKAGES}/node_modules/supermemory/package.json`));
console.log(JSON.stringify({ version, ...seen }));
