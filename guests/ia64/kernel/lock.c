/* Spin locks. A holder has interrupts off, so an interrupt handler may take locks too; on one CPU that is all there is.

   Order: the lock of process.c or a pipe's, then `scheduler`, then that of user.c or of a cache; the lock of memory.c comes last of all. */

#include "kernel.h"

uint64_t acquire(struct lock *lock)
{
    uint64_t saved = interrupts_off();
    if (PROCESSORS > 1)
        while (__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE))
            while (lock->held)
                relax();
    return saved;
}

void release(struct lock *lock, uint64_t saved)
{
    if (PROCESSORS > 1)
        __atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
    interrupts_restore(saved);
}
