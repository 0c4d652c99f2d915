/* Contention: four threads, each bound to a processor of its own where there are four, work in pairs on pages that the two
   of a pair share, a barrier of the pair between steps. Thread T works with thread T ^ 2. What each has read must be what
   the other has written. */

#include "runtime.h"

enum { THREADS = 4, PAGE = 1 << 14, PAGES = 16, SCHED_SETAFFINITY = 1231 };

struct pair {
    struct barrier barrier;
    char unused[PAGE - sizeof(struct barrier)];
    long words[PAGES][PAGE / sizeof(long)];
};

static struct pair *pairs[2];
static long steps, wrong, bound;

static void work(void *number)
{
    long me = (long)number, other = me ^ 2;
    struct pair *pair = pairs[me & 1];
    unsigned long processors = 1ul << me;
    if (system_call(SCHED_SETAFFINITY, 0, sizeof processors, &processors) >= 0)
        __atomic_fetch_add(&bound, 1, __ATOMIC_RELAXED);
    for (long step = 1; step <= steps; step++) {
        for (int page = 0; page < PAGES; page++)
            pair->words[page][me] = step;
        barrier_wait(&pair->barrier);
        for (int page = 0; page < PAGES; page++)
            if (pair->words[page][other] != step)
                wrong = 1;
        barrier_wait(&pair->barrier);
    }
}

int main(int count, char **values)
{
    steps = argument(count, values, 1000);
    struct thread threads[THREADS];
    for (int i = 0; i < 2; i++) {
        pairs[i] = allocate(sizeof(struct pair));
        pairs[i]->barrier.parties = 2;
    }
    for (long i = 0; i < THREADS; i++)
        thread_start(&threads[i], work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        thread_join(&threads[i]);
    print("contend-pairs: %ld steps by %d threads, %ld of them bound\n", steps, THREADS, bound);
    return wrong != 0;
}
