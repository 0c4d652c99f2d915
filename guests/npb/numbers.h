/* The pseudo-random sequence of the specification, and the functions of analysis that the benchmarks need.

   The functions are accurate to a few units in the last place, and the same code runs on every system. */

#ifndef NUMBERS_H
#define NUMBERS_H

#include "runtime.h"

#define PI 3.14159265358979323846
#define LOG_2 0.69314718055994530942

/* x' = 5^13 x mod 2^46; a number of the sequence is x' as a fraction of 2^46 (RNR-94-007). */
struct sequence {
    uint64_t state;
};

static inline struct sequence sequence_from(uint64_t seed)
{
    return (struct sequence){seed};
}

static inline double sequence_next(struct sequence *sequence)
{
    /* The product modulo 2^64 has the right lower 46 bits. */
    sequence->state = sequence->state * UINT64_C(1220703125) & ((UINT64_C(1) << 46) - 1);
    return (double)sequence->state * (1.0 / (double)(UINT64_C(1) << 46));
}

/* Goes on as if `count` numbers had been taken. */
void sequence_skip(struct sequence *sequence, uint64_t count);

/* Of a normal positive number. */
double natural_logarithm(double value);

/* Of a number between -700 and 700. */
double exponential(double value);

/* Of an angle between -pi and pi. */
double cosine(double angle);

/* Cosine and sine of 2 pi k / n, where n is a power of two, 8 at least, and 0 <= k < n. */
void root_of_unity(long k, long n, double *cosine, double *sine);

static inline double square_root(double value)
{
    return __builtin_sqrt(value);
}

static inline double magnitude(double value)
{
    return __builtin_fabs(value);
}

#endif
