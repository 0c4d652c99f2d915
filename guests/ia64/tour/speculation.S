// Control and data speculation: the recoveries are out of line, as compilers put them.

	.text

// long speculative_load(const long *address, long otherwise)
// Loads ahead of the check; answers `otherwise` when the load deferred its fault.
	.global	speculative_load
	.proc	speculative_load
speculative_load:
	alloc	r2 = ar.pfs, 2, 0, 0, 0
	ld8.s	r8 = [in0]
	;;
	chk.s	r8, speculative_load_failed
	br.ret.sptk.many rp
speculative_load_failed:
	mov	r8 = in1
	br.ret.sptk.many rp
	.endp	speculative_load

// double speculative_double(const double *address, double otherwise)
	.global	speculative_double
	.proc	speculative_double
speculative_double:
	alloc	r2 = ar.pfs, 2, 0, 0, 0
	mov	f10 = f8
	;;
	ldfd.s	f11 = [in0]
	;;
	fma.d	f8 = f11, f1, f1	// one more; a NaTVal goes through
	;;
	chk.s	f8, speculative_double_failed
	br.ret.sptk.many rp
speculative_double_failed:
	fclass.m p6, p7 = f8, @nat
	;;
(p6)	mov	f8 = f10
(p7)	mov	f8 = f0
	br.ret.sptk.many rp
	.endp	speculative_double

// long advanced_load(const long *load, long *store, long value, long *recoveries)
// Loads ahead of a store; when the two overlap, the check runs the recovery, which loads again and is counted.
	.global	advanced_load
	.proc	advanced_load
advanced_load:
	alloc	r2 = ar.pfs, 4, 0, 0, 0
	ld8.a	r8 = [in0]
	;;
	st8	[in1] = in2
	;;
	chk.a.clr r8, advanced_load_again
	br.ret.sptk.many rp
advanced_load_again:
	ld8	r14 = [in3]
	;;
	adds	r14 = 1, r14
	ld8	r8 = [in0]
	;;
	st8	[in3] = r14
	br.ret.sptk.many rp
	.endp	advanced_load

// long checked_load(const long *load, long *store, long value)
// The same with a check load, which loads again by itself.
	.global	checked_load
	.proc	checked_load
checked_load:
	alloc	r2 = ar.pfs, 3, 0, 0, 0
	ld8.a	r8 = [in0]
	;;
	st8	[in1] = in2
	;;
	ld8.c.clr r8 = [in0]
	br.ret.sptk.many rp
	.endp	checked_load

// long invalidated_load(const long *load): an advanced load whose entry `invala` has removed answers -1.
	.global	invalidated_load
	.proc	invalidated_load
invalidated_load:
	alloc	r2 = ar.pfs, 1, 0, 0, 0
	ld8.a	r8 = [in0]
	;;
	invala
	;;
	chk.a.nc r8, invalidated_load_gone
	br.ret.sptk.many rp
invalidated_load_gone:
	mov	r8 = -1
	br.ret.sptk.many rp
	.endp	invalidated_load

// long nat_through_memory(const long *address, long *spilled)
// Loads speculatively, adds one, spills the sum with its NaT bit to *spilled and fills it again.
// Answers 2 when the filled register is NaT, 1 when it equals the sum, 0 otherwise.
	.global	nat_through_memory
	.proc	nat_through_memory
nat_through_memory:
	alloc	r2 = ar.pfs, 2, 0, 0, 0
	mov	r16 = ar.unat
	ld8.s	r14 = [in0]
	;;
	adds	r15 = 1, r14
	;;
	st8.spill [in1] = r15
	;;
	ld8.fill r17 = [in1]
	mov	r8 = 0
	;;
	tnat.nz	p6, p7 = r17
	;;
(p6)	mov	r8 = 2
(p7)	cmp.eq.unc p8, p0 = r15, r17
	;;
(p8)	mov	r8 = 1
	mov	ar.unat = r16
	br.ret.sptk.many rp
	.endp	nat_through_memory

// long nat_in_compare(const long *address): both targets of a compare with a NaT source are cleared: answers 0;
// without NaT exactly one is set: answers 1.
	.global	nat_in_compare
	.proc	nat_in_compare
nat_in_compare:
	alloc	r2 = ar.pfs, 1, 0, 0, 0
	ld8.s	r14 = [in0]
	cmp.eq	p6, p7 = r0, r0
	mov	r8 = 0
	;;
	cmp.eq	p6, p7 = 12, r14
	;;
(p6)	adds	r8 = 1, r8
	;;
(p7)	adds	r8 = 1, r8
	br.ret.sptk.many rp
	.endp	nat_in_compare
