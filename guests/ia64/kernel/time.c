/* The time of day, from the interval time counter: a base that each tick of CPU 0 moves on, and nanoseconds since then.

   Readers, also those on the gate page, take the sequence number before and after: odd or changed means to try again.
   The clock begins at zero when the kernel starts, at the frequency of a 900 MHz Itanium 2. */

#include "kernel.h"

#define FREQUENCY 900000000UL
#define NANOSECONDS 1000000000UL

/* The offsets are in layout.h. */
struct time_data {
    volatile uint32_t sequence;
    uint32_t reserved;
    uint64_t last, multiplier, seconds, nanoseconds;
};

static struct time_data time_data;

static uint64_t since(uint64_t counter)
{
    return (counter - time_data.last) * time_data.multiplier >> TIME_SHIFT;
}

void time_start(void)
{
    if (this_cpu->number == 0) {
        time_data.multiplier = (NANOSECONDS << TIME_SHIFT) / FREQUENCY;
        time_data.last = interval_time();
    }
    set_time_page((uint64_t)&time_data);
}

void time_tick(void)
{
    uint64_t counter = interval_time();
    time_data.sequence++;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    time_data.nanoseconds += since(counter);
    time_data.last = counter;
    while (time_data.nanoseconds >= NANOSECONDS) {
        time_data.nanoseconds -= NANOSECONDS;
        time_data.seconds++;
    }
    __atomic_thread_fence(__ATOMIC_RELEASE);
    time_data.sequence++;
}

void time_now(uint64_t *seconds, uint64_t *microseconds)
{
    uint32_t sequence;
    uint64_t nanoseconds;
    do {
        sequence = __atomic_load_n(&time_data.sequence, __ATOMIC_ACQUIRE);
        *seconds = time_data.seconds;
        nanoseconds = time_data.nanoseconds + since(interval_time());
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } while (sequence & 1 || sequence != time_data.sequence);
    for (; nanoseconds >= NANOSECONDS; nanoseconds -= NANOSECONDS)
        ++*seconds;
    *microseconds = nanoseconds / 1000;
}
