/* What the benchmarks need of the system around them. A program on Linux (linux.c) and a bare machine (machine.c) offer
   it, beside `print`, `allocate` and `leave` of ../ia64/runtime/runtime.h. */

#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include "runtime.h"

/* Since some moment before the program began. */
uint64_t environment_nanoseconds(void);

/* Offers this thread's processor to whoever waits for one. */
void environment_yield(void);

/* An instance of a benchmark has done a step of its work: one call by one of its threads. */
void environment_step(void);

/* Tells the processor that this is a loop that waits. */
static inline void environment_pause(void)
{
#if defined(__ia64__)
    asm volatile("hint @pause" ::: "memory");
#elif defined(__x86_64__)
    __builtin_ia32_pause();
#else
    asm volatile("" ::: "memory");
#endif
}

#endif
