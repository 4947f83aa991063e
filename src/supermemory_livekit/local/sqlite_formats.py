"""The tables of a SQLite file, and how one of an older format is brought up to date."""

from __future__ import annotations

__all__ = ["MIGRATIONS"]

MIGRATIONS = (
    # 1: the first format.
    """
CREATE TABLE tags (
  id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused: what is cached for a deleted tag cannot return
  tag TEXT NOT NULL UNIQUE,
  version INTEGER NOT NULL DEFAULT 0,    -- grows with every change below this tag
  entity_context TEXT,
  created_at INTEGER NOT NULL,           -- all times: milliseconds since 1970, UTC
  updated_at INTEGER NOT NULL
);
CREATE TABLE documents (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  tag_id INTEGER NOT NULL REFERENCES tags(id) ON DELETE CASCADE,
  custom_id TEXT,
  content TEXT NOT NULL,
  metadata TEXT NOT NULL,                -- a JSON object
  task_type TEXT NOT NULL,
  filepath TEXT,
  dated_at INTEGER,                      -- when its content is from, if the client said so
  dreamed INTEGER NOT NULL DEFAULT 0,    -- so many characters of the content have become memories
  epoch INTEGER NOT NULL DEFAULT 0,      -- grows when the content is replaced, not when it is appended to
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (tag_id, custom_id)
);
CREATE INDEX documents_by_custom_id ON documents (custom_id);
CREATE TABLE chunks (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  tag_id INTEGER NOT NULL REFERENCES tags(id) ON DELETE CASCADE,
  document_seq INTEGER NOT NULL REFERENCES documents(seq) ON DELETE CASCADE,
  start INTEGER NOT NULL,                -- characters [start, stop) of the content
  stop INTEGER NOT NULL,
  text TEXT NOT NULL,
  at INTEGER NOT NULL,
  vector BLOB,                           -- float16
  vector_model TEXT,
  changed INTEGER NOT NULL               -- the tag's version that changed this row last
);
CREATE INDEX chunks_by_tag ON chunks (tag_id, changed);
CREATE INDEX chunks_by_document ON chunks (document_seq, start);
CREATE TABLE memories (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  tag_id INTEGER NOT NULL REFERENCES tags(id) ON DELETE CASCADE,
  text TEXT NOT NULL,
  norm TEXT NOT NULL,                    -- two texts with the same norm are the same fact
  static INTEGER NOT NULL,
  metadata TEXT NOT NULL,
  at INTEGER NOT NULL,                   -- when it was said last
  version INTEGER NOT NULL,
  parent_id TEXT,
  root_id TEXT,
  latest INTEGER NOT NULL,
  forgotten_at INTEGER,
  forget_reason TEXT,
  forget_after INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  vector BLOB,
  vector_model TEXT,
  changed INTEGER NOT NULL
);
CREATE INDEX memories_by_tag ON memories (tag_id, changed);
CREATE INDEX memories_by_age ON memories (tag_id, latest, static, at, seq);
CREATE INDEX memories_by_norm ON memories (tag_id, norm);
CREATE INDEX memories_by_parent ON memories (parent_id);
CREATE TABLE sources (
  memory_seq INTEGER NOT NULL REFERENCES memories(seq) ON DELETE CASCADE,
  document_seq INTEGER NOT NULL REFERENCES documents(seq) ON DELETE CASCADE,
  PRIMARY KEY (memory_seq, document_seq)
) WITHOUT ROWID;
CREATE INDEX sources_by_document ON sources (document_seq);
CREATE TABLE jobs (
  seq INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,                    -- 'embed' (one per tag) or 'dream' (one per document)
  tag_id INTEGER NOT NULL REFERENCES tags(id) ON DELETE CASCADE,
  document_seq INTEGER NOT NULL,         -- 0 for 'embed'
  due_at INTEGER NOT NULL,
  generation INTEGER NOT NULL DEFAULT 0, -- grows when more work arrives, also while the job is being done
  attempts INTEGER NOT NULL DEFAULT 0,
  owner TEXT,
  lease_until INTEGER NOT NULL DEFAULT 0,
  UNIQUE (kind, tag_id, document_seq)
);
CREATE INDEX jobs_by_due ON jobs (due_at);
""",
    # 2: what waits for a vector is found without reading the rest: at a start, and by each embed job.
    """
CREATE INDEX chunks_by_model ON chunks (tag_id, vector_model);
CREATE INDEX memories_by_model ON memories (tag_id, vector_model);
""",
    # 3: calls were cut into pieces of three turns, and are now into single ones: a job per tag, for what is stored.
    """
INSERT INTO jobs (kind, tag_id, document_seq, due_at) SELECT 'cut', id, 0, 0 FROM tags;
""",
)
"""What brings a file from each format to the next. A new format is added at the end; none is ever changed."""
