#include "tour.h"

long nat_in_the_stack(const long *address, long depth);
const long *flushed_frame(long a, long b, long c);

/* Ordinary recursion, whose frames GCC sizes. */
static __attribute__((noinline)) long ackermann(long m, long n)
{
    if (m == 0)
        return n + 1;
    return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

/* The register below an address of the backing store; every 64th word holds NaT bits instead. */
static const long *below(const long *address)
{
    address--;
    return ((uintptr_t)address & 0x1f8) == 0x1f8 ? address - 1 : address;
}

void register_stack_part(void)
{
    for (long depth = 1; depth <= 1000; depth *= 10)
        check(pyramid(depth) == depth * (depth + 1) * 2, "deep frames");
    check(ackermann(2, 300) == 603, "ackermann(2, 300)");
    check(ackermann(3, 5) == 253, "ackermann(3, 5)");
    long here = 1;
    for (long depth = 1; depth < 64; depth += 9) {
        check(nat_in_the_stack((const long *)NOWHERE, depth), "a NaT spilled by the register stack");
        check(!nat_in_the_stack(&here, depth), "a value spilled by the register stack");
    }
    const long *top = flushed_frame(11, 22, 33);
    const long *third = below(top), *second = below(third), *first = below(second);
    check(*third == 33 && *second == 22 && *first == 11, "a frame in the backing store");
}
