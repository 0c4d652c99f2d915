/* Parallel integer instructions, each against a loop over its elements. */

#include "tour.h"

#define PARALLEL(instruction, one, other) \
    ({ uint64_t result_; asm(instruction " %0=%1,%2" : "=r"(result_) : "r"(one), "r"(other)); result_; })

static int64_t element(uint64_t value, int bytes, int index, int is_signed)
{
    uint64_t part = value >> index * bytes * 8 & ((UINT64_C(1) << bytes * 8) - 1);
    uint64_t sign = UINT64_C(1) << (bytes * 8 - 1);
    return is_signed ? (int64_t)((part ^ sign) - sign) : (int64_t)part;
}

static int64_t saturate(int64_t value, int bytes, int is_signed)
{
    int64_t high = (INT64_C(1) << (bytes * 8 - is_signed)) - 1, low = is_signed ? -high - 1 : 0;
    return value > high ? high : value < low ? low : value;
}

typedef int64_t operation(int64_t one, int64_t other, int bytes);

/* The operation on every element, computed from elements taken as signed or not. */
static uint64_t each(operation *operation, uint64_t one, uint64_t other, int bytes, int is_signed)
{
    uint64_t result = 0, mask = (UINT64_C(1) << bytes * 8) - 1;
    for (int i = 0; i < 8 / bytes; i++)
        result |= ((uint64_t)operation(element(one, bytes, i, is_signed), element(other, bytes, i, is_signed), bytes) & mask)
                  << i * bytes * 8;
    return result;
}

static int64_t add(int64_t one, int64_t other, int bytes) { return (void)bytes, one + other; }
static int64_t subtract(int64_t one, int64_t other, int bytes) { return (void)bytes, one - other; }
static int64_t add_signed(int64_t one, int64_t other, int bytes) { return saturate(one + other, bytes, 1); }
static int64_t add_unsigned(int64_t one, int64_t other, int bytes) { return saturate(one + other, bytes, 0); }
static int64_t subtract_unsigned(int64_t one, int64_t other, int bytes) { return saturate(one - other, bytes, 0); }
static int64_t average_up(int64_t one, int64_t other, int bytes) { return (void)bytes, (one + other + 1) >> 1; }
static int64_t greater(int64_t one, int64_t other, int bytes) { return (void)bytes, one > other ? -1 : 0; }
static int64_t equal(int64_t one, int64_t other, int bytes) { return (void)bytes, one == other ? -1 : 0; }
static int64_t larger(int64_t one, int64_t other, int bytes) { return (void)bytes, one > other ? one : other; }
static int64_t smaller(int64_t one, int64_t other, int bytes) { return (void)bytes, one < other ? one : other; }

static uint64_t difference_sum(uint64_t one, uint64_t other)
{
    uint64_t sum = 0;
    for (int i = 0; i < 8; i++) {
        int64_t difference = element(one, 1, i, 0) - element(other, 1, i, 0);
        sum += difference < 0 ? -difference : difference;
    }
    return sum;
}

static uint64_t multiply_right(uint64_t one, uint64_t other)
{
    uint64_t low = (uint32_t)(element(one, 2, 0, 1) * element(other, 2, 0, 1));
    uint64_t high = (uint32_t)(element(one, 2, 2, 1) * element(other, 2, 2, 1));
    return high << 32 | low;
}

static uint64_t pack_words(uint64_t one, uint64_t other)
{
    uint64_t result = 0;
    for (int i = 0; i < 2; i++) {
        result |= (saturate(element(one, 4, i, 1), 2, 1) & UINT64_C(0xffff)) << i * 16;
        result |= (saturate(element(other, 4, i, 1), 2, 1) & UINT64_C(0xffff)) << (i * 16 + 32);
    }
    return result;
}

static uint64_t unpack_low(uint64_t one, uint64_t other)
{
    uint64_t result = 0;
    for (int i = 0; i < 4; i++)
        result |= (uint64_t)element(other, 1, i, 0) << i * 16 | (uint64_t)element(one, 1, i, 0) << (i * 16 + 8);
    return result;
}

void parallel_part(void)
{
    uint64_t state = 99;
    for (int i = 0; i < 8; i++) {
        uint64_t one = random_next(&state) << 11 ^ random_next(&state), other = random_next(&state) << 13 ^ one >> 9;
        check(PARALLEL("padd1", one, other) == each(add, one, other, 1, 0), "padd1");
        check(PARALLEL("psub2", one, other) == each(subtract, one, other, 2, 0), "psub2");
        check(PARALLEL("padd4", one, other) == each(add, one, other, 4, 0), "padd4");
        check(PARALLEL("padd1.sss", one, other) == each(add_signed, one, other, 1, 1), "padd1.sss");
        check(PARALLEL("padd2.uuu", one, other) == each(add_unsigned, one, other, 2, 0), "padd2.uuu");
        check(PARALLEL("psub1.uuu", one, other) == each(subtract_unsigned, one, other, 1, 0), "psub1.uuu");
        check(PARALLEL("pavg1.raz", one, other) == each(average_up, one, other, 1, 0), "pavg1.raz");
        check(PARALLEL("pcmp2.gt", one, other) == each(greater, one, other, 2, 1), "pcmp2.gt");
        check(PARALLEL("pcmp1.eq", one, one ^ (other & 0xff00ff)) == each(equal, one, one ^ (other & 0xff00ff), 1, 1),
              "pcmp1.eq");
        check(PARALLEL("pmax1.u", one, other) == each(larger, one, other, 1, 0), "pmax1.u");
        check(PARALLEL("pmin2", one, other) == each(smaller, one, other, 2, 1), "pmin2");
        check(PARALLEL("psad1", one, other) == difference_sum(one, other), "psad1");
        check(PARALLEL("pmpy2.r", one, other) == multiply_right(one, other), "pmpy2.r");
        check(PARALLEL("pack4.sss", one >> 14, other) == pack_words(one >> 14, other), "pack4.sss");
        check(PARALLEL("unpack1.l", one, other) == unpack_low(one, other), "unpack1.l");
        uint64_t shuffled;
        asm("mux2 %0=%1,0x1b" : "=r"(shuffled) : "r"(one));
        check(shuffled == (one << 48 | (one & 0xffff0000) << 16 | (one >> 16 & 0xffff0000) | one >> 48), "mux2");
    }
}
