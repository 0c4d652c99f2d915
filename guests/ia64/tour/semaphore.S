// The 16-byte accesses, whose second half is in ar.csd.

	.text

// void store_pair(uint64_t *pair, uint64_t low, uint64_t high)
	.global	store_pair
	.proc	store_pair
store_pair:
	alloc	r2 = ar.pfs, 3, 0, 0, 0
	mov	ar.csd = in2
	;;
	st16	[in0] = in1, ar.csd
	br.ret.sptk.many rp
	.endp	store_pair

// uint64_t load_pair(const uint64_t *pair, uint64_t *high): the low half
	.global	load_pair
	.proc	load_pair
load_pair:
	alloc	r2 = ar.pfs, 2, 0, 0, 0
	ld16	r8, ar.csd = [in0]
	;;
	mov	r14 = ar.csd
	;;
	st8	[in1] = r14
	br.ret.sptk.many rp
	.endp	load_pair

// uint64_t exchange_pair(uint64_t *pair, uint64_t expected, uint64_t low, uint64_t high): the old low half
	.global	exchange_pair
	.proc	exchange_pair
exchange_pair:
	alloc	r2 = ar.pfs, 4, 0, 0, 0
	mov	ar.ccv = in1
	mov	ar.csd = in3
	;;
	cmp8xchg16.acq r8 = [in0], in2, ar.csd, ar.ccv
	br.ret.sptk.many rp
	.endp	exchange_pair
