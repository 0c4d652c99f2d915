#include "tour.h"

enum { THREADS = 4, TURNS = 500, ROUNDS = 20 };

static struct mutex mutex;
static struct barrier barrier = {.parties = THREADS};
static long guarded, added, arrived[ROUNDS], incomplete, recursion;

static void work(void *number)
{
    for (int i = 0; i < TURNS; i++) {
        mutex_lock(&mutex);
        guarded += (long)number;
        mutex_unlock(&mutex);
        __atomic_fetch_add(&added, 1, __ATOMIC_RELAXED);
    }
    for (int i = 0; i < ROUNDS; i++) {
        __atomic_fetch_add(&arrived[i], 1, __ATOMIC_RELAXED);
        barrier_wait(&barrier);
        if (__atomic_load_n(&arrived[i], __ATOMIC_RELAXED) != THREADS)
            __atomic_fetch_add(&incomplete, 1, __ATOMIC_RELAXED);
    }
    __atomic_fetch_add(&recursion, pyramid(50 + (long)number), __ATOMIC_RELAXED);
}

void thread_part(void)
{
    struct thread threads[THREADS];
    long expected = 0;
    for (long i = 0; i < THREADS; i++) {
        thread_start(&threads[i], work, (void *)i);
        expected += (50 + i) * (51 + i) * 2;
    }
    for (int i = 0; i < THREADS; i++)
        thread_join(&threads[i]);
    check(guarded == TURNS * (0 + 1 + 2 + 3), "what the mutex guards");
    check(added == TURNS * THREADS, "atomic additions");
    check(incomplete == 0, "everybody arrived at the barrier");
    check(recursion == expected, "every thread's own register stack");
}
