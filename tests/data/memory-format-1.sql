-- A memory file in format 1, as supermemory-livekit 0.1.0 wrote it.
PRAGMA application_id=1397574731;
PRAGMA user_version=1;
BEGIN TRANSACTION;
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
INSERT INTO "chunks" VALUES(1,'PnlYMLeOjJB3Qep2lbmtGj',1,1,0,86,'[2026-11-01T10:00:00.000Z] Caller: I sail.
[2026-11-01T10:00:02.000Z] Agent: How nice.',1793527200000,NULL,NULL,1);
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
INSERT INTO "documents" VALUES(1,'7lmV0LoHsVXYJrIRXfpOEh',1,'lk-room-1','[2026-11-01T10:00:00.000Z] Caller: I sail.
[2026-11-01T10:00:02.000Z] Agent: How nice.','{"kind": "call"}','memory',NULL,NULL,86,0,1795986268892,1795986268892);
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
INSERT INTO "jobs" VALUES(1,'embed',1,0,0,0,0,NULL,0);
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
INSERT INTO "memories" VALUES(1,'SFVm2hxMooHqE3D0L15uqK',1,'Sails.','sails',0,'{}',1793527200000,1,NULL,NULL,1,NULL,NULL,NULL,1795986268892,1795986268892,NULL,NULL,1);
INSERT INTO "memories" VALUES(2,'SbNRDoXAnSXfxxhJoQNZfJ',1,'Is called Ana.','is called ana',1,'{}',1793527200000,1,NULL,NULL,1,NULL,NULL,NULL,1795986268893,1795986268893,NULL,NULL,1);
INSERT INTO "memories" VALUES(3,'1mavhUX5Urk3isBcn8yzr5',1,'Lives in Porto.','lives in porto',1,'{}',1793527200000,1,NULL,NULL,0,NULL,NULL,NULL,1795986268893,1795986268893,NULL,NULL,1);
INSERT INTO "memories" VALUES(4,'M4Hjxtcz4d12GixgN7eh4a',1,'Lives in Graz.','lives in graz',1,'{}',1793613600000,2,'1mavhUX5Urk3isBcn8yzr5','1mavhUX5Urk3isBcn8yzr5',1,NULL,NULL,NULL,1795986268893,1795986268893,NULL,NULL,1);
CREATE TABLE sources (
  memory_seq INTEGER NOT NULL REFERENCES memories(seq) ON DELETE CASCADE,
  document_seq INTEGER NOT NULL REFERENCES documents(seq) ON DELETE CASCADE,
  PRIMARY KEY (memory_seq, document_seq)
) WITHOUT ROWID;
INSERT INTO "sources" VALUES(1,1);
CREATE TABLE tags (
  id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused: what is cached for a deleted tag cannot return
  tag TEXT NOT NULL UNIQUE,
  version INTEGER NOT NULL DEFAULT 0,    -- grows with every change below this tag
  entity_context TEXT,
  created_at INTEGER NOT NULL,           -- all times: milliseconds since 1970, UTC
  updated_at INTEGER NOT NULL
);
INSERT INTO "tags" VALUES(1,'ana',1,NULL,1795986268891,1795986268891);
CREATE INDEX documents_by_custom_id ON documents (custom_id);
CREATE INDEX chunks_by_tag ON chunks (tag_id, changed);
CREATE INDEX chunks_by_document ON chunks (document_seq, start);
CREATE INDEX memories_by_tag ON memories (tag_id, changed);
CREATE INDEX memories_by_age ON memories (tag_id, latest, static, at, seq);
CREATE INDEX memories_by_norm ON memories (tag_id, norm);
CREATE INDEX memories_by_parent ON memories (parent_id);
CREATE INDEX sources_by_document ON sources (document_seq);
CREATE INDEX jobs_by_due ON jobs (due_at);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('tags',1);
COMMIT;
