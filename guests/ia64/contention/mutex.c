/* Contention: eight threads move amounts between accounts under one mutex; the sum must stay. */

#include "runtime.h"

enum { THREADS = 8, ACCOUNTS = 5 };

static struct mutex mutex;
static long accounts[ACCOUNTS], moves, turns;

static void work(void *seed)
{
    uint64_t state = (uintptr_t)seed + 1;
    for (long i = 0; i < turns; i++) {
        uint64_t choice = random_next(&state);
        mutex_lock(&mutex);
        long amount = choice % 100;
        accounts[choice / 128 % ACCOUNTS] -= amount;
        accounts[choice / 1024 % ACCOUNTS] += amount;
        moves++;
        mutex_unlock(&mutex);
    }
}

int main(int count, char **values)
{
    turns = argument(count, values, 4000);
    struct thread threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        thread_start(&threads[i], work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        thread_join(&threads[i]);
    long sum = 0;
    for (int i = 0; i < ACCOUNTS; i++)
        sum += accounts[i];
    print("contend-mutex: %ld moves by %d threads, sum %ld\n", moves, THREADS, sum);
    return moves == THREADS * turns && sum == 0 ? 0 : 1;
}
