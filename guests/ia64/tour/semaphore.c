#include "tour.h"

void store_pair(uint64_t *pair, uint64_t low, uint64_t high);
uint64_t load_pair(const uint64_t *pair, uint64_t *high);
uint64_t exchange_pair(uint64_t *pair, uint64_t expected, uint64_t low, uint64_t high);

#define FETCH_AND_ADD(instruction, word, amount)                                                               \
    ({                                                                                                         \
        uint64_t old_;                                                                                         \
        asm volatile(instruction " %0=[%1]," #amount : "=r"(old_) : "r"(word) : "memory");                     \
        old_;                                                                                                  \
    })

#define COMPARE_AND_EXCHANGE(instruction, word, expected, value)                                               \
    ({                                                                                                         \
        uint64_t old_;                                                                                         \
        asm volatile("mov ar.ccv=%3;;\n\t" instruction " %0=[%1],%2,ar.ccv"                                    \
                     : "=r"(old_)                                                                              \
                     : "r"(word), "r"((uint64_t)(value)), "rO"((uint64_t)(expected))                           \
                     : "memory");                                                                              \
        old_;                                                                                                  \
    })

void semaphore_part(void)
{
    uint64_t word = 100;
    check(FETCH_AND_ADD("fetchadd8.acq", &word, 16) == 100 && word == 116, "fetchadd8");
    check(FETCH_AND_ADD("fetchadd8.rel", &word, -8) == 116 && word == 108, "fetchadd8 down");
    uint32_t half[2] = {0xffffffff, 7};
    check(FETCH_AND_ADD("fetchadd4.acq", half, 1) == 0xffffffff && half[0] == 0 && half[1] == 7, "fetchadd4 wraps");

    check(COMPARE_AND_EXCHANGE("cmpxchg8.acq", &word, 108, 1) == 108 && word == 1, "cmpxchg8 that succeeds");
    check(COMPARE_AND_EXCHANGE("cmpxchg8.rel", &word, 108, 2) == 1 && word == 1, "cmpxchg8 that fails");
    uint8_t bytes[4] = {1, 2, 3, 4};
    check(COMPARE_AND_EXCHANGE("cmpxchg1.acq", bytes + 1, 2, 0x1ff) == 2 && bytes[1] == 0xff && bytes[2] == 3, "cmpxchg1");
    check(COMPARE_AND_EXCHANGE("cmpxchg1.acq", bytes + 2, 0x103, 9) == 3 && bytes[2] == 3, "cmpxchg1 compares all of ar.ccv");

    uint64_t old;
    asm volatile("xchg2 %0=[%1],%2" : "=r"(old) : "r"(bytes), "r"(UINT64_C(0xabcd)) : "memory");
    check(old == 0xff01 && bytes[0] == 0xcd && bytes[1] == 0xab && bytes[2] == 3, "xchg2");

    uint64_t pair[2] __attribute__((aligned(16))) = {0}, high = 0;
    store_pair(pair, 5, 6);
    check(pair[0] == 5 && pair[1] == 6, "st16");
    check(load_pair(pair, &high) == 5 && high == 6, "ld16");
    check(exchange_pair(pair, 5, 7, 8) == 5 && pair[0] == 7 && pair[1] == 8, "cmp8xchg16 that succeeds");
    check(exchange_pair(pair, 5, 9, 9) == 7 && pair[0] == 7 && pair[1] == 8, "cmp8xchg16 that fails");
}
