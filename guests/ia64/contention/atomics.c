/* Contention: eight threads on every size of atomic operation, and a lock-free stack whose nodes must all come back. */

#include "runtime.h"

enum { THREADS = 8, NODES = 64 };

static struct node {
    uint32_t next; /* its index, counted from 1; 0 ends the stack */
    uint32_t owner;
} nodes[NODES + 1];

static uint64_t top; /* index in the low half, a count of changes in the high half against reuse */
static uint64_t eight;
static uint32_t four, flags;
static uint16_t two;
static uint8_t one, lock;
static long exclusive, turns, doubly_owned;

static void push(uint32_t node)
{
    uint64_t old = __atomic_load_n(&top, __ATOMIC_ACQUIRE), new;
    do {
        nodes[node].next = (uint32_t)old;
        new = ((old >> 32) + 1) << 32 | node;
    } while (!__atomic_compare_exchange_n(&top, &old, new, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

static uint32_t pop(void)
{
    uint64_t old = __atomic_load_n(&top, __ATOMIC_ACQUIRE), new;
    do {
        if ((uint32_t)old == 0)
            return 0;
        new = ((old >> 32) + 1) << 32 | __atomic_load_n(&nodes[(uint32_t)old].next, __ATOMIC_RELAXED);
    } while (!__atomic_compare_exchange_n(&top, &old, new, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    return (uint32_t)old;
}

static void work(void *number)
{
    uint32_t bit = 1u << (uintptr_t)number;
    for (long i = 0; i < turns; i++) {
        __atomic_fetch_add(&eight, 3, __ATOMIC_ACQ_REL);
        __atomic_fetch_add(&four, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&two, 1, __ATOMIC_RELAXED);
        __atomic_fetch_xor(&one, (uint8_t)i, __ATOMIC_RELAXED);
        __atomic_fetch_xor(&flags, bit, __ATOMIC_RELEASE);
        uint32_t node = pop();
        if (node) {
            if (__atomic_exchange_n(&nodes[node].owner, bit, __ATOMIC_ACQUIRE) != 0)
                __atomic_fetch_add(&doubly_owned, 1, __ATOMIC_RELAXED);
            __atomic_store_n(&nodes[node].owner, 0, __ATOMIC_RELEASE);
            push(node);
        }
        while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
            ;
        exclusive++;
        __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    }
}

int main(int count, char **values)
{
    turns = argument(count, values, 4000);
    for (uint32_t i = 1; i <= NODES; i++)
        push(i);
    struct thread threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        thread_start(&threads[i], work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        thread_join(&threads[i]);
    long left = 0;
    while (pop())
        left++;
    long all = THREADS * turns;
    uint8_t parity = 0;
    for (int i = 0; i < THREADS; i++)
        for (long j = 0; j < turns; j++)
            parity ^= (uint8_t)j;
    print("contend-atomics: %ld turns by %d threads, %lu, %ld nodes left\n", turns, THREADS, eight, left);
    return eight == (uint64_t)all * 3 && four == (uint32_t)all && two == (uint16_t)all && one == parity &&
                   flags == (turns & 1 ? 0xff : 0) && exclusive == all && left == NODES && doubly_owned == 0
               ? 0
               : 1;
}
