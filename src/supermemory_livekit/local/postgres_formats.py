"""The tables of a PostgreSQL schema, and how one of an older format is brought up to date."""

from __future__ import annotations

__all__ = ["MIGRATIONS"]

MIGRATIONS = (
    # 1: the first format.
    """
CREATE TABLE tags (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tag text NOT NULL UNIQUE,
  version bigint NOT NULL DEFAULT 0,     -- grows with every change below this tag
  entity_context text,
  created_at bigint NOT NULL,            -- all times: milliseconds since 1970, UTC
  updated_at bigint NOT NULL
);
CREATE TABLE documents (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text NOT NULL UNIQUE,
  tag_id bigint NOT NULL REFERENCES tags(id) ON DELETE CASCADE,
  custom_id text,
  content text NOT NULL,
  metadata text NOT NULL,                -- a JSON object
  task_type text NOT NULL,
  filepath text,
  dated_at bigint,                       -- when its content is from, if the client said so
  dreamed bigint NOT NULL DEFAULT 0,     -- so many characters of the content have become memories
  epoch bigint NOT NULL DEFAULT 0,       -- grows when the content is replaced, not when it is appended to
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  UNIQUE (tag_id, custom_id)
);
CREATE INDEX documents_by_custom_id ON documents (custom_id);
CREATE TABLE chunks (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text NOT NULL UNIQUE,
  tag_id bigint NOT NULL REFERENCES tags(id) ON DELETE CASCADE,
  document_seq bigint NOT NULL REFERENCES documents(seq) ON DELETE CASCADE,
  start bigint NOT NULL,                 -- characters [start, stop) of the content
  stop bigint NOT NULL,
  text text NOT NULL,
  at bigint NOT NULL,
  vector vector,
  vector_model text,
  changed bigint NOT NULL                -- the tag's version that changed this row last
);
CREATE INDEX chunks_by_tag ON chunks (tag_id, changed);
CREATE INDEX chunks_by_document ON chunks (document_seq, start);
CREATE INDEX chunks_by_model ON chunks (tag_id, vector_model);
CREATE TABLE memories (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text NOT NULL UNIQUE,
  tag_id bigint NOT NULL REFERENCES tags(id) ON DELETE CASCADE,
  text text NOT NULL,
  norm text NOT NULL,                    -- two texts with the same norm are the same fact
  static bigint NOT NULL,                -- 0 or 1, as in the SQLite file
  metadata text NOT NULL,
  at bigint NOT NULL,                    -- when it was said last
  version bigint NOT NULL,
  parent_id text,
  root_id text,
  latest bigint NOT NULL,
  forgotten_at bigint,
  forget_reason text,
  forget_after bigint,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  vector vector,
  vector_model text,
  changed bigint NOT NULL
);
CREATE INDEX memories_by_tag ON memories (tag_id, changed);
CREATE INDEX memories_by_age ON memories (tag_id, latest, static, at, seq);
-- By its hash: a fact may be longer than an entry of a B-tree can be.
CREATE INDEX memories_by_norm ON memories USING hash (norm);
CREATE INDEX memories_by_parent ON memories (parent_id);
CREATE INDEX memories_by_model ON memories (tag_id, vector_model);
CREATE TABLE sources (
  memory_seq bigint NOT NULL REFERENCES memories(seq) ON DELETE CASCADE,
  document_seq bigint NOT NULL REFERENCES documents(seq) ON DELETE CASCADE,
  PRIMARY KEY (memory_seq, document_seq)
);
CREATE INDEX sources_by_document ON sources (document_seq);
CREATE TABLE jobs (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind text NOT NULL,                    -- 'embed' (one per tag) or 'dream' (one per document)
  tag_id bigint NOT NULL REFERENCES tags(id) ON DELETE CASCADE,
  document_seq bigint NOT NULL,          -- 0 for 'embed'
  due_at bigint NOT NULL,
  generation bigint NOT NULL DEFAULT 0,  -- grows when more work arrives, also while the job is being done
  attempts bigint NOT NULL DEFAULT 0,
  owner text,
  lease_until bigint NOT NULL DEFAULT 0,
  UNIQUE (kind, tag_id, document_seq)
);
CREATE INDEX jobs_by_due ON jobs (due_at);
""",
    # 2: as format 3 of the file: calls were cut into pieces of three turns, and are now into single ones.
    "INSERT INTO jobs (kind, tag_id, document_seq, due_at) SELECT 'cut', id, 0, 0 FROM tags",
)
"""What brings a schema from each format to the next. A new format is added at the end; none is ever changed."""
