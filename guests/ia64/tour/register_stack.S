// Frames that fill the register stack many times over.

	.text

// long pyramid(long depth): every frame holds its depth in registers at its ends and in its middle, calls the next,
// and adds what they hold afterwards. Answers 4 * (depth + ... + 1).
	.global	pyramid
	.proc	pyramid
pyramid:
	.prologue
	.save	ar.pfs, r33
	alloc	loc0 = ar.pfs, 1, 89, 1, 0
	.save	rp, r34
	mov	loc1 = rp
	.body
	cmp.eq	p6, p7 = 0, in0
	mov	r8 = 0
	;;
(p6)	br.cond.spnt pyramid_top
	mov	loc2 = in0
	mov	loc45 = in0
	mov	loc88 = in0
	adds	out0 = -1, in0
	br.call.sptk.many rp = pyramid
	;;
	add	r14 = in0, loc2
	add	r15 = loc45, loc88
	;;
	add	r14 = r14, r15
	;;
	add	r8 = r8, r14
pyramid_top:
	mov	ar.pfs = loc0
	mov	rp = loc1
	;;
	br.ret.sptk.many rp
	.endp	pyramid

// long nat_in_the_stack(const long *address, long depth)
// Keeps a speculatively loaded register and a plain one in its frame over deep recursion.
// Answers 1 when the first is still NaT and the second still is not.
	.global	nat_in_the_stack
	.proc	nat_in_the_stack
nat_in_the_stack:
	.prologue
	.save	ar.pfs, r34
	alloc	loc0 = ar.pfs, 2, 4, 1, 0
	.save	rp, r35
	mov	loc1 = rp
	.body
	ld8.s	loc2 = [in0]
	mov	loc3 = 77
	mov	out0 = in1
	;;
	br.call.sptk.many rp = pyramid
	;;
	tnat.nz	p6, p0 = loc2
	mov	r8 = 0
	cmp.eq	p7, p0 = 77, loc3
	;;
(p6)	adds	r8 = 1, r8
	;;
(p7)	adds	r8 = 1, r8
	mov	ar.pfs = loc0
	mov	rp = loc1
	;;
	cmp.eq	p6, p7 = 2, r8
	;;
(p6)	mov	r8 = 1
(p7)	mov	r8 = 0
	br.ret.sptk.many rp
	.endp	nat_in_the_stack

// long *flushed_frame(long a, long b, long c): puts its arguments in its frame, has it written to the backing store,
// and answers the address just above it.
	.global	flushed_frame
	.proc	flushed_frame
flushed_frame:
	.prologue
	.save	ar.pfs, r35
	alloc	loc0 = ar.pfs, 3, 5, 0, 0
	.save	rp, r36
	mov	loc1 = rp
	.body
	mov	loc2 = in0
	mov	loc3 = in1
	mov	loc4 = in2
	;;
	br.call.sptk.many rp = flush
	;;
	mov	ar.pfs = loc0
	mov	rp = loc1
	;;
	br.ret.sptk.many rp
	.endp	flushed_frame

	.proc	flush
flush:
	alloc	r2 = ar.pfs, 0, 0, 0, 0
	flushrs
	;;
	mov	r8 = ar.bsp
	br.ret.sptk.many rp
	.endp	flush
