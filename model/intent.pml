/*
 * An outside call: intent, lease, attempt, lookup, outcome; by two clerks, at one provider.
 *
 *   clerk:   free ── take, start ──► ready ── call ──► calling ── report ──► reported ── book ──► free
 *                                      └── the lease ran out: nobody was called ──►┘
 *
 * Everything that decides is a row in the ledger, which is changed in one transaction (one atomic block) and under the
 * number of the attempt. Between two steps a process may die, or stand still past its lease and wake up: a zombie. What
 * it has sent goes on without it.
 *
 * Time is counted in ticks, each longer than anything is quick and shorter than any span that decides. Ages stop at the
 * first value that makes no difference any more, so there are finitely many states though time never ends. A running
 * process does not let its own lease run out, except STALLS times.
 *
 * What it rests on, besides a database that keeps what it has committed:
 *  - a call arrives within one tick after the lease was looked at, or never      (not so: LIMIT_CALL_ARRIVES_ANY_TIME)
 *  - the provider remembers a key for KEY_LIFETIME                               (LIMIT_KEY_FORGOTTEN_SOONER)
 *  - the provider shows a charge within a tick                                   (LIMIT_SHOWN_LATER)
 *  - an operator who says "it did not happen" is right                           (LIMIT_OPERATOR_IS_WRONG)
 *
 * POLICY is what is said of the provider. A planted bug is an #ifdef BUG_…; model/check finds each of them.
 */

#define IDEMPOTENT            1
#define LOOKUP                2
#define NEITHER               3
#define IDEMPOTENT_AND_LOOKUP 4
#ifndef POLICY
#define POLICY IDEMPOTENT
#endif

#ifndef CRASHES
#define CRASHES 1    /* of both processes together */
#endif
#ifndef STALLS
#define STALLS 2     /* a process stands still past its lease */
#endif
#ifndef LOST_REPLIES
#define LOST_REPLIES 2 /* of the provider, whether it has charged or not; of the database to a commit */
#endif
#ifndef REFUSALS
#define REFUSALS 1   /* the provider does not do it: busy, or turned away at the door; or there is no room for the call */
#endif
#ifndef OPERATIONS
#define OPERATIONS 1 /* an operator's words */
#endif

/* In ticks. */
#ifdef LIMIT_KEY_FORGOTTEN_SOONER
#define KEY_LIFETIME 2
#else
#define KEY_LIFETIME 4 /* since the provider has first seen it */
#endif
#define REPEATABLE   2 /* key_lifetime - margin, since the first start */
#define VISIBLE      2 /* visibility_delay, since an attempt was given up without an outcome */

#define takes_keys (POLICY == IDEMPOTENT || POLICY == IDEMPOTENT_AND_LOOKUP)
#define can_look_up (POLICY == LOOKUP || POLICY == IDEMPOTENT_AND_LOOKUP)

mtype = {pending, started, succeeded, failed, ambiguous, abandoned};            /* an intent */
mtype = {down, free, ready, calling, reported};                                 /* a clerk */
mtype = {not_done, refused, unknown, not_found};                                /* verdicts, besides succeeded and failed */

/* The ledger's row. */
mtype state = pending;
byte attempt;
bool doubtful, settled, flagged, gone;
bool evidence;         /* its history holds an outcome that changed nothing */
bool leased;           /* started, and the lease has not run out */
bool due = true;       /* to be taken up now, not later */
bool was_started;
byte since_started;    /* up to REPEATABLE */
bool has_doubt_date;
byte since_doubtful;   /* up to VISIBLE; since the last attempt was given up without an outcome */

/* The clerks: 1 and 2. What each has at hand is as it was when it was taken. */
mtype at[3];
byte token[3];
bool looks_up[3];
bool in_doubt[3];
bool holds_lease[3];   /* by its own clock, which has only to be as fast as the store's */
bool asked_in_time[3]; /* the lookup was asked when everything would be visible */
mtype verdict[3];

/* The provider. A call is on its way: 1, or since the tick before: 2. Those of the dead, and those nobody waits for any
 * more, are strays. */
byte on_its_way[3];
byte stray[2];
bool declines;         /* the card */
bool knows_key;
byte knows_key_since;
byte charges;
bool charge_is_shown;

byte crashes = CRASHES, stalls = STALLS, lost_replies = LOST_REPLIES, refusals = REFUSALS, operations = OPERATIONS;

/* Of the promises; the code knows nothing of these. */
byte settlements;
bool told_outcome;     /* a process was told an outcome and has booked it */

#define is_open (state == pending || state == started || state == ambiguous)
#define is_outcome(v) (v == succeeded || v == failed)
#define other(c) (3 - c)

/* ------------------------------------------------------------------------------------------------------- the ledger -- */

/* The times that the store keeps go with the change. */
inline change(to, with_doubt) {
  if
  :: with_doubt && !has_doubt_date -> has_doubt_date = true; since_doubtful = 0;
  :: !with_doubt -> has_doubt_date = false; since_doubtful = 0;
  :: else
  fi;
  if
  :: to == started -> was_started = true;
  :: to == pending && !with_doubt -> was_started = false; since_started = 0;
  :: else
  fi;
  doubtful = with_doubt;
  state = to;
  leased = (to == started);
}

inline settle() {
  settled = true;
  settlements++;
  assert(settlements <= 1);                       /* promise 1, of what the settle step writes; promise 3: one answer */
  assert(state != succeeded || charges == 1);     /* what callers are told is so */
  assert(state != failed || charges == 0);
}

/* An outcome, and with it the settle step, the answer and what comes next. A settle step may fail: then the outcome is
 * kept, and the step is taken up later. */
inline finish(to) {
  change(to, false);
  if
  :: settle();
  :: refusals > 0 -> refusals--; due = false; printf("the settle step fails and is left for later\n");
#ifdef BUG_SETTLE_STEP_IN_ITS_OWN_TRANSACTION
  :: crashes > 0 -> crashes--; settlements++; printf("the settle step commits, and what says so does not\n");
#endif
  fi
}

inline in_doubt_now() {
#ifdef BUG_UNKNOWN_RETRIED_UNDER_NEITHER
  change(pending, false);
  due = false;
#else
  if
  :: POLICY == NEITHER -> change(ambiguous, true);
  :: else -> change(pending, true); due = false;
  fi
#endif
}

/* What a report of the current attempt does. */
inline after_answer(v, was_doubtful) {
  if
  :: is_outcome(v) -> finish(v);
  :: v == refused && !was_doubtful -> finish(failed);
  :: v == refused && was_doubtful -> in_doubt_now();
  :: v == not_done -> change(pending, was_doubtful); due = false;
  :: v == unknown -> in_doubt_now();
  fi
}

#if defined(BUG_LOOKED_UP_TOO_EARLY)
#define is_visible(c) true
#elif defined(BUG_LOOKUP_JUDGED_WHEN_IT_ARRIVES)
#define is_visible(c) (since_doubtful >= VISIBLE)
#else
#define is_visible(c) asked_in_time[c]
#endif

inline after_lookup(v, c) {
  if
  :: is_outcome(v) -> finish(v);
  :: v == not_found && is_visible(c) -> change(pending, false); due = true;
  :: v == not_found && !is_visible(c) -> change(pending, true); due = false;
  :: v == unknown -> change(pending, true); due = false;
  fi
}

/* An attempt that is not the current one any more, or whose lease was lost. An outcome may still be news. */
inline judge_anew(c) {
  if
  :: is_outcome(verdict[c]) && !gone ->
    if
#ifndef BUG_LATE_OUTCOME_DROPPED
    :: is_open && attempt == token[c] -> finish(verdict[c]); printf("clerk %d: late, and news all the same\n", c);
    :: !(is_open && attempt == token[c]) ->
      evidence = true;
      flagged = flagged || (is_open && verdict[c] == succeeded && !takes_keys) ||
                (!is_open && state != verdict[c] && (verdict[c] == succeeded || takes_keys));
      printf("clerk %d: late, and kept as evidence\n", c);
#else
    :: printf("clerk %d: late, and dropped\n", c);
#endif
    fi
  :: else
  fi
}

#ifdef BUG_NO_ATTEMPT_TOKEN
#define is_current(c) (!gone && is_open)
#else
#define is_current(c) (!gone && state == started && attempt == token[c])
#endif

inline book(c) {
  printf("clerk %d: books \"%e\" of attempt %d\n", c, verdict[c], token[c]);
  told_outcome = told_outcome || (is_outcome(verdict[c]) && !gone);
  if
  :: is_current(c) && looks_up[c] -> after_lookup(verdict[c], c);
  :: is_current(c) && !looks_up[c] -> after_answer(verdict[c], in_doubt[c]);
  :: else -> judge_anew(c);
  fi;
  /* Promise 4: what a provider has said is not lost, however late. */
  assert(!told_outcome || gone || evidence || !is_open);
}

/* ------------------------------------------------------------------------------------------------------- the clerks -- */

inline put_down(c) {
  at[c] = free;
  token[c] = 0;
  looks_up[c] = false;
  in_doubt[c] = false;
  holds_lease[c] = false;
  asked_in_time[c] = false;
  verdict[c] = 0;
}

#ifdef BUG_REPEATED_PAST_THE_KEYS_LIFETIME
#define key_is_remembered takes_keys
#else
#define key_is_remembered (takes_keys && since_started < REPEATABLE)
#endif

/* Started, and durably so before the call; the reply to that commit may be lost, and then nobody makes the call. */
inline start(c, asks, with_doubt) {
  if
  :: !asks -> attempt++;
  :: else
  fi;
  change(started, with_doubt);
#ifndef BUG_DOUBT_DATED_BY_THE_FIRST_ATTEMPT
  if
  :: !asks -> has_doubt_date = false; since_doubtful = 0; /* of what becomes of this one, nothing is known */
  :: else
  fi;
#endif
  if
  :: at[c] = ready;
    token[c] = attempt;
    looks_up[c] = asks;
    in_doubt[c] = with_doubt;
    holds_lease[c] = true;
    printf("clerk %d: starts attempt %d (asks: %d)\n", c, attempt, asks);
  :: lost_replies > 0 -> lost_replies--; printf("clerk %d: does not hear that attempt %d is started\n", c, attempt);
  fi
}

/* An attempt may have had its effect. */
inline take_in_doubt(c) {
  if
  :: key_is_remembered -> start(c, false, true);
  :: !key_is_remembered && can_look_up -> start(c, true, true);
  /* Looked up for long enough, or nothing else is left. */
  :: !key_is_remembered -> change(ambiguous, true); printf("clerk %d: nobody can know; an operator is asked\n", c);
  :: refusals > 0 -> refusals--; change(pending, true); due = false; printf("clerk %d: has no room\n", c);
#ifdef BUG_UNKNOWN_RETRIED_UNDER_NEITHER
  :: POLICY == NEITHER -> start(c, false, true);
#endif
  fi
}

#ifdef BUG_LEASE_JUDGED_BY_THE_LOCAL_CLOCK
#define lease_ran_out true
#else
#define lease_ran_out !leased
#endif

/* What the ledger holds that somebody has to do something about. */
#define something_is_due                                                                                              \
  ((state == pending && due) || (state == started && lease_ran_out) || (!is_open && !settled && due))

inline take(c) {
  if
  :: state == pending && due && !doubtful -> start(c, false, false);
  :: state == pending && due && !doubtful -> /* tried for long enough */
    finish(failed);
    printf("clerk %d: gives up what certainly did not happen\n", c);
  :: state == pending && due && doubtful -> take_in_doubt(c);
  :: state == started && lease_ran_out -> printf("clerk %d: attempt %d is dead\n", c, attempt); take_in_doubt(c);
  :: !is_open && !settled && due -> settle(); printf("clerk %d: settles\n", c);
  fi
}

#if defined(BUG_LEASE_NOT_LOOKED_AT_BEFORE_THE_CALL)
#define may_call(c) true
#else
#define may_call(c) holds_lease[c]
#endif

inline leave_behind(c) {
  if
  :: on_its_way[c] == 0
  :: on_its_way[c] != 0
  :: !looks_up[c] && on_its_way[c] != 0 && stray[0] == 0 -> stray[0] = on_its_way[c];
  :: !looks_up[c] && on_its_way[c] != 0 && stray[0] != 0 && stray[1] == 0 -> stray[1] = on_its_way[c];
  fi;
  on_its_way[c] = 0;
}

proctype clerk(byte c) {
end:
  do
  :: atomic { at[c] == free && !gone && something_is_due -> take(c); }
#ifdef BUG_CALLED_BEFORE_THE_START_IS_DURABLE
  :: atomic {
      at[c] == free && !gone && state == pending && due && !doubtful ->
      at[c] = calling;
      on_its_way[c] = 1;
      token[c] = attempt;
      printf("clerk %d: calls, and has told nobody\n", c);
    }
#endif
  :: atomic {
      at[c] == ready && may_call(c) ->
      asked_in_time[c] = looks_up[c] && since_doubtful >= VISIBLE;
      on_its_way[c] = 1;
      at[c] = calling;
      printf("clerk %d: calls (asks: %d)\n", c, looks_up[c]);
    }
  /* It stood still between the start and the call: known to have called nobody. */
  :: atomic {
      at[c] == ready && !holds_lease[c] ->
      if
      :: looks_up[c] -> verdict[c] = unknown;
      :: else -> verdict[c] = not_done;
      fi;
      at[c] = reported;
      printf("clerk %d: wakes past its lease and calls nobody\n", c);
    }
#ifdef BUG_RENEWED_BEFORE_THE_CALL
  :: atomic {
      at[c] == ready && !holds_lease[c] && state == started && attempt == token[c] ->
      leased = true;
      holds_lease[c] = true;
      printf("clerk %d: renews a lease before it has called\n", c);
    }
#endif
  :: atomic { /* a timeout or a reset; what is on its way may still arrive */
      at[c] == calling && lost_replies > 0 ->
      lost_replies--;
      verdict[c] = unknown;
      leave_behind(c);
      at[c] = reported;
      printf("clerk %d: hears nothing\n", c);
    }
  :: atomic { at[c] == reported -> book(c); put_down(c); }
  :: atomic { /* the reply to that commit is lost: it is booked again */
      at[c] == reported && lost_replies > 0 ->
      lost_replies--;
      book(c);
      printf("clerk %d: does not hear that it is booked\n", c);
    }
  :: atomic {
      at[c] != down && crashes > 0 ->
      crashes--;
      printf("clerk %d: dies\n", c);
      leave_behind(c);
      put_down(c);
      at[c] = down;
    }
  :: atomic { at[c] == down -> at[c] = free; printf("clerk %d: starts again\n", c); }
  od
}

/* ----------------------------------------------------------------------------------------------------- the provider -- */

/* A call has arrived. */
inline act(v) {
  if
#ifdef BUG_A_NEW_KEY_FOR_EACH_ATTEMPT
  :: false
#else
  :: takes_keys && knows_key
#endif
  :: declines
#ifdef BUG_A_NEW_KEY_FOR_EACH_ATTEMPT
  :: !declines ->
#else
  :: !declines && !(takes_keys && knows_key) ->
#endif
    charges++;
    charge_is_shown = false;
    printf("provider: charges\n");
    assert(charges <= 1);                          /* promise 1 */
    assert(!(settled && state == failed));         /* what callers were told stays so */
  fi;
  if
  :: takes_keys && !knows_key -> knows_key = true; knows_key_since = 0;
  :: else
  fi;
  if
  :: declines -> v = failed;
  :: else -> v = succeeded;
  fi
}

inline reply(c) {
  on_its_way[c] = 0;
  at[c] = reported;
  printf("provider: tells clerk %d \"%e\"\n", c, verdict[c]);
}

inline serve(c) {
  if
  :: atomic { on_its_way[c] != 0 && !looks_up[c] -> act(verdict[c]); reply(c); }
  :: atomic {
      on_its_way[c] != 0 && !looks_up[c] && lost_replies > 0 ->
      lost_replies--;
      act(verdict[c]);
      verdict[c] = unknown;
      reply(c);
    }
  :: atomic {
      on_its_way[c] != 0 && !looks_up[c] && refusals > 0 ->
      refusals--;
      if
      :: verdict[c] = not_done;
      :: verdict[c] = refused;
      fi;
      reply(c);
    }
  :: atomic { on_its_way[c] != 0 && looks_up[c] && charges > 0 -> verdict[c] = succeeded; reply(c); }
  :: atomic { on_its_way[c] != 0 && looks_up[c] && !charge_is_shown -> verdict[c] = not_found; reply(c); }
  fi
}

active proctype provider() {
  mtype nobody_hears;
  atomic {
    if
    :: declines = true;
    :: declines = false;
    fi;
  }
end:
  do
  :: serve(1)
  :: serve(2)
  :: atomic { stray[0] != 0 -> stray[0] = 0; act(nobody_hears); nobody_hears = 0; }
  :: atomic { stray[0] != 0 -> stray[0] = 0; printf("a call never arrives\n"); }
  :: atomic { stray[1] != 0 -> stray[1] = 0; act(nobody_hears); nobody_hears = 0; }
  :: atomic { stray[1] != 0 -> stray[1] = 0; printf("a call never arrives\n"); }
  od
}

/* ------------------------------------------------------------------------------------------------ time, and people ---- */

#ifdef LIMIT_CALL_ARRIVES_ANY_TIME
#define in_time(call) true
#else
#define in_time(call) (call != 2)
#endif
#define all_in_time (in_time(stray[0]) && in_time(stray[1]) && in_time(on_its_way[1]) && in_time(on_its_way[2]))

/* Ages stop, and so does time where it changes nothing any more. */
#define time_tells                                                                                                     \
  (!due || leased || (was_started && since_started < REPEATABLE) || (has_doubt_date && since_doubtful < VISIBLE) ||     \
   knows_key || charge_is_shown != (charges > 0))

#define renews(c) (at[c] == calling && token[c] == attempt)
#define stands_still (holds_lease[1] || holds_lease[2])

inline grow_older(age, age_max) {
  if
  :: age < age_max -> age++;
  :: else
  fi
}

inline travel(call) {
  if
  :: call == 1 -> call = 2;
  :: else
  fi
}

inline tick() {
  holds_lease[1] = holds_lease[1] && at[1] == calling;
  holds_lease[2] = holds_lease[2] && at[2] == calling;
  travel(on_its_way[1]);
  travel(on_its_way[2]);
  travel(stray[0]);
  travel(stray[1]);
  due = true;
  if
  :: was_started -> grow_older(since_started, REPEATABLE);
  :: else
  fi;
  if
  :: has_doubt_date -> grow_older(since_doubtful, VISIBLE);
  :: else
  fi;
  if
  :: knows_key ->
    knows_key_since++;
    if
    :: knows_key_since == KEY_LIFETIME -> knows_key = false; knows_key_since = 0;
    :: else
    fi
  :: else
  fi;
#ifndef LIMIT_SHOWN_LATER
  charge_is_shown = (charges > 0);
#endif
}

active proctype clock() {
end:
  do
  :: atomic { all_in_time && time_tells && !leased && !stands_still -> tick(); }
  /* Who calls renews meanwhile. */
  :: atomic { all_in_time && leased && (renews(1) || renews(2)) -> tick(); }
  :: atomic {
      all_in_time && stands_still && stalls > 0 ->
      stalls--;
      tick();
      leased = false;
      holds_lease[1] = false;
      holds_lease[2] = false;
      printf("--- somebody stands still past its lease\n");
    }
  /* Nobody alive holds it. */
  :: atomic { all_in_time && leased && !stands_still -> tick(); leased = false; }
  od
}

/* One who knows, as far as the model lets anybody know. */
#ifdef LIMIT_OPERATOR_IS_WRONG
#define nothing_happened true
#else
#define nothing_happened \
  (charges == 0 && stray[0] == 0 && stray[1] == 0 && (on_its_way[1] == 0 || looks_up[1]) && \
   (on_its_way[2] == 0 || looks_up[2]))
#endif

active proctype operator() {
end:
  do
  :: atomic {
      operations > 0 && state == ambiguous && !gone ->
      operations--;
      if
      :: charges > 0 -> change(succeeded, false); printf("operator: it happened\n");
      :: nothing_happened -> change(pending, false); printf("operator: it did not happen\n");
      :: change(abandoned, false); printf("operator: abandoned\n");
      fi;
      flagged = false;
      due = true;
    }
  od
}

#ifdef BUG_UNFINISHED_INTENT_PURGED
#define may_purge (state != started)
#else
#define may_purge (settled && !flagged)
#endif

active proctype janitor() {
end:
  atomic {
    may_purge ->
    gone = true;
    printf("janitor: the intent is gone\n");
  }
}

init {
  atomic {
    at[1] = free;
    at[2] = free;
    /* Committed with its record: as pending, or started at once and handed over to the clerk of the same process. */
    if
    :: skip
    :: start(1, false, false);
    fi;
    run clerk(1);
    run clerk(2);
  }
}

/* Where nothing more can happen, it is settled, or an operator is asked. (That every run comes to such an end is checked
 * apart: there is no cycle.) */
active proctype end_of_the_run() {
  timeout -> assert(settled || (state == ambiguous && !gone)); /* promise 4: never forgotten */
}
