/* Integer: the sieve of Eratosthenes over bytes, then the sum of the primes. */

#include "runtime.h"

enum { LIMIT = 1 << 16 };

static uint8_t composite[LIMIT];

int main(int count, char **values)
{
    long rounds = argument(count, values, 60);
    uint64_t checksum = 0;
    for (long round = 0; round < rounds; round++) {
        memset(composite, 0, sizeof composite);
        for (long number = 2; number < LIMIT; number++) {
            if (composite[number])
                continue;
            checksum += number ^ round;
            for (long multiple = number * 2; multiple < LIMIT; multiple += number)
                composite[multiple] = 1;
        }
    }
    print("sieve: %ld rounds, checksum %lu\n", rounds, checksum);
    return 0;
}
