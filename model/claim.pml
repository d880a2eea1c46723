/*
 * Messages: claim, effect, record, commit, acknowledgement; by two consumers on one database.
 *
 *   idle ── receive ──► received ── claim ──► claimed ── handle ──► handled ── record ──► recorded ── commit ──► committed
 *     ▲                    ▲ ▲                                                    │            │ reply lost         │
 *     │                    │ └────────── the unique index: somebody was quicker ──┘            │                    │
 *     │                    └──────────── decide again: the claim will tell ────────────────────┘                    │
 *     └────────────────────────────────────────────────── settle ───────────────────────────────────────────────────┘
 *
 * Two messages carry one key: the EVENT, and a STRANGER that uses the key for something else. The source delivers what it
 * was not acknowledged again and again, and for a bounded number of times also what somebody holds or has finished. A
 * consumer may die at every step, and may stand still anywhere for as long as it likes: nothing here looks at a clock.
 *
 * A step is one atomic block, since it is one statement on the database or none. docs/proof.md says which function each
 * stands for. Bounds are at the top. A planted bug is an #ifdef BUG_…; model/check finds each of them.
 */

#ifndef CRASHES
#define CRASHES 2      /* of both processes together */
#endif
#ifndef LOST_REPLIES
#define LOST_REPLIES 2 /* to a commit; to an acknowledgement */
#endif
#ifndef DUPLICATES
#define DUPLICATES 2   /* deliveries of what somebody else holds, or of what was acknowledged */
#endif
#ifndef LOCK_TIMEOUTS
#define LOCK_TIMEOUTS 2
#endif
#ifndef FAILURES
#define FAILURES 1     /* of a handler */
#endif

#define EVENT    1
#define STRANGER 2
#define NOBODY   0
#define SERVER   3 /* holds the index for a transaction whose client is gone */

mtype = {down, idle, received, claimed, handled, recorded, committing, committed}; /* where a consumer is */
mtype = {fresh, replay, conflict};                                                 /* what a claim decides */

/* What is durable. */
byte record;       /* the message that has its effect, or none */
byte answer;       /* kept in the record; 0: none */
bool letter[3];    /* set aside */
bool acked[3];     /* known to the source */

/* What the database holds for open transactions. */
byte index_holder; /* who has inserted the record and not committed yet */
byte in_doubt;     /* the message of a transaction that was sent COMMIT by a client that is gone */
byte in_doubt_answer;

/* Consumers: 1 and 2. */
mtype at[3];
byte holds[3];     /* the message at hand */
mtype decision[3];
byte told[3];      /* what its sender will be answered */
bool remembers[3]; /* only for BUG_GUARD_IN_MEMORY */

byte crashes = CRASHES, lost_replies = LOST_REPLIES, duplicates = DUPLICATES, failures = FAILURES,
     lock_timeouts = LOCK_TIMEOUTS;

/* Of the promises; the code knows nothing of these. */
byte effects;      /* committed ones, of both messages: they share a key */
byte first_answer;
bool has_effect[3];

#define other(c) (3 - c)

/* ---------------------------------------------------------------------------------------------------- the database -- */

/* The transaction of message m becomes durable: its effect and its record, or its letter, at once. */
inline apply(m, d, a) {
  if
  :: d == fresh ->
    effects++;
    has_effect[m] = true;
    if
    :: first_answer == 0 -> first_answer = a;
    :: else
    fi;
    record = m;
#ifdef BUG_ANSWER_NOT_STORED
    answer = 0;
#else
    answer = a;
#endif
    assert(effects <= 1); /* promise 1: at most one effect */
  :: d == conflict -> letter[m] = true;
  :: d == replay
  fi
}

inline let_go_of_index(who) {
  if
  :: index_holder == who -> index_holder = NOBODY;
  :: else
  fi
}

/* COMMIT was sent and its sender will not hear of it. The server has done it, or has not, or will do one of the two. */
inline commit_unheard(c) {
  if
  :: apply(holds[c], decision[c], told[c]);
    let_go_of_index(c);
    printf("database: the commit of consumer %d is done, and nobody hears it\n", c);
  :: let_go_of_index(c);
    printf("database: the commit of consumer %d is undone, and nobody hears it\n", c);
  :: in_doubt == 0 && decision[c] == fresh && index_holder == c ->
    in_doubt = holds[c];
    in_doubt_answer = told[c];
    index_holder = SERVER;
    printf("database: the commit of consumer %d is still under way\n", c);
  fi
}

active proctype server() {
end:
  do
  :: atomic {
      in_doubt != 0 ->
      if
      :: apply(in_doubt, fresh, in_doubt_answer);
        printf("database: done after all\n");
      :: printf("database: undone after all\n");
      fi;
      in_doubt = 0;
      in_doubt_answer = 0;
      let_go_of_index(SERVER);
    }
  od
}

/* A record goes when its message cannot come any more: retention is longer than the longest way of a message. */
#define nobody_holds (holds[1] == 0 && holds[2] == 0)
#ifdef BUG_RECORD_PURGED_EARLY
#define may_purge (acked[EVENT] || acked[STRANGER])
#else
#define may_purge (acked[EVENT] && acked[STRANGER] && duplicates == 0 && nobody_holds)
#endif

active proctype janitor() {
end:
  atomic {
    record != 0 && may_purge ->
    record = 0;
    answer = 0;
    printf("janitor: the record is gone\n");
  }
}

/* ---------------------------------------------------------------------------------------------------- the consumers -- */

inline forget(c) {
  holds[c] = 0;
  told[c] = 0;
  decision[c] = 0;
}

inline roll_back(c) { let_go_of_index(c) }

/* The source hears of it, or the word is lost and it delivers again. */
inline acknowledge(c) {
  /* Promise 2: acknowledged is only what has its effect, or is set aside. */
  if
  :: decision[c] == conflict -> assert(letter[holds[c]]);
  :: else ->
    assert(has_effect[holds[c]]);
    assert(told[c] == first_answer); /* promise 3: the first answer, also to whoever comes later */
  fi;
  if
  :: acked[holds[c]] = true;
    printf("consumer %d: acknowledges message %d\n", c, holds[c]);
  :: lost_replies > 0 ->
    lost_replies--;
    printf("consumer %d: acknowledges message %d; the source does not hear it\n", c, holds[c]);
  fi
}

/* What is neither acknowledged nor held by anybody; or, for a bounded number of times, anything. */
#define is_new(c, m) (!acked[m] && holds[other(c)] != m)

inline receive(c, m) {
  atomic {
    at[c] == idle && (is_new(c, m) || duplicates > 0) ->
    if
    :: is_new(c, m)
    :: else -> duplicates--;
    fi;
    holds[c] = m;
    at[c] = received;
    printf("consumer %d: receives message %d\n", c, m);
  }
}

/* One statement reads the committed record of the key. */
inline claim(c) {
  if
#ifdef BUG_GUARD_IN_MEMORY
  :: !remembers[c] -> decision[c] = fresh;
#else
  :: record == 0 -> decision[c] = fresh;
#endif
#ifdef BUG_FINGERPRINT_SKIPPED
  :: record != 0 ->
#else
  :: record != 0 && record != holds[c] -> decision[c] = conflict;
  :: record == holds[c] ->
#endif
    decision[c] = replay;
    told[c] = answer;
  fi;
  printf("consumer %d: claims the key of message %d: %e\n", c, holds[c], decision[c]);
#ifdef BUG_CLAIM_IN_ITS_OWN_TRANSACTION
  if
  :: decision[c] == fresh -> record = holds[c]; answer = c;
  :: else
  fi;
#endif
}

#if defined(BUG_NO_UNIQUE_INDEX) || defined(BUG_GUARD_IN_MEMORY)
#define index_is_free true
#define somebody_was_quicker false
#else
#define index_is_free (index_holder == NOBODY)
#ifdef BUG_CLAIM_IN_ITS_OWN_TRANSACTION
#define somebody_was_quicker false
#else
#define somebody_was_quicker (record != 0)
#endif
#endif

#define works(c) (at[c] != down && at[c] != idle)

proctype consumer(byte c) {
  at[c] = idle;
end:
  do
  :: receive(c, EVENT)
  :: receive(c, STRANGER)
  :: atomic { at[c] == received -> claim(c); at[c] = claimed; }
  :: atomic {
      at[c] == claimed ->
      if
      :: decision[c] == fresh -> told[c] = c; /* each run of the handler makes an answer of its own */
        printf("consumer %d: handles message %d\n", c, holds[c]);
      :: else
      fi;
      at[c] = handled;
    }
  :: atomic {
      at[c] == claimed && decision[c] == fresh && failures > 0 ->
      failures--;
      roll_back(c);
      printf("consumer %d: the handler fails; message %d goes back\n", c, holds[c]);
      forget(c);
      at[c] = idle;
    }
  /* The record is inserted. It waits for another open transaction that has inserted it. */
  :: atomic {
      at[c] == handled && (decision[c] != fresh || index_is_free) ->
      if
      :: decision[c] != fresh -> at[c] = recorded;
      :: decision[c] == fresh && !somebody_was_quicker -> index_holder = c; at[c] = recorded;
      :: decision[c] == fresh && somebody_was_quicker ->
        printf("consumer %d: the unique index says that somebody was quicker\n", c);
        told[c] = 0;
        at[c] = received;
      fi
    }
  :: atomic {
      at[c] == handled && decision[c] == fresh && !index_is_free && lock_timeouts > 0 ->
      lock_timeouts--;
      printf("consumer %d: waited too long for the index; message %d goes back\n", c, holds[c]);
      roll_back(c);
      forget(c);
      at[c] = idle;
    }
#ifdef BUG_ACKNOWLEDGED_BEFORE_THE_COMMIT
  :: atomic { at[c] == recorded -> acknowledge(c); at[c] = committing; }
#else
  :: atomic { at[c] == recorded -> at[c] = committing; }
#endif
  :: atomic {
      at[c] == committing ->
      printf("consumer %d: commits\n", c);
      apply(holds[c], decision[c], told[c]);
      let_go_of_index(c);
      remembers[c] = true;
      at[c] = committed;
    }
  /* From here on it may have been applied. */
  :: atomic {
      at[c] == committing && lost_replies > 0 ->
      lost_replies--;
      commit_unheard(c);
#ifdef BUG_LOST_REPLY_TAKEN_FOR_A_FAILURE
      /* The effect is repeated, and the record overwritten. */
      index_holder == NOBODY;
      index_holder = c;
      at[c] = recorded;
#else
      told[c] = 0;
      at[c] = received;
#endif
    }
  :: atomic {
      at[c] == committed ->
#ifndef BUG_ACKNOWLEDGED_BEFORE_THE_COMMIT
      acknowledge(c);
#endif
      forget(c);
      at[c] = idle;
    }
  :: atomic {
      works(c) && crashes > 0 ->
      crashes--;
      printf("consumer %d: dies\n", c);
      if
      :: at[c] == committing -> commit_unheard(c);
      :: else -> roll_back(c);
      fi;
      forget(c);
      remembers[c] = false;
      at[c] = down;
    }
  :: atomic { at[c] == down -> at[c] = idle; printf("consumer %d: starts again\n", c); }
  od
}

init {
  atomic {
    at[1] = down;
    at[2] = down;
    run consumer(1);
    run consumer(2);
  }
}

/* Where nothing more can happen, everything that was sent is acknowledged. (That every run comes to such an end is
 * checked apart: there is no cycle.) */
active proctype end_of_the_run() {
  timeout -> assert(acked[EVENT] && acked[STRANGER]); /* promise 2: at rest */
}
