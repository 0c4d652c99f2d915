/* The instances of benchmarks that a program or a machine runs at the same time, each on threads of its own.

   They are given as words: `KERNEL CLASS [--threads N] [--rounds N] [--spins N] [--steps N]`, and more of them behind `+`. Threads
   are numbered through all instances in their order; in a machine a thread's number is its processor's. */

#ifndef INSTANCES_H
#define INSTANCES_H

#include "kernel.h"

enum { INSTANCES_MAX = 16 };

struct instance {
    const struct kernel *kernel;
    enum problem_class class;
    long threads, rounds, spins;
    long steps; /* of each round that are done at the most, and then nothing is verified; 0: all */
    char label[32]; /* what its lines begin with */
    struct team *team;
    void *state;
    uint64_t began_ns;
    long wrong; /* values of all its rounds that were not as specified */
};

struct instances {
    int count;
    long threads; /* of all together */
    struct instance all[INSTANCES_MAX];
};

/* Reads the words, of which the first is `name`'s argument. What is wrong with them is printed, and 0 answered. */
int instances_read(struct instances *instances, const char *name, int count, const char *const *words);

/* Memory for all; one thread calls it. */
void instances_prepare(struct instances *instances);

/* Which instance thread `*number` of all is in, or -1 if in none; the number becomes that among the instance's
   threads. */
int instances_find(const struct instances *instances, long *number);

/* What thread `number` of all does: runs, and for the first thread of an instance its report. */
void instances_work(struct instances *instances, long number);

/* The exit code: whether anything was not as specified. */
int instances_verdict(const struct instances *instances);

#endif
