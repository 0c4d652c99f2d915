/* Walking the kernel's stack: whose frames are on it, and what the registers were that a call preserves.

   See unwind.c. A walk begins with a `struct context`, as save_context and switch_context leave it, and goes from caller to
   caller by the kernel's own unwind tables until it comes to where the kernel was entered. */

#ifndef UNWIND_H
#define UNWIND_H

#include "kernel.h"

enum unwind_end {
    UNWIND_CALLER,       /* not an end: the state is that of the caller now */
    UNWIND_INTERRUPTION, /* the kernel was entered by an interruption: the program's registers end at `bsp` */
    UNWIND_SYSTEM_CALL,  /* by a system call: the program's frame begins at `bsp` */
    UNWIND_UNKNOWN,      /* `ip` is in no procedure of the tables */
    UNWIND_BROKEN,       /* the tables say nothing useful of it, or what they point to is not the task's */
};

/* What is known of a frame: where it is, and the preserved registers as they were when it made its call. */
struct unwind {
    const struct task *task;
    uint64_t ip;                      /* where the call returns to */
    uint64_t sp, bsp, frame_marker;
    uint64_t unat, lc, predicates, fpsr;
    uint64_t r4[4], nats;             /* nats: bit 0 is r4's NaT */
    uint64_t b1[5];
    struct floating f2[20];           /* f2 to f5, then f16 to f31 */
    uint64_t bspstore, rnat;          /* up to where the backing store is in memory, and the NaT bits beyond */
    unsigned frames;                  /* gone through so far */
    enum unwind_end end;              /* where it came to; UNWIND_CALLER on the way */
};

/* `floating` is f2 to f5 and f12 to f31, as save_floating_low orders them. */
void unwind_begin(struct unwind *state, const struct task *task, const struct context *context, const struct floating *floating);
/* To where the kernel was entered, or as far as the tables go: `end` says which. */
void unwind_to_entry(struct unwind *state);

/* The backing store's address of the register `count` places above or below that at `address`. */
static inline uint64_t backing_store_above(uint64_t address, uint64_t count)
{
    return address + (count + ((address >> 3 & 63) + count) / 63) * 8;
}

static inline uint64_t backing_store_below(uint64_t address, uint64_t count)
{
    return address - (count + (62 - (address >> 3 & 63) + count) / 63) * 8;
}

/* Whether the word at `address` holds NaT bits of the 63 registers in front of it. */
static inline int is_nat_collection(uint64_t address)
{
    return (address & 0x1f8) == 0x1f8;
}

#endif
