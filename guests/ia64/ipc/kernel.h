/* The kernel's objects and what its C files offer each other: threads and spaces (threads.c), messages (generic.c), the typed
   items in them (items.c), assembly (start.S, generic.S). */

#ifndef KERNEL_H
#define KERNEL_H

#include <stdint.h>

#include "layout.h"

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#define PRIORITIES 4
#define PRIORITY_USUAL 1
#define PRIORITY_URGENT 2

/* What a thread shares with the kernel. */
struct utcb {
    uint64_t identity, error, virtual_sender, acceptor;
    uint64_t reserved[4];
    uint64_t message[1 + WORDS_MAX]; /* the tag, and the words */
    uint64_t rest[UTCB_SIZE / 8 - 8 - 1 - WORDS_MAX];
};

/* An address space: its page table, which the refill handlers read, its region's number, and its threads by their place. */
struct space {
    uint64_t table[SPACE_PAGES];
    uint64_t region;
    struct tcb *threads[UTCBS];
};

struct tcb {
    uint64_t identity, resources;
    struct tcb *senders; /* who waits to send to this thread, first come, first served */
    struct space *space;
    uint64_t state, partner, region, local;
    uint64_t rsc, gp, pfs, bspstore, rnat, unat, predicates, psr, sp, rp, tp;
    uint64_t continuation, kernel_sp;
    struct utcb *utcb;
    uint64_t from;
    uint64_t priority;
    uint64_t sends_as;        /* whose message it waits to send: its own, or that of the thread it propagates for */
    struct tcb *next;         /* among the ready, or among the senders to one thread */
    uint64_t deadline;        /* in cycles; 0: none */
    struct tcb *next_timed;   /* among those with a deadline */
};

/* ---- threads.c ---- */
extern struct space spaces[];
uint64_t now(void);
struct tcb *thread_of(const struct tcb *asker, uint64_t name);
void make_ready(struct tcb *thread);
struct tcb *next_ready(void);
void yield(struct tcb *current);
void set_deadline(struct tcb *thread, uint64_t timeout);
void cancel_deadline(struct tcb *thread);
void expire_deadlines(void);
uint64_t name_of(unsigned number);
struct tcb *create_thread(unsigned number, unsigned space, uint64_t entry, const uint64_t *arguments, unsigned count);
void switch_to(struct tcb *current, struct tcb *next);

/* ---- generic.c ---- */
void fail(struct tcb *thread, uint64_t error, uint64_t phase);
void stop_sending(struct tcb *thread);

/* ---- items.c ---- */
int transfer_items(struct tcb *from, struct tcb *to, uint64_t tag);

/* ---- Assembly ---- */
uint64_t hypercall(uint64_t function, uint64_t first, uint64_t second);
void switch_context(struct tcb *next);
void begin_with(struct tcb *first) __attribute__((noreturn));
void save_floating_point(struct tcb *thread);
void load_floating_point(struct tcb *thread);
void purge_page(uint64_t region, uint64_t address);

#endif
