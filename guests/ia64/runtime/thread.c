/* Threads on clone and futex: start, join, a mutex of three states, a barrier of generations. */

#include "runtime.h"

#include <asm/unistd.h>

enum {
    /* CLONE_VM, FS, FILES, SIGHAND, THREAD, SYSVSEM, PARENT_SETTID, CHILD_CLEARTID */
    CLONE_THREAD_FLAGS = 0x100 | 0x200 | 0x400 | 0x800 | 0x10000 | 0x40000 | 0x100000 | 0x200000,
    FUTEX_WAIT = 0,
    FUTEX_WAKE = 1,
    STACK_BYTES = 256 * 1024, /* the memory stack grows down in it, the register stack up */
};

long thread_clone(long flags, void *stack, long size, int *parent, int *child, void *tls);

static void futex_wait(int *word, int expected)
{
    system_call(__NR_futex, word, (long)FUTEX_WAIT, (long)expected, 0L);
}

static void futex_wake(int *word, int count)
{
    system_call(__NR_futex, word, (long)FUTEX_WAKE, (long)count, 0L);
}

void thread_start(struct thread *thread, void (*entry)(void *), void *value)
{
    thread->stack = allocate(STACK_BYTES);
    void **top = (void **)((char *)thread->stack + STACK_BYTES);
    top[-2] = (void *)entry;
    top[-1] = value;
    long answer =
        thread_clone(CLONE_THREAD_FLAGS, thread->stack, STACK_BYTES, &thread->identity, &thread->identity, 0);
    if (answer < 0) {
        print("no thread: error %ld\n", -answer);
        leave(2);
    }
}

void thread_join(struct thread *thread)
{
    int identity;
    while ((identity = __atomic_load_n(&thread->identity, __ATOMIC_ACQUIRE)) != 0)
        futex_wait(&thread->identity, identity);
    system_call(__NR_munmap, thread->stack, (long)STACK_BYTES);
}

void mutex_lock(struct mutex *mutex)
{
    int state = 0;
    if (__atomic_compare_exchange_n(&mutex->state, &state, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    while (__atomic_exchange_n(&mutex->state, 2, __ATOMIC_ACQUIRE) != 0)
        futex_wait(&mutex->state, 2);
}

void mutex_unlock(struct mutex *mutex)
{
    if (__atomic_exchange_n(&mutex->state, 0, __ATOMIC_RELEASE) == 2)
        futex_wake(&mutex->state, 1);
}

void barrier_wait(struct barrier *barrier)
{
    int generation = __atomic_load_n(&barrier->generation, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&barrier->waiting, 1, __ATOMIC_ACQ_REL) == barrier->parties) {
        barrier->waiting = 0;
        __atomic_add_fetch(&barrier->generation, 1, __ATOMIC_ACQ_REL);
        futex_wake(&barrier->generation, barrier->parties);
    } else {
        while (__atomic_load_n(&barrier->generation, __ATOMIC_ACQUIRE) == generation)
            futex_wait(&barrier->generation, generation);
    }
}
