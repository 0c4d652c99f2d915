/* Threads that spin, then yield. */

#include "team.h"

#include "environment.h"

void team_initialize(struct team *team, int threads, long spins, long steps)
{
    team->threads = threads;
    team->spins = spins;
    team->steps = steps;
}

/* One turn of waiting. */
static void wait_a_turn(const struct team *team, long *turns)
{
    if (*turns < team->spins) {
        ++*turns;
        environment_pause();
    } else {
        environment_yield();
    }
}

void team_barrier(struct team *team)
{
    unsigned generation = __atomic_load_n(&team->generation.value, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&team->arrived.value, 1, __ATOMIC_ACQ_REL) == (unsigned)team->threads) {
        __atomic_store_n(&team->arrived.value, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&team->generation.value, generation + 1, __ATOMIC_RELEASE);
        return;
    }
    long turns = 0;
    while (__atomic_load_n(&team->generation.value, __ATOMIC_ACQUIRE) == generation)
        wait_a_turn(team, &turns);
}

/* Parts lie in one of two places in turn: a thread that writes the next but one sum's has met all others at the next
   sum's barrier, behind which nobody reads this one's any more. So each sum needs one barrier. */
void team_sums(struct team *team, int thread, double *values, int count)
{
    int place = team->members[thread].sums++ & 1;
    memcpy(team->members[thread].parts[place], values, count * sizeof *values);
    team_barrier(team);
    for (int i = 0; i < count; i++) {
        values[i] = 0;
        for (int other = 0; other < team->threads; other++)
            values[i] += team->members[other].parts[place][i];
    }
}

double team_sum(struct team *team, int thread, double value)
{
    team_sums(team, thread, &value, 1);
    return value;
}

void team_announce(struct team *team, int thread, long count)
{
    __atomic_store_n(&team->members[thread].announced, count, __ATOMIC_RELEASE);
}

void team_await(struct team *team, int thread, long count)
{
    if (thread < 0 || thread >= team->threads)
        return;
    long turns = 0;
    while (__atomic_load_n(&team->members[thread].announced, __ATOMIC_ACQUIRE) < count)
        wait_a_turn(team, &turns);
}
