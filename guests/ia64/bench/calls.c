/* Calls: recursion that keeps the register stack engine spilling and filling, calls through pointers. */

#include "runtime.h"

static __attribute__((noinline)) long fibonacci(long number)
{
    return number < 2 ? number : fibonacci(number - 1) + fibonacci(number - 2);
}

static __attribute__((noinline)) long ackermann(long m, long n)
{
    if (m == 0)
        return n + 1;
    return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

static long add(long left, long right)
{
    return left + right;
}

static long exclusive(long left, long right)
{
    return left ^ right;
}

static long (*volatile operations[2])(long, long) = {add, exclusive};

/* Keeps many values alive across the call, so that each frame is large. */
static __attribute__((noinline)) long deep(long depth, long seed)
{
    long a = seed * 3, b = seed ^ depth, c = seed + depth, d = a - b, e = b - c, f = c ^ d, g = d + e, h = e ^ f;
    if (depth == 0)
        return a + h;
    long inner = deep(depth - 1, operations[depth & 1](seed, depth));
    return inner + (a ^ b) + (c ^ d) + (e ^ f) + (g ^ h);
}

int main(int count, char **values)
{
    long rounds = argument(count, values, 80);
    uint64_t checksum = 0;
    for (long round = 0; round < rounds; round++) {
        checksum = checksum * 31 + fibonacci(21);
        checksum = checksum * 31 + ackermann(2, 60);
        checksum = checksum * 31 + ackermann(3, 4);
        for (int turn = 0; turn < 20; turn++)
            checksum = checksum * 31 + deep(400, round + turn);
    }
    print("calls: %ld rounds, checksum %lu\n", rounds, checksum);
    return 0;
}
