/* Floating point: results bit for bit, in the three memory formats, and the status flags. */

#include "tour.h"

/* Fields of ar.fpsr (software developer's manual, volume 1, chapter 5): status field 0 has its controls at bit 6 and
   its flags at bit 13. */
enum {
    ROUNDING_BIT = 6 + 4,
    ROUND_DOWN = 1,
    ROUND_UP = 2,
    ROUND_TO_ZERO = 3,
    FLAGS_BIT = 13,
    INVALID = 1,
    DENORMAL = 2,
    DIVIDE_BY_ZERO = 4,
    OVERFLOW = 8,
    UNDERFLOW = 16,
    INEXACT = 32,
};

static uint64_t status(void)
{
    uint64_t value;
    asm volatile("mov %0=ar.fpsr" : "=r"(value));
    return value;
}

static void set_status(uint64_t value)
{
    asm volatile("mov ar.fpsr=%0" : : "r"(value));
}

/* One operation under a rounding mode (0 to nearest), with the flags it raises. */
#define OPERATION(instruction, one, other, rounding, flags)                                                          \
    ({                                                                                                               \
        uint64_t before_ = status();                                                                                 \
        set_status((before_ & ~(UINT64_C(0x3f) << FLAGS_BIT)) | (uint64_t)(rounding) << ROUNDING_BIT);               \
        __typeof__(one) result_;                                                                                     \
        asm volatile(instruction " %0=%1,%2" : "=f"(result_) : "f"(one), "f"(other));                                \
        *(flags) = status() >> FLAGS_BIT & 0x3f;                                                                     \
        set_status(before_);                                                                                         \
        result_;                                                                                                     \
    })

static uint64_t bits(double value)
{
    uint64_t result;
    asm("getf.d %0=%1" : "=r"(result) : "f"(value));
    return result;
}

static double from_bits(uint64_t value)
{
    double result;
    asm("setf.d %0=%1" : "=f"(result) : "r"(value));
    return result;
}

static uint64_t significand(long double value)
{
    uint64_t result;
    asm("getf.sig %0=%1" : "=r"(result) : "f"(value));
    return result;
}

static void rounding(void)
{
    static const struct {
        int mode;
        uint64_t sum, negative;
    } modes[] = {
        {0, 0x3ff0000000000000, 0xbff0000000000000},
        {ROUND_DOWN, 0x3ff0000000000000, 0xbff0000000000001},
        {ROUND_UP, 0x3ff0000000000001, 0xbff0000000000000},
        {ROUND_TO_ZERO, 0x3ff0000000000000, 0xbff0000000000000},
    };
    volatile double one = 1, tiny = 0x1p-60;
    for (int i = 0; i < 4; i++) {
        unsigned flags;
        check(bits(OPERATION("fadd.d.s0", one, tiny, modes[i].mode, &flags)) == modes[i].sum, "rounded sum");
        check(flags == INEXACT, "inexact flag");
        check(bits(OPERATION("fsub.d.s0", -one, tiny, modes[i].mode, &flags)) == modes[i].negative, "rounded difference");
    }
}

static void special_values(void)
{
    volatile double zero = 0, one = 1, huge = 0x1p1023, smallest = 0x1p-1074, infinity = from_bits(0x7ff0000000000000);
    unsigned flags;
    double result = OPERATION("fmpy.d.s0", huge, huge, 0, &flags);
    check(bits(result) == 0x7ff0000000000000 && flags == (OVERFLOW | INEXACT), "overflow to infinity");
    result = OPERATION("fmpy.d.s0", huge, huge, ROUND_TO_ZERO, &flags);
    check(bits(result) == 0x7fefffffffffffff && flags == (OVERFLOW | INEXACT), "overflow to the largest number");
    result = OPERATION("fmpy.d.s0", smallest, one / 2, 0, &flags);
    check(bits(result) == 0 && flags == (DENORMAL | UNDERFLOW | INEXACT), "underflow to zero");
    result = OPERATION("fmpy.d.s0", smallest, one * 6, 0, &flags);
    check(bits(result) == 6 && flags == DENORMAL, "exact denormal");
    result = OPERATION("fmpy.d.s0", zero, infinity, 0, &flags);
    check(bits(result) == 0xfff8000000000000 && flags == INVALID, "zero times infinity");
    result = OPERATION("fsub.d.s0", one, one, ROUND_DOWN, &flags);
    check(bits(result) == 0x8000000000000000 && flags == 0, "minus zero when rounding down");
    volatile double nan = result = OPERATION("fsub.d.s0", infinity, infinity, 0, &flags);
    check(!(nan == nan) && !(nan < one) && !(nan >= one) && nan != one, "a NaN is unordered");
    check(1 / zero == infinity && -1 / zero == -infinity, "division by zero");
}

static void conversions(void)
{
    volatile double value = -2.75, huge = 0x1p80, almost = 0x1.fffffffffffffp62;
    int64_t integer;
    check((int64_t)value == -2, "truncation");
    double converted;
    asm("fcvt.fx.s0 %0=%1" : "=f"(converted) : "f"(value));
    asm("getf.sig %0=%1" : "=r"(integer) : "f"(converted));
    check(integer == -3, "conversion to nearest");
    asm("fcvt.fx.trunc.s0 %0=%1" : "=f"(converted) : "f"(huge));
    asm("getf.sig %0=%1" : "=r"(integer) : "f"(converted));
    check(integer == INT64_MIN, "conversion out of range");
    check((int64_t)almost == 0x7ffffffffffffc00, "conversion of a large number");
    check((double)(volatile int64_t){0x7fffffffffffffff} == 0x1p63, "conversion from an integer rounds");
    check((float)(volatile double){0x1.000001p0} == 1.0f, "narrowing ties to even");
    check((double)(volatile float){0x1p-149f} == 0x1p-149, "widening a denormal");
}

static void parallel_singles(void)
{
    double result, one, two;
    uint64_t pair;
    asm("setf.sig %0=%1" : "=f"(one) : "r"(UINT64_C(0x3fc0000040100000)));  /* 1.5, 2.25 */
    asm("setf.sig %0=%1" : "=f"(two) : "r"(UINT64_C(0x40000000c0400000)));  /* 2.0, -3.0 */
    asm("fpma.s0 %0=%1,%2,%1" : "=f"(result) : "f"(one), "f"(two));
    asm("getf.sig %0=%1" : "=r"(pair) : "f"(result));
    check(pair == 0x40900000c0900000, "fpma");                              /* 4.5, -4.5 */
    asm("fpmax.s0 %0=%1,%2" : "=f"(result) : "f"(one), "f"(two));
    asm("getf.sig %0=%1" : "=r"(pair) : "f"(result));
    check(pair == 0x4000000040100000, "fpmax");                             /* 2.0, 2.25 */
}

void floating_point_part(void)
{
    volatile double one = 1, three = 3, two = 2, factor = 1 + 0x1p-27;
    check(__builtin_fma(factor, factor, -(1 + 0x1p-26)) == 0x1p-54, "fma rounds once");
    check(bits(one / three) == 0x3fd5555555555555, "1/3");
    check(bits(__builtin_sqrt(two)) == 0x3ff6a09e667f3bcd, "square root of 2");
    check((float)one / (float)three == 0x1.555556p-2f, "1/3 in single precision");
    check(significand((long double)one / (long double)three) == 0xaaaaaaaaaaaaaaab, "1/3 in extended precision");
    check(significand(__builtin_sqrtl((long double)two)) == 0xb504f333f9de6484, "square root of 2 in extended precision");
    rounding();
    special_values();
    conversions();
    parallel_singles();
}
