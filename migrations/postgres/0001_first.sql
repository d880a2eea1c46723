-- Records and dead letters. Runs in one transaction whose search_path is Semel's schema alone, so that names need no
-- schema here and whoever reviews this file reads it as it runs.
--
-- Whatever came from outside (keys, principals, ids, bodies) is bytea: no encoding, collation or NUL can change it or
-- make two of it one. To read it: encode(key, 'escape').

CREATE TABLE migrations (
  version integer PRIMARY KEY,
  name text NOT NULL DEFAULT '',
  applied_at timestamptz NOT NULL DEFAULT now()
);

-- One row for each key that was used. Inserted with its answer, never updated.
CREATE TABLE records (
  id uuid NOT NULL,                  -- digest of handler, principal and key; these are compared too on every hit
  handler bytea NOT NULL,
  principal bytea NOT NULL,
  key bytea NOT NULL,                -- in its stored form: a version byte, then the key
  fingerprint bytea NOT NULL,        -- empty where the handler compares none
  state smallint NOT NULL CHECK (state IN (1, 2)),   -- 1 completed, 2 rejected
  answer bytea,                      -- null where it is not kept
  source bytea NOT NULL,
  transport_id bytea NOT NULL,
  recorded_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  CONSTRAINT records_id PRIMARY KEY (id)   -- the guard itself: of two transactions with one id, one commits
);

-- A b-tree here would cost every claim a fifth; this costs next to nothing, and only the purge reads it.
CREATE INDEX records_expires_at ON records USING brin (expires_at) WITH (autosummarize = on);

-- Messages set aside with their reason.
CREATE TABLE dead_letters (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,   -- the order in which they first came
  id bytea NOT NULL CONSTRAINT dead_letters_id UNIQUE,
  reason text NOT NULL,
  code integer NOT NULL,
  detail bytea NOT NULL,
  handler bytea NOT NULL,
  principal bytea NOT NULL,
  key bytea NOT NULL,                -- as it came; empty where there is none
  fingerprint bytea NOT NULL,
  recorded_fingerprint bytea NOT NULL,
  source bytea NOT NULL,
  caller boolean NOT NULL,           -- somebody waited for the answer
  sender_verified boolean NOT NULL,
  transport_id bytea NOT NULL,
  body bytea NOT NULL,
  attributes bytea NOT NULL,
  attempts integer NOT NULL,
  times bigint NOT NULL DEFAULT 1,   -- how often this very message was set aside
  set_aside_at timestamptz NOT NULL DEFAULT now(),
  resolution text NOT NULL DEFAULT ''   -- empty while it waits; 'retried' or 'dropped'
);

CREATE INDEX dead_letters_waiting ON dead_letters (number) WHERE resolution = '';
