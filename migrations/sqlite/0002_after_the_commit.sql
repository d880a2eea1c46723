-- What happens after the commit: intents with their history, the outbox, and queues. Times and BLOBs as in 0001.

-- A record may now be open: NULL or 0 closed, 1 in progress, 2 ambiguous. Then expires_at is the greatest integer, and a
-- claim and a purge need no condition of their own for it. A column of its own, since SQLite cannot widen the CHECK of
-- `state`: that would copy the whole table, or edit its definition behind SQLite's back. A column without a CHECK is
-- added by one change of the schema and reads no row, however many there are.
ALTER TABLE semel_records ADD COLUMN open INTEGER;

-- One row for each call to the outside that a handler asked for. Goes with its record.
CREATE TABLE semel_intents (
  number          INTEGER PRIMARY KEY,      -- the order in which they were intended
  id              BLOB    NOT NULL UNIQUE,  -- 16 bytes
  record          BLOB    NOT NULL,         -- semel_records.id
  handler         TEXT    NOT NULL,
  principal       BLOB    NOT NULL,
  key             BLOB    NOT NULL,         -- a version byte, then the key whole
  parent          BLOB,                     -- whose settle step intended it
  compensates     BLOB,                     -- what it undoes
  step            INTEGER NOT NULL,
  effect          TEXT    NOT NULL,
  provider        TEXT    NOT NULL,
  reference       BLOB    NOT NULL,
  idempotency_key BLOB    NOT NULL,
  request         BLOB    NOT NULL,
  compensation    BLOB,
  message         BLOB    NOT NULL,         -- what it began with, for the settle step
  state           INTEGER NOT NULL CHECK (state BETWEEN 1 AND 6),
                  -- 1 pending, 2 started, 3 succeeded, 4 failed, 5 ambiguous, 6 abandoned
  attempt         INTEGER NOT NULL,         -- the token: only grows, and whoever changes the row names it
  doubtful        INTEGER NOT NULL,         -- 1: an earlier attempt may have had its effect
  settled         INTEGER NOT NULL,
  flagged         INTEGER NOT NULL,         -- 1: an operator is asked
  outcome         BLOB,
  failures        INTEGER NOT NULL,
  created_at      INTEGER NOT NULL,
  started_at      INTEGER,                  -- of the first attempt that may have reached the provider
  doubtful_since  INTEGER,
  due_at          INTEGER  -- when it needs something: of a started one, when its lease runs out; NULL: nothing
) STRICT;

CREATE INDEX semel_intents_by_record ON semel_intents (record);
-- What is done with is in neither of these, so that looking for work costs the same however many are kept.
CREATE INDEX semel_intents_due ON semel_intents (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX semel_intents_unfinished ON semel_intents (number) WHERE settled = 0 OR flagged = 1 OR state IN (1, 2, 5);

-- What happened to an intent, line by line; never updated, and gone with the intent.
CREATE TABLE semel_intent_events (
  number   INTEGER PRIMARY KEY,
  intent   BLOB    NOT NULL,  -- semel_intents.id
  kind     TEXT    NOT NULL,
  attempt  INTEGER NOT NULL,
  by       BLOB    NOT NULL,
  detail   BLOB    NOT NULL,
  evidence BLOB,              -- an outcome
  at       INTEGER NOT NULL
) STRICT;

CREATE INDEX semel_intent_events_by_intent ON semel_intent_events (intent);

-- Messages that are to be sent; a row leaves once its receiver has confirmed it.
CREATE TABLE semel_outbox (
  number       INTEGER PRIMARY KEY,      -- the order in which they were published
  id           BLOB    NOT NULL UNIQUE,  -- 16 bytes
  record       BLOB    NOT NULL,         -- semel_records.id
  handler      TEXT    NOT NULL,
  principal    BLOB    NOT NULL,
  key          BLOB    NOT NULL,
  target       TEXT    NOT NULL,
  order_key    BLOB    NOT NULL,         -- empty: in any order
  attributes   BLOB    NOT NULL,
  body         BLOB    NOT NULL,
  attempt      INTEGER NOT NULL DEFAULT 0,
  failures     INTEGER NOT NULL DEFAULT 0,
  last_error   BLOB    NOT NULL DEFAULT x'',
  held         INTEGER NOT NULL DEFAULT 0,  -- 1: an operator is asked
  due_at       INTEGER NOT NULL,         -- not to be taken before: its lease, or the pause before another attempt
  published_at INTEGER NOT NULL
) STRICT;

CREATE INDEX semel_outbox_in_order ON semel_outbox (target, order_key, number);
CREATE INDEX semel_outbox_by_record ON semel_outbox (record);  -- a record with unsent messages does not expire

-- Messages that wait in a queue until somebody takes them out. Semel's own consumers lease a row: they raise
-- receive_count, and due_at says until when. Any other SQL client may take messages in its own transaction, so that
-- what it does and the end of the message are one commit, and a failure gives the message back:
--
--   BEGIN IMMEDIATE;                                -- one transaction writes at a time, so no row needs a lock
--   SELECT number, id, body FROM semel_queue WHERE queue = 'mails'
--     AND due_at <= CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) ORDER BY number LIMIT 10;
--   ...                                               -- the work, in this file
--   DELETE FROM semel_queue WHERE number IN (...);
--   COMMIT;
--
-- `id` is the same whenever the same message comes again. `attributes` are a byte 1, their number, then for each its
-- name and its value; each number is four bytes, most significant first, and each text a number of bytes and the bytes.
CREATE TABLE semel_queue (
  number        INTEGER PRIMARY KEY,
  id            BLOB    NOT NULL UNIQUE,
  record        BLOB    NOT NULL,  -- semel_records.id
  queue         TEXT    NOT NULL,
  order_key     BLOB    NOT NULL,
  attributes    BLOB    NOT NULL,
  body          BLOB    NOT NULL,
  receive_count INTEGER NOT NULL DEFAULT 0,
  due_at        INTEGER NOT NULL,
  sent_at       INTEGER NOT NULL
) STRICT;

CREATE INDEX semel_queue_in_order ON semel_queue (queue, number);
CREATE INDEX semel_queue_by_record ON semel_queue (record);  -- a record whose messages still wait does not expire
