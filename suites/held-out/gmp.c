/* Runs one of GMP's kernels again and again on operands of a given length: limbs, or bits of pairs. */

#include "config.h"
#include "gmp.h"

#include "../rates/kernel.h"

typedef mp_limb_t limb;

/* Kernels that gmp.h does not declare. */
limb __gmpn_gcd_11(limb, limb);
void __gmpn_sec_tabselect(volatile limb *, volatile const limb *, mp_size_t, mp_size_t, mp_size_t);
void __gmpn_sqr_diag_addlsh1(limb *, const limb *, const limb *, mp_size_t);
limb __gmpn_rsblsh1_n(limb *, const limb *, const limb *, mp_size_t);
limb __gmpn_sublsh2_n(limb *, const limb *, const limb *, mp_size_t);
limb __gmpn_rsblsh2_n(limb *, const limb *, const limb *, mp_size_t);

enum { PASSES = 2000, LIMBS = 1024, PAIRS = 256 };

static limb first[LIMBS] __attribute__((aligned(128)));
static limb second[LIMBS] __attribute__((aligned(128)));
static limb result[LIMBS] __attribute__((aligned(128)));
static volatile limb sink;

/* An odd number of so many random bits. */
static limb odd(limb random, mp_size_t bits)
{
    return random >> (64 - bits) | (limb)1 << (bits - 1) | 1;
}

/* The kernel, with a table of one entry; it destroys what is its caller's: r6 and ar.lc. */
static void select_limbs(mp_size_t length)
{
    long loops;
    __asm__ volatile("mov %0 = ar.lc" : "=r"(loops));
    __gmpn_sec_tabselect(result, first, length, 1, 0);
    __asm__ volatile("mov ar.lc = %0" : : "r"(loops) : "r6");
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    const char *kernel = arguments[1];
    mp_size_t length = atol(arguments[2]);
    limb random = 0x9e3779b97f4a7c15;
    for (int place = 0; place < LIMBS; place++) {
        random = random * 6364136223846793005 + 1442695040888963407;
        first[place] = random ^ random >> 29;
        random = random * 6364136223846793005 + 1442695040888963407;
        second[place] = random ^ random >> 29;
    }
#ifdef OLDER
    KERNEL(gcd_1, for (int pair = pass % 10 ? PAIRS : 0; pair < PAIRS; pair++) {
        limb one = odd(first[pair], length);
        sink = mpn_gcd_1(&one, 1, odd(second[pair], length));
    })
#else
    KERNEL(gcd_11, for (int pair = pass % 10 ? PAIRS : 0; pair < PAIRS; pair++)
                       sink = __gmpn_gcd_11(odd(first[pair], length), odd(second[pair], length)))
    KERNEL(sec_tabselect, select_limbs(length))
    KERNEL(sqr_diag_addlsh1, __gmpn_sqr_diag_addlsh1(result, first, second, length))
    KERNEL(rsblsh1_n, __gmpn_rsblsh1_n(result, first, second, length))
    KERNEL(sublsh2_n, __gmpn_sublsh2_n(result, first, second, length))
    KERNEL(rsblsh2_n, __gmpn_rsblsh2_n(result, first, second, length))
    KERNEL(cnd_sub_n, mpn_cnd_sub_n(1, result, first, second, length))
    KERNEL(andn_n, mpn_andn_n(result, first, second, length))
    KERNEL(ior_n, mpn_ior_n(result, first, second, length))
    KERNEL(iorn_n, mpn_iorn_n(result, first, second, length))
    KERNEL(nand_n, mpn_nand_n(result, first, second, length))
    KERNEL(nior_n, mpn_nior_n(result, first, second, length))
    KERNEL(xnor_n, mpn_xnor_n(result, first, second, length))
#endif
    return 2;
}
