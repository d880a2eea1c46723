-- Semel's tables in a SQLite file, beside the user's own.
--
-- Every time is in milliseconds since 1970-01-01 UTC, by the clock of the machine that writes.
-- BLOB columns hold bytes exactly as they were given; nothing is folded, trimmed or converted.

-- Which migrations this file has seen. One row each.
CREATE TABLE semel_migrations (
  version    INTEGER PRIMARY KEY,
  applied_at INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER))
) STRICT;

-- One row for each committed claim: the event of this key has had its effect (state 1), or was refused for good
-- (state 2). It is written once, in the transaction of the effect, and never updated.
-- Rows lie in order of insertion, so that the old ones are found together; there is no index on expires_at, because
-- it would cost every claim and only help the purge.
CREATE TABLE semel_records (
  id           BLOB    NOT NULL,  -- 16 bytes: digest of handler, principal and key
  expires_at   INTEGER NOT NULL,  -- from here on the row counts as gone, and may be purged
  recorded_at  INTEGER NOT NULL,
  state        INTEGER NOT NULL CHECK (state IN (1, 2)),
  handler      TEXT    NOT NULL,
  principal    BLOB    NOT NULL,  -- on whose behalf the caller asked; empty where there is one tenant
  key          BLOB    NOT NULL,  -- a version byte, then the key whole; compared on every hit
  fingerprint  BLOB    NOT NULL,  -- empty where the handler compares none
  source       TEXT    NOT NULL,
  transport_id BLOB    NOT NULL,
  answer       BLOB               -- status, headers and body; NULL where it is not kept
) STRICT;

-- The guard itself: of two transactions that record one id, the second fails here.
CREATE UNIQUE INDEX semel_records_by_id ON semel_records (id);

-- Messages that were set aside, each with its reason and the bytes needed to send it again.
CREATE TABLE semel_dead_letters (
  seq                  INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of arrival
  id                   TEXT    NOT NULL UNIQUE,
  reason               TEXT    NOT NULL,  -- no_key, malformed, conflict, rejected, exhausted
  code                 INTEGER NOT NULL,  -- the number in SEMEL-0105
  detail               TEXT    NOT NULL,
  handler              TEXT    NOT NULL,
  principal            BLOB    NOT NULL,
  key                  BLOB    NOT NULL,  -- as it was sent, empty where there is none
  fingerprint          BLOB    NOT NULL,
  recorded_fingerprint BLOB    NOT NULL,  -- of a conflict: what the record holds
  source               TEXT    NOT NULL,
  sender               INTEGER NOT NULL,  -- 0 a message, 1 a caller
  sender_verified      INTEGER NOT NULL,  -- 1 where a signature over the body was checked
  transport_id         BLOB    NOT NULL,
  body                 BLOB    NOT NULL,
  attributes           BLOB    NOT NULL,
  attempts             INTEGER NOT NULL,
  times                INTEGER NOT NULL DEFAULT 1,  -- how often this letter was set aside
  set_aside_at         INTEGER NOT NULL,
  resolution           TEXT    NOT NULL DEFAULT ''  -- '' while it waits, then 'retried' or 'dropped'
) STRICT;
