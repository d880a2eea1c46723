/*
 * Publications: committed with their record, sent by two relays at least once, in order for each order key.
 *
 * Numbers 1 and 2 carry one order key and are committed together; 3 has another key and is committed by somebody else, who
 * may be first though its number is the last. Each relay has a place for each of them:
 *
 *   none ── take ──► taken ── its predecessor is confirmed ──► sending ──► confirmed | unanswered ── finish ──► none
 *
 * The receiver knows a publication by its id. A relay may die at every step, and stand still past its leases: STALLS times.
 * A planted bug is an #ifdef BUG_…; model/check finds each of them.
 */

#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef STALLS
#define STALLS 1
#endif
#ifndef LOST_REPLIES
#define LOST_REPLIES 1 /* of the receiver, whether it came in or not; of the database to a commit */
#endif

mtype = {none, taken, sending, confirmed, unanswered};

/* The table. */
bool there[4];
bool leased[4];
bool due[4];
byte token[4];
byte cursor;           /* only for BUG_FOUND_BY_A_CURSOR */

/* The relays. place(r, m): what relay r does with number m, and under which token. */
#define place(r, m) (4 * (r - 1) + m)
bool alive[3];
mtype at[8];
byte held_token[8];
bool holds_lease[8];

/* The receiver. */
bool received[4];

byte crashes = CRASHES, stalls = STALLS, lost_replies = LOST_REPLIES;

/* Of the promises. */
bool committed[4];

/* Whatever is before it in its order key and not confirmed yet holds it back, unless it is taken along with it. */
#ifdef BUG_LEASED_PREDECESSOR_SKIPPED
#define in_turn(r, m) (m != 2 || !there[1] || leased[1])
#else
#define in_turn(r, m) (m != 2 || !there[1] || at[place(r, 1)] == taken)
#endif
#define may_take(r, m) (there[m] && !leased[m] && due[m] && at[place(r, m)] == none && in_turn(r, m))

inline take(r, m) {
  atomic {
#ifdef BUG_FOUND_BY_A_CURSOR
    alive[r] && may_take(r, m) && (m > cursor || token[m] > 0) ->
    if
    :: m > cursor -> cursor = m;
    :: else
    fi;
#else
    alive[r] && may_take(r, m) ->
#endif
    token[m]++;
    leased[m] = true;
    printf("relay %d: takes number %d\n", r, m);
#ifdef BUG_TAKEN_OUT_BEFORE_IT_IS_CONFIRMED
    there[m] = false;
#endif
    if
    :: at[place(r, m)] = taken;
      held_token[place(r, m)] = token[m];
      holds_lease[place(r, m)] = true;
    :: lost_replies > 0 -> lost_replies--; printf("relay %d: does not hear of it\n", r);
    fi
  }
}

/* Within its lease, and of one order key one after the other. */
inline send(r, m) {
  atomic {
    at[place(r, m)] == taken && holds_lease[place(r, m)] && (m != 2 || at[place(r, 1)] == none) ->
    at[place(r, m)] = sending;
    printf("relay %d: sends number %d\n", r, m);
  }
}

inline let_go(r, m) {
  at[place(r, m)] = none;
  held_token[place(r, m)] = 0;
  holds_lease[place(r, m)] = false;
}

/* Given back untried: by its token, as everything. */
inline give_back(r, m) {
  if
  :: at[place(r, m)] == taken ->
    if
    :: token[m] == held_token[place(r, m)] -> leased[m] = false;
    :: else
    fi;
    let_go(r, m);
  :: else
  fi
}

inline lose_place(r, m) {
  atomic {
    at[place(r, m)] == taken && !holds_lease[place(r, m)] ->
    printf("relay %d: wakes past its lease and does not send number %d\n", r, m);
    give_back(r, m);
    if
    :: m == 1 -> give_back(r, 2);
    :: else
    fi
  }
}

inline arrive(m) {
  printf("receiver: number %d\n", m);
  received[m] = true;
  assert(m != 2 || received[1]); /* in order */
}

inline answer(r, m) {
  if
  :: atomic { at[place(r, m)] == sending -> arrive(m); at[place(r, m)] = confirmed; }
  :: atomic {
      at[place(r, m)] == sending && lost_replies > 0 ->
      lost_replies--;
      if
      :: arrive(m);
      :: skip
      fi;
      at[place(r, m)] = unanswered;
      printf("relay %d: hears nothing of number %d\n", r, m);
    }
  fi
}

/* One transaction, which says what became of it, where its token is still the current one. */
inline finish(r, m) {
  atomic {
    at[place(r, m)] == confirmed || at[place(r, m)] == unanswered ->
    if
    :: token[m] == held_token[place(r, m)] && at[place(r, m)] == confirmed -> there[m] = false; leased[m] = false;
    :: token[m] == held_token[place(r, m)] && at[place(r, m)] == unanswered -> leased[m] = false; due[m] = false;
    :: else
    fi;
    if
    :: m == 1 && at[place(r, 1)] == unanswered ->
#ifdef BUG_GOES_ON_BEHIND_A_FAILURE
      skip
#else
      give_back(r, 2); /* it has lost its place in the order, and with it what is behind it */
#endif
    :: else
    fi;
    if
    :: let_go(r, m); printf("relay %d: writes down number %d\n", r, m);
    :: lost_replies > 0 -> lost_replies--; printf("relay %d: does not hear that number %d is written down\n", r, m);
    fi
  }
}

inline relay_one(r, m) {
  if
  :: take(r, m)
  :: send(r, m)
  :: lose_place(r, m)
  :: finish(r, m)
  fi
}

#define busy(r) (at[place(r, 1)] != none || at[place(r, 2)] != none || at[place(r, 3)] != none)

proctype relay(byte r) {
end:
  do
  :: relay_one(r, 1)
  :: relay_one(r, 2)
  :: relay_one(r, 3)
  :: atomic {
      alive[r] && busy(r) && crashes > 0 ->
      crashes--;
      printf("relay %d: dies\n", r);
      /* What was being sent comes in, or does not. */
      if
      :: at[place(r, 1)] == sending -> arrive(1);
      :: at[place(r, 2)] == sending -> arrive(2);
      :: at[place(r, 3)] == sending -> arrive(3);
      :: skip
      fi;
      let_go(r, 1);
      let_go(r, 2);
      let_go(r, 3);
      alive[r] = false;
    }
  :: atomic { !alive[r] -> alive[r] = true; printf("relay %d: starts again\n", r); }
  od
}

active proctype receiver() {
end:
  do
  :: answer(1, 1)
  :: answer(1, 2)
  :: answer(1, 3)
  :: answer(2, 1)
  :: answer(2, 2)
  :: answer(2, 3)
  od
}

inline publish(m) {
  there[m] = true;
  due[m] = true;
  committed[m] = true;
  printf("database: number %d is committed\n", m);
}

active proctype first_writer() { atomic { publish(1); publish(2); } }
active proctype second_writer() { atomic { publish(3); } }

#define is_held(m) (holds_lease[place(1, m)] || holds_lease[place(2, m)])

inline pass(m) {
  if
  /* Its pause is over. */
  :: atomic { there[m] && !due[m] -> due[m] = true; }
  /* Nobody alive holds it. */
#ifndef BUG_LEASE_NEVER_ENDS
  :: atomic { leased[m] && there[m] && !is_held(m) -> leased[m] = false; printf("--- a lease of number %d ends\n", m); }
#endif
  :: atomic {
      leased[m] && is_held(m) && stalls > 0 ->
      stalls--;
      leased[m] = false;
      holds_lease[place(1, m)] = false;
      holds_lease[place(2, m)] = false;
      printf("--- somebody stands still past its lease of number %d\n", m);
    }
  fi
}

active proctype clock() {
end:
  do
  :: pass(1)
  :: pass(2)
  :: pass(3)
  od
}

#ifdef BUG_UNSENT_PUBLICATION_PURGED
active proctype janitor() {
end:
  atomic { there[3] && !leased[3] -> there[3] = false; printf("janitor: the record goes, and number 3 with it\n"); }
}
#endif

init {
  atomic {
    byte i;
    for (i : 0 .. 7) { at[i] = none; }
    alive[1] = true;
    alive[2] = true;
    run relay(1);
    run relay(2);
  }
}

/* Where nothing more can happen, all that was committed has been received. */
active proctype end_of_the_run() {
  timeout -> assert(received[1] && received[2] && received[3] && !there[1] && !there[2] && !there[3]);
}
