/* Contention: six threads smooth an array in steps, a barrier between steps; the result must be that of one thread. */

#include "runtime.h"

enum { THREADS = 6, CELLS = 96 };

static struct barrier barrier = {.parties = THREADS};
static long cells[2][CELLS], steps;

static void step(long number, int first, int last)
{
    const long *from = cells[number & 1];
    long *to = cells[~number & 1];
    for (int i = first; i < last; i++)
        to[i] = (from[(i + CELLS - 1) % CELLS] + 2 * from[i] + from[(i + 1) % CELLS]) / 4 + (i & 1);
}

static void work(void *number)
{
    int first = (long)number * CELLS / THREADS, last = ((long)number + 1) * CELLS / THREADS;
    for (long i = 0; i < steps; i++) {
        step(i, first, last);
        barrier_wait(&barrier);
    }
}

static void prepare(void)
{
    uint64_t state = 17;
    for (int i = 0; i < CELLS; i++)
        cells[0][i] = random_next(&state) % 1000000;
}

static uint64_t checksum(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < CELLS; i++)
        sum = sum * 31 + cells[steps & 1][i];
    return sum;
}

int main(int count, char **values)
{
    steps = argument(count, values, 1000);
    prepare();
    for (long i = 0; i < steps; i++)
        step(i, 0, CELLS);
    uint64_t expected = checksum();
    prepare();
    struct thread threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        thread_start(&threads[i], work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        thread_join(&threads[i]);
    print("contend-barrier: %ld steps by %d threads, checksum %lu\n", steps, THREADS, checksum());
    return checksum() == expected ? 0 : 1;
}
