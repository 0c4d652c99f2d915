/* What a signal's handler finds on its stack: siginfo_t, struct sigcontext and struct sigframe of Linux/ia64 (kernel.org,
   arch/ia64/include/uapi/asm/{siginfo,sigcontext}.h). The gate page's code uses the offsets in layout.h. */

#ifndef SIGNAL_FRAME_H
#define SIGNAL_FRAME_H

#include "kernel.h"

struct signal_context {
    uint64_t flags, nats;
    uint64_t stack_start;
    uint32_t stack_flags, padding;
    uint64_t stack_size;
    uint64_t ip;            /* bundle address plus slot */
    uint64_t frame_marker, user_mask, rsc;
    uint64_t bsp;           /* above the interrupted frame; the gate page's code stores it */
    uint64_t rnat, ccv, unat, fpsr, pfs, lc, predicates;
    uint64_t branch[8], general[32], alignment;
    struct floating floating[128];
    uint64_t backing_store_base, loaded; /* of a backing store of the handler's own, or 0 */
    uint64_t csd, ssd;
    uint64_t bspstore; /* where it was; this word and the next are reserved in Linux */
    uint64_t reserved[11];
    uint64_t mask, end;
};

struct signal_frame {
    uint64_t arguments[3], handler;
    struct signal_information information;
    struct signal_context context;
};

#define CONTEXT_IN_SYSTEM_CALL 2
#define CONTEXT_FLOATING_HIGH 4
#define STACK_IN_USE 1
#define STACK_DISABLED 2
#define STACK_LEAST 131027 /* bytes: what a handler with all that may be stacked needs */

#endif
