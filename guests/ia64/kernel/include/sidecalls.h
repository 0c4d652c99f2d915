/* What the kernel asks of a monitor through memory, in images that are built with SIDECALLS; in the others nothing is left of
   this. The boot parameter `sidecalls` chooses what is asked for. */

#ifndef SIDECALLS_H
#define SIDECALLS_H

#include <stddef.h>
#include <stdint.h>

#ifndef SIDECALLS
#define SIDECALLS 0
#endif

#if SIDECALLS

#define SIDECALLS_PARAMETER "sidecalls, "

/* ---- request.c ---- */

/* Which requests are made, where somebody serves them: the parameter's words, as bits. */
enum sidecalls { SIDECALLS_UPDATES = 1, SIDECALLS_PURGES = 2, SIDECALLS_DISK = 4 };

/* Takes the value of the parameter; false if a word of it is wrong. */
int sidecalls_choose(const char *value);
/* Registers this CPU's request page. */
void sidecalls_start(void);
/* Whether requests of this kind are made on this CPU just now. */
int sidecalls_are_made(enum sidecalls what);
/* Tells the monitor of a page table entry that has been made for the current process. */
void sidecalls_update(uint64_t address, uint64_t entry);
/* Forgets a page in the hashed table and in the TLB by one request; false if that is to be done without it. */
int sidecalls_unmap(uint64_t address, int superpage);
/* Purges a page from the TLBs of all CPUs; false if that is to be done without the monitor. */
int sidecalls_purge(uint64_t address, uint64_t size_log2);

/* ---- disk.c ---- */

void disk_interrupt(void);

/* ---- interface.c ---- */

void interface_interrupt(void);

#else

#define SIDECALLS_PARAMETER ""

static inline int sidecalls_choose(const char *value)
{
    (void)value;
    return 0;
}

static inline void sidecalls_start(void)
{
}

static inline void sidecalls_update(uint64_t address, uint64_t entry)
{
    (void)address;
    (void)entry;
}

static inline int sidecalls_unmap(uint64_t address, int superpage)
{
    (void)address;
    (void)superpage;
    return 0;
}

static inline int sidecalls_purge(uint64_t address, uint64_t size_log2)
{
    (void)address;
    (void)size_log2;
    return 0;
}

static inline void disk_interrupt(void)
{
}

static inline void interface_interrupt(void)
{
}

#endif
#endif
