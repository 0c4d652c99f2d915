/* Known values in every preserved register at an entry to the kernel (preserved.S), and what the kernel says of them. */

#ifndef PRESERVED_H
#define PRESERVED_H

#include "system.h"

#define CALL_EXAMINE (1024 + 504)

struct preserved_values {
    long arguments[3];
    unsigned long r4[4], b1[5], lc, predicates, unat, f2[20];
};

long preserved(long depth, const struct preserved_values *values, long way);

/* elf_gregset_t and elf_fpregset_t of Linux/ia64. */
struct program_registers {
    unsigned long general[128];
    struct {
        unsigned long significand, sign_and_exponent;
    } floating[128];
};

static inline struct preserved_values preserved_values(void)
{
    struct preserved_values values;
    for (int i = 0; i < 4; i++)
        values.r4[i] = 0x4444444400000000UL + i;
    for (int i = 0; i < 5; i++)
        values.b1[i] = 0xbbbbbbbb00000000UL + i;
    values.lc = 0x1c1c1c1c1c1c1c1cUL;
    values.predicates = 0x5a5a5a5a5a5a002aUL;
    values.unat = 0x0123456789abcdefUL;
    for (int i = 0; i < 20; i++)
        values.f2[i] = 0xf00000000000f000UL + i;
    return values;
}

/* Whether `registers` has all of `values`, and NaT in r6 alone of r4 to r7. */
static inline int preserved_holds(const struct preserved_values *values, const struct program_registers *registers)
{
    const unsigned long *general = registers->general, predicates = 0xffffffffffff003eUL;
    int is_right = (general[32] & 0xf0) == 0x40 && general[53] == values->lc && general[50] == values->unat
                   && (general[33] & predicates) == (values->predicates & predicates);
    for (int i = 0; i < 4; i++)
        is_right &= i == 2 || general[4 + i] == values->r4[i];
    for (int i = 0; i < 5; i++)
        is_right &= general[35 + i] == values->b1[i];
    for (int i = 0; i < 20; i++)
        is_right &= registers->floating[i < 4 ? 2 + i : 12 + i].significand == values->f2[i];
    return is_right;
}

#endif
