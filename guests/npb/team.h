/* The threads of one instance of a benchmark, and how they wait for each other.

   Waiting threads spin, then yield, and never sleep: a thread whose sibling has no processor waits in vain, which is
   what coscheduling is about. Every function is called by all threads of the team, in the same order, but for
   `team_announce` and `team_await`. */

#ifndef TEAM_H
#define TEAM_H

#include "runtime.h"

enum {
    THREADS_MAX = 64,
    LINE = 128,       /* bytes of a cache line, or more */
    SUMS_MAX = 16,    /* values that `team_sums` takes at once */
    SPINS_DEFAULT = 10000,
};

/* What a thread shows to the others, each thread on cache lines of its own. */
struct member {
    double parts[2][SUMS_MAX]; /* its parts of the current sum and of the one before */
    long sums;                 /* how many sums it has begun */
    long announced;
} __attribute__((aligned(LINE)));

struct team {
    int threads;
    long spins; /* turns that a waiting thread spins before it first yields */
    long steps; /* of its benchmark that are done at the most; 0: all */
    struct {
        unsigned value;
    } __attribute__((aligned(LINE))) arrived, generation;
    struct member members[THREADS_MAX];
};

void team_initialize(struct team *team, int threads, long spins, long steps);

/* Comes back when all threads have come here. */
void team_barrier(struct team *team);

/* Replaces each value by its sum over all threads, added up in the order of the threads, so that all get the same. */
void team_sums(struct team *team, int thread, double *values, int count);
double team_sum(struct team *team, int thread, double value);

/* Says that this thread has come so far; what it has written before is seen by whoever waits for that. */
void team_announce(struct team *team, int thread, long count);

/* Comes back when a thread has announced `count` or more; at once if there is no such thread. */
void team_await(struct team *team, int thread, long count);

/* How many of a benchmark's steps are done. */
static inline long team_steps(const struct team *team, long all)
{
    return team->steps > 0 && team->steps < all ? team->steps : all;
}

/* The part of `length` items that is a thread's. */
struct range {
    long first, end;
};

static inline struct range team_share(const struct team *team, int thread, long length)
{
    return (struct range){length * thread / team->threads, length * (thread + 1) / team->threads};
}

#endif
