/* What the programs of the kernel have beside guests/ia64/runtime: its own system calls, and system calls by `epc`. */

#ifndef SYSTEM_H
#define SYSTEM_H

#include "runtime.h"

#include <asm/unistd.h>

#define CALL_MARK (1024 + 500)
#define CALL_SHARE (1024 + 501)
#define CALL_STATISTIC (1024 + 502)
#define CALL_TRACE (1024 + 505)

enum statistic { STATISTIC_SWITCHES, STATISTIC_PAGE_FAULTS, STATISTIC_INTERRUPTS, STATISTIC_DISABLED_FLOATING,
                 STATISTIC_FRAMES_FREE, STATISTIC_TICKS, STATISTIC_PROCESSOR };

/* gate_call.S: like system_call, by `epc` on the gate page. */
long gate_call(long number, ...);
/* The same of a program that reads memory in big-endian order; the error is not negative. */
long gate_call_big_endian(long number);

static inline long fork(void)
{
    return system_call(__NR_clone2, 17L, 0L, 0L, 0L, 0L, 0L);
}

/* The decimal number at the beginning of an argument. */
static inline long number(const char *text)
{
    long value = 0;
    while (*text >= '0' && *text <= '9')
        value = value * 10 + *text++ - '0';
    return value;
}

static inline void mark(long label)
{
    system_call(CALL_MARK, label);
}

#endif
