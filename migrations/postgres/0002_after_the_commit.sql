-- What happens after the commit: intents with their history, the outbox, and queues. Runs like 0001, in one transaction
-- whose search_path is Semel's schema alone. It reads and rewrites no row: a big table of records costs nothing here,
-- but the lock on it waits for the transactions that use it.

-- A record may now be open: 3 in progress, 4 ambiguous. Then expires_at is 'infinity', and a claim and a purge need no
-- condition of their own for it; it is updated when its intents change. NOT VALID: no row that is there can violate the
-- wider condition, and checking that would read them all.
ALTER TABLE records DROP CONSTRAINT records_state_check;
ALTER TABLE records ADD CONSTRAINT records_state_check CHECK (state IN (1, 2, 3, 4)) NOT VALID;

-- One row for each call to the outside that a handler asked for. Goes with its record.
CREATE TABLE intents (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,   -- the order in which they were intended
  id uuid NOT NULL CONSTRAINT intents_id UNIQUE,
  record uuid NOT NULL,              -- records.id
  handler bytea NOT NULL,
  principal bytea NOT NULL,
  key bytea NOT NULL,                -- in its stored form
  parent uuid,                       -- whose settle step intended it
  compensates uuid,                  -- what it undoes
  step integer NOT NULL,
  effect bytea NOT NULL,
  provider bytea NOT NULL,
  reference bytea NOT NULL,
  idempotency_key bytea NOT NULL,
  request bytea NOT NULL,
  compensation bytea,
  message bytea NOT NULL,            -- what it began with, for the settle step
  state smallint NOT NULL CHECK (state BETWEEN 1 AND 6),
                                     -- 1 pending, 2 started, 3 succeeded, 4 failed, 5 ambiguous, 6 abandoned
  attempt integer NOT NULL,          -- the token: only grows, and whoever changes the row names it
  doubtful boolean NOT NULL,         -- an earlier attempt may have had its effect
  settled boolean NOT NULL,
  flagged boolean NOT NULL,          -- an operator is asked
  outcome bytea,
  failures integer NOT NULL,
  created_at timestamptz NOT NULL,
  started_at timestamptz,            -- of the first attempt that may have reached the provider
  doubtful_since timestamptz,
  due_at timestamptz                 -- when it needs something: of a started one, when its lease runs out; null: nothing
);

CREATE INDEX intents_record ON intents (record);
-- What is done with is in neither of these, so that looking for work costs the same however many are kept.
CREATE INDEX intents_due ON intents (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX intents_unfinished ON intents (number) WHERE NOT settled OR flagged OR state IN (1, 2, 5);

-- What happened to an intent, line by line; never updated, and gone with the intent.
CREATE TABLE intent_events (
  intent uuid NOT NULL,              -- intents.id
  number bigint GENERATED ALWAYS AS IDENTITY,
  kind bytea NOT NULL,
  attempt integer NOT NULL,
  by bytea NOT NULL,
  detail bytea NOT NULL,
  evidence bytea,                    -- an outcome
  at timestamptz NOT NULL,
  CONSTRAINT intent_events_id PRIMARY KEY (intent, number)
);

-- Messages that are to be sent; a row leaves once its receiver has confirmed it.
CREATE TABLE outbox (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,   -- the order in which they were published; no cursor:
                                     -- a smaller number may be committed later
  id uuid NOT NULL CONSTRAINT outbox_id UNIQUE,
  record uuid NOT NULL,              -- records.id
  handler bytea NOT NULL,
  principal bytea NOT NULL,
  key bytea NOT NULL,
  target bytea NOT NULL,
  order_key bytea NOT NULL,          -- empty: in any order
  attributes bytea NOT NULL,
  body bytea NOT NULL,
  attempt integer NOT NULL DEFAULT 0,
  failures integer NOT NULL DEFAULT 0,
  last_error bytea NOT NULL DEFAULT '',
  held boolean NOT NULL DEFAULT false,   -- an operator is asked
  due_at timestamptz NOT NULL,       -- not to be taken before: its lease, or the pause before another attempt;
                                     -- 'infinity' while it is held
  published_at timestamptz NOT NULL
);

CREATE INDEX outbox_due ON outbox (due_at);   -- what is under way or waits, beside however much piles up
CREATE INDEX outbox_order ON outbox (target, order_key, number);
CREATE INDEX outbox_record ON outbox (record);   -- a record with unsent messages does not expire

-- Messages that wait in a queue until somebody takes them out. Semel's own consumers lease a row: they raise
-- receive_count, and due_at says until when. Any other SQL client may take messages in its own transaction, so that
-- what it does and the end of the message are one commit, and a failure gives the message back:
--
--   BEGIN;
--   SELECT number, id, body FROM semel.queue
--     WHERE queue = 'mails' AND due_at <= now() ORDER BY number LIMIT 10 FOR UPDATE SKIP LOCKED;
--   ...                                                 -- the work, in this database
--   DELETE FROM semel.queue WHERE number IN (...);
--   COMMIT;
--
-- `id` is the same whenever the same message comes again. `attributes` are a byte 1, their number, then for each its
-- name and its value; each number is four bytes, most significant first, and each text a number of bytes and the bytes.
CREATE TABLE queue (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id uuid NOT NULL CONSTRAINT queue_id UNIQUE,
  record uuid NOT NULL,              -- records.id
  queue text NOT NULL,
  order_key bytea NOT NULL,
  attributes bytea NOT NULL,
  body bytea NOT NULL,
  receive_count integer NOT NULL DEFAULT 0,
  due_at timestamptz NOT NULL,
  sent_at timestamptz NOT NULL
);

CREATE INDEX queue_order ON queue (queue, number);
CREATE INDEX queue_record ON queue (record);   -- a record whose messages still wait does not expire
