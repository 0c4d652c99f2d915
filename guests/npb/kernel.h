/* A benchmark: how its memory is prepared, what each thread does, what of that is timed, and what its result is held
   against. */

#ifndef KERNEL_H
#define KERNEL_H

#include "environment.h"
#include "team.h"

/* Sample, workstation, and the smallest of the full sizes. */
enum problem_class { CLASS_S, CLASS_W, CLASS_A, CLASSES };

struct kernel {
    const char *name;
    const char *title;
    /* Memory and parameters for a class; one thread calls it. */
    void *(*prepare)(enum problem_class class, const struct team *team);
    /* The initial values; all threads call it. Null where what is timed makes them. */
    void (*start)(void *state, struct team *team, int thread);
    /* What the specification has timed; all threads call it, after a barrier. */
    void (*work)(void *state, struct team *team, int thread);
    /* What only the checks need; all threads call it, after a barrier. Null where there is nothing of that. */
    void (*finish)(void *state, struct team *team, int thread);
    /* Prints what the run has found beside what is specified; one thread calls it. How many values are wrong. */
    int (*verify)(void *state, const char *label);
};

extern const struct kernel embarrassingly_parallel, integer_sort, conjugate_gradient, multigrid, fourier_transform,
    lower_upper, scalar_pentadiagonal, block_tridiagonal, unstructured_adaptive;

/* Prints a value and what is specified for it. Whether it is wrong: 1 if the relative error is above the tolerance, or
   the value is no number. */
int report_value(const char *label, const char *what, double computed, double specified, double tolerance);

#endif
