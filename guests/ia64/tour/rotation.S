// Software-pipelined loops: each turn starts one iteration, the stages of earlier ones run under rotating predicates.

	.text

// long pipelined_sum(const int *numbers, long count): the sum of 4 * number + 1, in three stages
//	stage 0: load	stage 1: shift left by 2 and add 1	stage 2: add up
	.global	pipelined_sum
	.proc	pipelined_sum
pipelined_sum:
	.prologue
	alloc	r2 = ar.pfs, 2, 6, 0, 8
	.save	ar.lc, r17
	mov	r17 = ar.lc
	.save	pr, r18
	mov	r18 = pr
	.body
	mov	r15 = in0
	adds	r16 = -1, in1
	mov	r8 = 0
	mov	r19 = 1
	;;
	mov	ar.lc = r16
	mov	ar.ec = 3
	mov	pr.rot = 1 << 16
	;;
pipelined_sum_turn:
(p16)	ld4	r32 = [r15], 4
(p17)	shladd	r34 = r33, 2, r19
(p18)	add	r8 = r8, r35
	br.ctop.sptk.few pipelined_sum_turn
	;;
	mov	ar.lc = r17
	mov	pr = r18, -1
	br.ret.sptk.many rp
	.endp	pipelined_sum

// void pipelined_axpy(double *y, const double *x, double factor, long count): y += factor * x in five stages
	.global	pipelined_axpy
	.proc	pipelined_axpy
pipelined_axpy:
	.prologue
	alloc	r2 = ar.pfs, 4, 4, 0, 8
	.save	ar.lc, r17
	mov	r17 = ar.lc
	.save	pr, r18
	mov	r18 = pr
	.body
	mov	r14 = in0
	mov	r15 = in0
	mov	r16 = in1
	adds	r19 = -1, in3
	;;
	mov	ar.lc = r19
	mov	ar.ec = 5
	mov	pr.rot = 1 << 16
	;;
pipelined_axpy_turn:
(p16)	ldfd	f32 = [r16], 8
(p16)	ldfd	f40 = [r14], 8
(p18)	fma.d	f50 = f34, f8, f42
(p20)	stfd	[r15] = f52, 8
	br.ctop.sptk.few pipelined_axpy_turn
	;;
	mov	ar.lc = r17
	mov	pr = r18, -1
	br.ret.sptk.many rp
	.endp	pipelined_axpy

// long pipelined_length(const char *text): strlen by a while loop that loads one turn ahead, speculatively
	.global	pipelined_length
	.proc	pipelined_length
pipelined_length:
	.prologue
	alloc	r2 = ar.pfs, 1, 7, 0, 8
	.save	pr, r18
	mov	r18 = pr
	.body
	mov	r15 = in0
	mov	r8 = -1
	;;
	mov	ar.ec = 1
	mov	pr.rot = 1 << 16
	;;
	ld1	r33 = [r15], 1
	cmp.eq	p17, p0 = r0, r0
	;;
pipelined_length_turn:
	ld1.s	r32 = [r15], 1
	cmp.ne	p17, p0 = r33, r0
	adds	r8 = 1, r8
	;;
(p17)	br.wtop.sptk.few pipelined_length_turn
	;;
	mov	pr = r18, -1
	br.ret.sptk.many rp
	.endp	pipelined_length

// long counted(long count): br.cloop
	.global	counted
	.proc	counted
counted:
	.prologue
	alloc	r2 = ar.pfs, 1, 0, 0, 0
	.save	ar.lc, r17
	mov	r17 = ar.lc
	.body
	adds	r16 = -1, in0
	mov	r8 = 0
	;;
	mov	ar.lc = r16
	;;
counted_turn:
	adds	r8 = 3, r8
	br.cloop.sptk.few counted_turn
	;;
	mov	ar.lc = r17
	br.ret.sptk.many rp
	.endp	counted
