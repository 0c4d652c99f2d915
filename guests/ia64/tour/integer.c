/* Integer operations, each against the same result by plain C of another kind. */

#include "tour.h"

/* One instruction of one or two sources. */
#define UNARY(name, source) ({ uint64_t result_; asm(name " %0=%1" : "=r"(result_) : "r"((uint64_t)(source))); result_; })
#define BINARY(name, one, other) \
    ({ uint64_t result_; asm(name " %0=%1,%2" : "=r"(result_) : "r"((uint64_t)(one)), "r"((uint64_t)(other))); result_; })

/* integer.S: predicates 6 to 13 after chains of compares, as a bit mask from bit 6. */
uint64_t compare_chain(int64_t one, int64_t other);

static uint64_t ones_by_hand(uint64_t value)
{
    uint64_t count = 0;
    for (; value; value &= value - 1)
        count++;
    return count;
}

/* The high half of a product from four products of halves. */
static uint64_t high_by_hand(uint64_t one, uint64_t other)
{
    uint64_t a = one >> 32, b = one & 0xffffffff, c = other >> 32, d = other & 0xffffffff;
    uint64_t middle = a * d + ((b * d) >> 32), low = b * c + (middle & 0xffffffff);
    return a * c + (middle >> 32) + (low >> 32);
}

static uint64_t high_by_xma(uint64_t one, uint64_t other)
{
    return (unsigned __int128)one * other >> 64;
}

/* Restoring division, one bit at a time. */
static uint64_t quotient_by_hand(uint64_t dividend, uint64_t divisor, uint64_t *remainder)
{
    uint64_t quotient = 0, rest = 0;
    for (int bit = 63; bit >= 0; bit--) {
        uint64_t carry = rest >> 63;
        rest = rest << 1 | (dividend >> bit & 1);
        quotient <<= 1;
        if (carry || rest >= divisor) {
            rest -= divisor;
            quotient |= 1;
        }
    }
    *remainder = rest;
    return quotient;
}

static void divide(uint64_t dividend, uint64_t divisor)
{
    uint64_t remainder, quotient = quotient_by_hand(dividend, divisor, &remainder);
    check(dividend / divisor == quotient, "64-bit quotient");
    check(dividend % divisor == remainder, "64-bit remainder");
}

void integer_part(void)
{
    uint64_t state = 42;
    for (int i = 0; i < 8; i++) {
        uint64_t one = random_next(&state) << 11 ^ random_next(&state), other = random_next(&state) << i * 7;
        check(UNARY("popcnt", one) == ones_by_hand(one), "popcnt");
        check(high_by_xma(one, other) == high_by_hand(one, other), "xma.hu");
        divide(one, other >> i * 8 | 1);
    }
    check((volatile int64_t){-7} / (volatile int64_t){2} == -3, "signed quotient");
    check((volatile int64_t){-7} % (volatile int64_t){2} == -1, "signed remainder");
    check((volatile int){-2147483647} / (volatile int){-3} == 715827882, "32-bit quotient");

    uint64_t value = 0x0123456789abcdef, result;
    asm("mux1 %0=%1,@rev" : "=r"(result) : "r"(value));
    check(result == 0xefcdab8967452301, "mux1 @rev");
    asm("extr.u %0=%1,20,16" : "=r"(result) : "r"(value));
    check(result == (value >> 20 & 0xffff), "extr.u");
    asm("extr %0=%1,28,8" : "=r"(result) : "r"(value));
    check(result == (uint64_t)(int8_t)(value >> 28), "extr");
    asm("dep %0=%1,%2,24,12" : "=r"(result) : "r"(UINT64_C(0xfff5a5)), "r"(value));
    check(result == 0x01234565a5abcdef, "dep");
    asm("dep.z %0=%1,40,16" : "=r"(result) : "r"(value));
    check(result == 0x00cdef0000000000, "dep.z");
    asm("shrp %0=%1,%2,12" : "=r"(result) : "r"(value), "r"(~value));
    check(result == (value << 52 | ~value >> 12), "shrp");
    asm("shladd %0=%1,3,%2" : "=r"(result) : "r"(value), "r"(value));
    check(result == value * 9, "shladd");
    asm("shladdp4 %0=%1,2,%2" : "=r"(result) : "r"(value), "r"(UINT64_C(0xc0000000)));
    check(result == ((((value << 2) + 0xc0000000) & 0xffffffff) | UINT64_C(3) << 61), "shladdp4");
    check(BINARY("andcm", value, 0xff00ff00ff00ff00) == (value & 0x00ff00ff00ff00ff), "andcm");
    check(UNARY("czx1.r", 0x1122330044556677) == 4, "czx1.r");
    check(UNARY("czx2.l", value) == 4, "czx2.l without a zero");
    check(UNARY("sxt2", 0x18000) == 0xffffffffffff8000, "sxt2");
    check(UNARY("zxt4", ~value) == (uint32_t)~value, "zxt4");
    check(BINARY("shl", value, 64) == 0, "shl by 64");
    check(BINARY("shr", UINT64_C(1) << 63, 200) == ~UINT64_C(0), "shr by 200");
    check(BINARY("sub", 0, 1) == ~UINT64_C(0), "sub");

    static const int64_t pairs[][2] = {{5, 5}, {4, 6}, {-4, 6}, {4, -6}, {4, 7}, {7, 4}};
    for (unsigned i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        int64_t one = pairs[i][0], other = pairs[i][1];
        uint64_t expected = (one == other) << 6 | (one != other) << 7 | (one < other) << 8 | (one >= other) << 9 |
                            (one >= 0 && other > 0 && !(other & 1)) << 10 | (one == other || other < 0) << 11 | 1 << 12;
        check(compare_chain(one, other) == expected, "compare chain");
    }
}
