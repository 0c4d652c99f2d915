// Loops around one system call, as tight as a C library's own stub is.
//
// void loop_break(long count, long number, long first, long second)
// void loop_epc(long count, long number, long first, long second)
// void loop_empty(long count, long number, long first, long second)

#define LOOP(name, call) \
	.global	name; \
	.proc	name; \
name: \
	.prologue; \
	.save	ar.pfs, r36; \
	alloc	loc0 = ar.pfs, 4, 3, 2, 0; \
	.save	ar.lc, r37; \
	mov	loc1 = ar.lc; \
	.save	rp, r38; \
	mov	loc2 = rp; \
	.body; \
	adds	in0 = -1, in0; \
	movl	r14 = 0xa000000000000000; \
	;; \
	mov	ar.lc = in0; \
	mov	b7 = r14; \
	;; \
1:	mov	r15 = in1; \
	mov	out0 = in2; \
	mov	out1 = in3; \
	;; \
	call; \
	;; \
	movl	r14 = 0xa000000000000000; \
	;; \
	mov	b7 = r14; \
	br.cloop.sptk.few 1b; \
	;; \
	mov	ar.lc = loc1; \
	mov	ar.pfs = loc0; \
	mov	rp = loc2; \
	br.ret.sptk.many rp; \
	.endp	name

	.text
	LOOP(loop_break, break.i 0x100000)
	LOOP(loop_epc, br.call.sptk.many b6 = b7)
	LOOP(loop_empty, nop.i 0)
