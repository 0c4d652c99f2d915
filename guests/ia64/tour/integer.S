// Chains of compares that write predicates together, as compilers make of `a && b || c`.

	.text

// uint64_t compare_chain(int64_t one, int64_t other): the predicates p6 to p13, as bits 6 to 13
//	p6 = one == other	p7 = not
//	p8 = one < other	p9 = not
//	p10 = one >= 0 and other > 0 and bit 0 of other is clear
//	p11 = one == other or other < 0
//	p12 = 1: what a compare under a false predicate leaves alone
//	p13 = 0: what an unconditional compare under a false predicate clears
	.global	compare_chain
	.proc	compare_chain
compare_chain:
	.prologue
	alloc	r2 = ar.pfs, 2, 0, 0, 0
	.save	pr, r14
	mov	r14 = pr
	.body
	mov	r15 = 0x3fc0
	;;
	mov	pr = r0, 0x3ffe
	;;
	cmp.eq	p6, p7 = in0, in1
	cmp.lt	p8, p9 = in0, in1
	cmp.eq	p10, p11 = r0, r0
	cmp.eq	p12, p0 = r0, r0
	cmp.eq	p13, p0 = r0, r0
	;;
	// several writers of one predicate in one instruction group
	cmp.ge.and p10, p0 = in0, r0
	cmp.gt.and p10, p0 = in1, r0
	tbit.z.and p10, p0 = in1, 0
	cmp.eq.or p11, p0 = in0, in1
	cmp.lt.or p11, p0 = in1, r0
	cmp.ne	p15, p0 = r0, r0
	;;
(p15)	cmp.ne	p12, p0 = r0, r0
(p15)	cmp.eq.unc p13, p0 = r0, r0
	;;
	mov	r8 = pr
	;;
	and	r8 = r8, r15
	mov	pr = r14, -1
	;;
	br.ret.sptk.many rp
	.endp	compare_chain
