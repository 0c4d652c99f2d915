/* The time of day: a base that each tick of CPU 0 moves on, and the nanoseconds that the interval time counter says since then.
   With clock=ticks the base is all there is, as on machines whose counters cannot be relied on.

   Readers, also those on the gate page, take the sequence number before and after: odd or changed means to try again.
   The counters of two CPUs need not agree to the cycle. So that no reader sees time go back after another CPU's, each leaves the
   latest value that was used, and a counter that is behind it counts as that.
   The clock begins at zero when the kernel starts, at the frequency of a 900 MHz Itanium 2. */

#include "kernel.h"

#define FREQUENCY 900000000UL
#define NANOSECONDS 1000000000UL

/* The offsets are in layout.h; a line of the cache. */
struct time_data time_data __attribute__((aligned(128)));

static uint64_t nanoseconds_of(uint64_t cycles)
{
    return cycles * time_data.multiplier >> TIME_SHIFT;
}

/* The counter, and not less than any CPU has used. */
static uint64_t counter(void)
{
    if (PROCESSORS == 1)
        return interval_time();
    uint64_t latest = __atomic_load_n(&time_data.latest, __ATOMIC_RELAXED), now;
    do {
        now = interval_time();
        if ((int64_t)(latest - now) > 0)
            return latest;
    } while (!__atomic_compare_exchange_n(&time_data.latest, &latest, now, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    return now;
}

/* What has passed since the last tick. */
static uint64_t since_tick(void)
{
    switch (time_data.source) {
    case CLOCK_COUNTER:
        return nanoseconds_of(counter() - time_data.last);
    default:
        return 0;
    }
}

void time_start(void)
{
    if (this_cpu->number)
        return;
    time_data.source = parameters.clock;
    time_data.multiplier = (NANOSECONDS << TIME_SHIFT) / FREQUENCY;
    time_data.last = time_data.latest = interval_time();
}

void time_tick(uint64_t ticks)
{
    time_data.sequence++;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    if (time_data.source == CLOCK_COUNTER) {
        uint64_t now = counter();
        time_data.nanoseconds += nanoseconds_of(now - time_data.last);
        time_data.last = now;
    } else {
        time_data.nanoseconds += ticks * nanoseconds_of(parameters.tick);
    }
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
        nanoseconds = since_tick();
        *seconds = time_data.seconds;
        nanoseconds += time_data.nanoseconds;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } while (sequence & 1 || sequence != time_data.sequence);
    for (; nanoseconds >= NANOSECONDS; nanoseconds -= NANOSECONDS)
        ++*seconds;
    *microseconds = nanoseconds / 1000;
}
