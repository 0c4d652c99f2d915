/* What a benchmark has found, beside what is specified. */

#include "kernel.h"
#include "numbers.h"

enum { DIGITS = 13, TEXT_BYTES = 32 };

/* Writes a number as `-1.234567890123e-05`, to a relative error of some 10^-15. */
static const char *scientific(char text[TEXT_BYTES], double value)
{
    char *place = text;
    if (value < 0) {
        *place++ = '-';
        value = -value;
    }
    int exponent = 0;
    if (!(value <= 1e300))
        return "no number";
    for (; value >= 10; value /= 10)
        exponent++;
    for (; value > 0 && value < 1 && exponent > -300; value *= 10)
        exponent--;
    uint64_t unit = 1;
    for (int digit = 1; digit < DIGITS; digit++)
        unit *= 10;
    uint64_t digits = (uint64_t)(value * (double)unit + 0.5);
    if (digits >= 10 * unit) {
        digits /= 10;
        exponent++;
    }
    *place++ = '0' + digits / unit;
    *place++ = '.';
    while ((unit /= 10) > 0)
        *place++ = '0' + digits / unit % 10;
    *place++ = 'e';
    *place++ = exponent < 0 ? '-' : '+';
    exponent = exponent < 0 ? -exponent : exponent;
    if (exponent >= 100)
        *place++ = '0' + exponent / 100;
    *place++ = '0' + exponent / 10 % 10;
    *place++ = '0' + exponent % 10;
    *place = 0;
    return text;
}

int report_value(const char *label, const char *what, double computed, double specified, double tolerance)
{
    char first[TEXT_BYTES], second[TEXT_BYTES];
    int is_right = magnitude(computed - specified) <= tolerance * magnitude(specified);
    print("%s: %s %s, specified %s%s\n", label, what, scientific(first, computed), scientific(second, specified),
          is_right ? "" : ": WRONG");
    return !is_right;
}
