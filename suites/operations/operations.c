/* What programs ask of the compiler and the C library: `operations NAME ROUNDS` does one of them so many times and
   prints what depends on all results; `operations` alone prints the names. */

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ELEMENTS 1024

static volatile double one = 1.5;
static volatile float single = 1.25f;
static int32_t words[3][ELEMENTS];
static int16_t pairs[3][ELEMENTS];
static uint8_t bytes[3][ELEMENTS];
static float singles[3][ELEMENTS];
static char text[ELEMENTS];

static double divide_long(long rounds)
{
    int64_t sum = 0;
    for (int64_t i = 1; i <= rounds; i++)
        sum += rounds * 77 / i + rounds % i;
    return sum;
}

static double divide_hash(long rounds)
{
    uint64_t hash = 88172645463325252;
    int64_t sum = 0;
    for (long i = 1; i <= rounds; i++) {
        hash ^= hash << 13;
        hash ^= hash >> 7;
        hash ^= hash << 17;
        sum += (int64_t)hash / (i | 1) + (int64_t)hash % (i | 1);
    }
    return sum;
}

static double divide_int(long rounds)
{
    uint32_t sum = 0;
    for (uint32_t i = 1; i <= rounds; i++)
        sum += (uint32_t)rounds * 77 / i + (uint32_t)rounds % i;
    return sum;
}

static double divide_wide(long rounds)
{
    unsigned __int128 value = 1;
    for (long i = 1; i <= rounds; i++)
        value = value * (i + 2) + (value >> 3) / (uint64_t)i;
    return (double)(uint64_t)value;
}

static double divide_double(long rounds)
{
    double sum = 0;
    for (long i = 1; i <= rounds; i++)
        sum += (i + one) / (rounds - i + one);
    return sum;
}

static double divide_single(long rounds)
{
    float sum = 0;
    for (long i = 1; i <= rounds; i++)
        sum += (i + single) / (rounds - i + single);
    return sum;
}

static double square_root(long rounds)
{
    double sum = 0;
    for (long i = 1; i <= rounds; i++)
        sum += sqrt(one + i);
    return sum;
}

static double exponential(long rounds)
{
    double sum = 0;
    for (long i = 1; i <= rounds; i++)
        sum += exp(-one * i * 1e-7);
    return sum;
}

static double logarithm(long rounds)
{
    double sum = 0;
    for (long i = 1; i <= rounds; i++)
        sum += log(one + i);
    return sum;
}

static double power(long rounds)
{
    double sum = 0;
    for (long i = 1; i <= rounds; i++)
        sum += pow(one + i, 0.37);
    return sum;
}

static double sine(long rounds)
{
    double sum = 0;
    for (long i = 1; i <= rounds; i++)
        sum += sin(one * i);
    return sum;
}

static double extremes(long rounds)
{
    double sum = 0;
    for (long i = 1; i <= rounds; i++)
        sum += fmax(one, i) + fmin(one, i);
    return sum;
}

static double classify(long rounds)
{
    double sum = 0;
    for (long i = 1; i <= rounds; i++)
        sum += isnan(one) + isfinite(one) + !!signbit(one);
    return sum;
}

static double round_number(long rounds)
{
    double sum = 0;
    for (long i = 1; i <= rounds; i++)
        sum += lrint(one * i) + floor(one * i);
    return sum;
}

static double long_double(long rounds)
{
    long double value = 1.1L;
    for (long i = 1; i <= rounds; i++)
        value = value * 1.0000001L + 0.1L;
    return value;
}

static double print(long rounds)
{
    double sum = 0;
    for (long i = 1; i <= rounds; i++) {
        char line[64];
        sum += snprintf(line, sizeof line, "%ld %g", i, one * i);
    }
    return sum;
}

static double parse(long rounds)
{
    double sum = 0;
    for (long i = 1; i <= rounds; i++)
        sum += strtod("3.14159265", NULL) + strtol("271828", NULL, 10);
    return sum;
}

static double count_characters(long rounds)
{
    double sum = 0;
    for (long i = 1; i <= rounds; i++)
        sum += strlen(text + i % 64) + (memchr(text, 'b', ELEMENTS / 2) != NULL);
    return sum;
}

static double lock(long rounds)
{
    _Atomic int held = 0;
    _Atomic long count = 0;
    for (long i = 1; i <= rounds; i++) {
        int expected = 0;
        atomic_compare_exchange_strong(&held, &expected, 1);
        atomic_fetch_add(&count, 1);
        atomic_store_explicit(&held, 0, memory_order_release);
    }
    return count;
}

static double swap_bytes(long rounds)
{
    uint64_t value = 1;
    for (long i = 1; i <= rounds; i++)
        value = __builtin_bswap64(value + i);
    return (double)value;
}

/* Loops that compilers make vector operations of, a round for each element. */

static double add_words(long rounds)
{
    for (long round = 0; round < rounds / ELEMENTS; round++)
        for (int i = 0; i < ELEMENTS; i++)
            words[2][i] = words[0][i] + words[1][i] - (words[2][i] >> 1);
    return words[2][7];
}

static double multiply_pairs(long rounds)
{
    for (long round = 0; round < rounds / ELEMENTS; round++)
        for (int i = 0; i < ELEMENTS; i++)
            pairs[2][i] = pairs[0][i] * pairs[1][i] + (pairs[2][i] << 2);
    return pairs[2][7];
}

static double compare_bytes(long rounds)
{
    for (long round = 0; round < rounds / ELEMENTS; round++)
        for (int i = 0; i < ELEMENTS; i++)
            bytes[2][i] = (bytes[0][i] > bytes[1][i] ? bytes[0][i] : bytes[1][i]) + bytes[2][i];
    return bytes[2][7];
}

static double add_singles(long rounds)
{
    for (long round = 0; round < rounds / ELEMENTS; round++)
        for (int i = 0; i < ELEMENTS; i++)
            singles[2][i] = singles[0][i] * singles[1][i] + 0.5f * singles[2][i];
    return singles[2][7];
}

static const struct operation {
    const char *name;
    long rounds;
    double (*run)(long);
} operations[] = {
    {"divide-long", 5000000, divide_long},
    {"divide-hash", 5000000, divide_hash},
    {"divide-int", 5000000, divide_int},
    {"divide-wide", 1000000, divide_wide},
    {"divide-double", 10000000, divide_double},
    {"divide-single", 10000000, divide_single},
    {"sqrt", 3000000, square_root},
    {"exp", 2000000, exponential},
    {"log", 2000000, logarithm},
    {"pow", 1000000, power},
    {"sin", 2000000, sine},
    {"fmin-fmax", 5000000, extremes},
    {"classify", 10000000, classify},
    {"lrint-floor", 3000000, round_number},
    {"long-double", 10000000, long_double},
    {"snprintf", 300000, print},
    {"strtod-strtol", 500000, parse},
    {"strlen-memchr", 300000, count_characters},
    {"lock", 10000000, lock},
    {"bswap", 20000000, swap_bytes},
    {"words", 40000000, add_words},
    {"pairs", 40000000, multiply_pairs},
    {"bytes", 40000000, compare_bytes},
    {"singles", 20000000, add_singles},
};

int main(int argc, char **argv)
{
    uint32_t seed = 1;
    memset(text, 'a', ELEMENTS - 1);
    for (int i = 0; i < ELEMENTS; i++)
        for (int j = 0; j < 3; j++) {
            seed = seed * 1664525 + 1013904223;
            words[j][i] = seed;
            pairs[j][i] = seed >> 9;
            bytes[j][i] = seed >> 17;
            singles[j][i] = (seed >> 8) / 16777216.0f;
        }
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        const struct operation *operation = &operations[i];
        if (argc < 2)
            printf("%s %ld\n", operation->name, operation->rounds);
        else if (!strcmp(argv[1], operation->name)) {
            printf("%.10g\n", operation->run(argc > 2 ? atol(argv[2]) : operation->rounds));
            return 0;
        }
    }
    return argc < 2 ? 0 : 2;
}
