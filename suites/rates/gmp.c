/* Runs one of GMP's kernels again and again on operands of a given length, in limbs. */

#include "config.h"
#include "gmp.h"

#include "kernel.h"

typedef mp_limb_t limb;

/* Kernels that gmp.h does not declare. */
limb __gmpn_mul_2(limb *, const limb *, mp_size_t, const limb *);
limb __gmpn_addmul_2(limb *, const limb *, mp_size_t, const limb *);
limb __gmpn_addlsh1_n(limb *, const limb *, const limb *, mp_size_t);
limb __gmpn_sublsh1_n(limb *, const limb *, const limb *, mp_size_t);
limb __gmpn_addlsh2_n(limb *, const limb *, const limb *, mp_size_t);
limb __gmpn_rsh1add_n(limb *, const limb *, const limb *, mp_size_t);
limb __gmpn_rsh1sub_n(limb *, const limb *, const limb *, mp_size_t);
limb __gmpn_add_n_sub_n(limb *, limb *, const limb *, const limb *, mp_size_t);
limb __gmpn_lshiftc(limb *, const limb *, mp_size_t, unsigned);
limb __gmpn_bdiv_dbm1c(limb *, const limb *, mp_size_t, limb, limb);
limb __gmpn_mod_34lsub1(const limb *, mp_size_t);
limb __gmpn_modexact_1c_odd(const limb *, mp_size_t, limb, limb);
limb __gmpn_divrem_2(limb *, mp_size_t, limb *, mp_size_t, const limb *);
limb __gmpn_invert_limb(limb);
void __gmpn_divexact_1(limb *, const limb *, mp_size_t, limb);

enum { PASSES = 2000, LIMBS = 4096 };

static limb first[LIMBS] __attribute__((aligned(128)));
static limb second[LIMBS] __attribute__((aligned(128)));
static limb result[LIMBS] __attribute__((aligned(128)));
static limb other[LIMBS] __attribute__((aligned(128)));
static const limb multiplier[2] = {0x123456789abcdef1, 0xfedcba9876543211};
static volatile limb sink;

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    const char *kernel = arguments[1];
    mp_size_t length = atol(arguments[2]);
    for (int place = 0; place < LIMBS; place++) {
        first[place] = place * 0x9e3779b97f4a7c15;
        second[place] = first[place] * 3 + 1;
    }
    KERNEL(add_n, mpn_add_n(result, first + 1, second + 2, length))
    KERNEL(sub_n, mpn_sub_n(result, first + 1, second + 2, length))
    KERNEL(addlsh1_n, __gmpn_addlsh1_n(result, first, second, length))
    KERNEL(sublsh1_n, __gmpn_sublsh1_n(result, first, second, length))
    KERNEL(addlsh2_n, __gmpn_addlsh2_n(result, first, second, length))
    KERNEL(rsh1add_n, __gmpn_rsh1add_n(result, first, second, length))
    KERNEL(rsh1sub_n, __gmpn_rsh1sub_n(result, first, second, length))
    KERNEL(cnd_add_n, mpn_cnd_add_n(1, result, first, second, length))
    KERNEL(add_n_sub_n, __gmpn_add_n_sub_n(result, other, first, second, length))
    KERNEL(mul_1, mpn_mul_1(result, first, length, multiplier[0]))
    KERNEL(addmul_1, mpn_addmul_1(result, first, length, multiplier[0]))
    KERNEL(submul_1, mpn_submul_1(result, first, length, multiplier[0]))
    KERNEL(mul_2, __gmpn_mul_2(result, first, length, multiplier))
    KERNEL(addmul_2, __gmpn_addmul_2(result, first, length, multiplier))
    KERNEL(copyi, mpn_copyi(result, first, length))
    KERNEL(copyd, mpn_copyd(result, first, length))
    KERNEL(lshift, mpn_lshift(result, first, length, 7))
    KERNEL(rshift, mpn_rshift(result, first, length, 7))
    KERNEL(lshiftc, __gmpn_lshiftc(result, first, length, 7))
    KERNEL(popcount, sink = mpn_popcount(first, length))
    KERNEL(hamdist, sink = mpn_hamdist(first, second, length))
    KERNEL(and_n, mpn_and_n(result, first, second, length))
    KERNEL(xor_n, mpn_xor_n(result, first, second, length))
    KERNEL(mod_34lsub1, sink = __gmpn_mod_34lsub1(first, length))
    KERNEL(modexact_1c_odd, sink = __gmpn_modexact_1c_odd(first, length, multiplier[0], 0))
    KERNEL(divexact_1, __gmpn_divexact_1(result, first, length, multiplier[0]))
    KERNEL(bdiv_dbm1c, sink = __gmpn_bdiv_dbm1c(result, first, length, multiplier[0], 0))
    KERNEL(divrem_1, sink = mpn_divrem_1(result, 0, first, length, multiplier[1]))
    KERNEL(divrem_2, (memcpy(other, first, length * sizeof(limb)),
                      __gmpn_divrem_2(result, 0, other, length, multiplier)))
    KERNEL(invert_limb,
           for (mp_size_t call = 0; call < length; call++) sink = __gmpn_invert_limb(multiplier[1] | 1))
    return 2;
}
