/* Numbers: a sequence that can be entered anywhere, and functions by their series. */

#include "numbers.h"

void sequence_skip(struct sequence *sequence, uint64_t count)
{
    const uint64_t mask = (UINT64_C(1) << 46) - 1;
    for (uint64_t power = 1220703125; count; count >>= 1, power = power * power & mask)
        if (count & 1)
            sequence->state = sequence->state * power & mask;
}

static double with_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* log(2^e m) = e log 2 + 2 artanh((m - 1) / (m + 1)) with m between the roots of 1/2 and of 2: the argument of artanh
   is below 0.172, and eleven terms of its series reach the last place. */
double natural_logarithm(double value)
{
    uint64_t bits = bits_of(value);
    long exponent = (long)(bits >> 52) - 1023;
    double fraction = with_bits((bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52);
    if (fraction > 1.41421356237309504880) {
        fraction *= 0.5;
        exponent++;
    }
    double s = (fraction - 1) / (fraction + 1), square = s * s;
    double series = 1.0 / 21;
    series = series * square + 1.0 / 19;
    series = series * square + 1.0 / 17;
    series = series * square + 1.0 / 15;
    series = series * square + 1.0 / 13;
    series = series * square + 1.0 / 11;
    series = series * square + 1.0 / 9;
    series = series * square + 1.0 / 7;
    series = series * square + 1.0 / 5;
    series = series * square + 1.0 / 3;
    return exponent * LOG_2 + (2 * s + 2 * s * square * series);
}

/* exp(n log 2 + r) = 2^n exp(r), with r below 0.35, where fourteen terms reach the last place. log 2 is taken in two
   pieces, of which the first times n is exact. */
double exponential(double value)
{
    const double high = 0x1.62e42feep-1, low = 0x1.a39ef35793c76p-33;
    long power = (long)(value / LOG_2 + (value < 0 ? -0.5 : 0.5));
    double rest = (value - power * high) - power * low;
    double sum = 1;
    for (int term = 14; term > 0; term--)
        sum = 1 + sum * rest / term;
    return sum * with_bits((uint64_t)(power + 1023) << 52);
}

/* cos(2 a) = 2 cos(a)^2 - 1, with a below pi/2, where twelve terms reach the last place. */
double cosine(double angle)
{
    double square = angle * angle * 0.25, c = 1;
    for (int term = 24; term > 0; term -= 2)
        c = 1 - c * square / (term * (term - 1));
    return 2 * c * c - 1;
}

/* By the series of both between 0 and pi/4; the other seven octants mirror this one. */
void root_of_unity(long k, long n, double *cosine, double *sine)
{
    long octant = 8 * k / n, within = k - octant * (n / 8);
    if (octant & 1)
        within = n / 8 - within;
    double angle = 2 * PI * within / n, square = angle * angle;
    double c = 1, s = 1;
    for (int term = 20; term > 0; term -= 2) {
        c = 1 - c * square / (term * (term - 1));
        s = 1 - s * square / (term * (term + 1));
    }
    s *= angle;
    double swap = (octant + 1) & 2 ? c : s;
    c = (octant + 1) & 2 ? s : c;
    s = swap;
    *cosine = octant >= 2 && octant < 6 ? -c : c;
    *sine = octant >= 4 ? -s : s;
}
