// The gate page begins here: the generic path, and what is not message passing.
//
// A program calls `ipc` on the gate page with
//     r9 = to whom   r10 = from whom it wants the answer   r11 = tag: number of words   r14 = timeout, 0 for never
//     r16 to r23 = the words
// and returns in the other thread with r8 = 0 or an error, r9 = from whom, r11 and the words as sent. Everything else is
// destroyed but sp, gp, tp, and the register stack.
//
// The generic path has nothing to do with how fast messages ought to be: assembly saves the thread's state in its
// control block, goes to the kernel's stacks and calls C (generic.c), which says which thread runs next; assembly restores
// that one's.

#include "layout.h"

	.section .text.gate, "ax"
	.align	PAGE_SIZE
	.global	gate_page
gate_page:

	.global	ipc_generic
	.proc	ipc_generic
ipc_generic:
{ .mib
	nop.m	0
	nop.i	0
	epc
	;;
}
	.global	ipc_slow				// where the fast paths go that are not fast: already privileged
ipc_slow:
	mov	r2 = KR_CURRENT
	flushrs
	;;
	mov	ar.rsc = 0
	adds	r24 = TCB_SP, r2
	adds	r25 = TCB_RP, r2
	;;
	mov	r26 = rp
	mov	r27 = ar.pfs
	;;
	st8	[r24] = sp, 16
	st8	[r25] = r26, 16
	;;
	mov	r28 = ar.bspstore
	mov	r29 = ar.rnat
	;;
	st8	[r24] = r27, 16				// pfs
	st8	[r25] = r28, 16				// bspstore
	;;
	st8	[r24] = r29				// rnat
	st8	[r25] = gp
	adds	r24 = TCB_TAG, r2
	adds	r25 = TCB_WORDS, r2
	;;
	st8	[r24] = r11, 16
	st8	[r25] = r16, 16
	;;
	st8	[r24] = r17, 16
	st8	[r25] = r18, 16
	;;
	st8	[r24] = r19, 16
	st8	[r25] = r20, 16
	;;
	st8	[r24] = r21, 16
	st8	[r25] = r22
	;;
	st8	[r24] = r23
	adds	r26 = TCB_BACKING_STORE, r2
	;;
	mov	ar.bspstore = r26
	movl	r27 = TCB_SIZE - 16
	;;
	add	sp = r27, r2
	movl	gp = __gp
	movl	r28 = ipc
	;;
	mov	ar.rsc = 3
	mov	b6 = r28
	alloc	r29 = ar.pfs, 0, 0, 4, 0
	;;
	mov	out0 = r2
	mov	out1 = r9
	mov	out2 = r10
	mov	out3 = r14
	br.call.sptk.many rp = b6
	;;
	// r8 = the thread that runs next; with what it waits for already in its control block.
	.global	resume
resume:
	alloc	r29 = ar.pfs, 0, 0, 0, 0
	mov	ar.rsc = 0
	;;
	adds	r24 = TCB_SPACE, r8
	adds	r25 = TCB_REGION, r8
	mov	KR_CURRENT = r8
	;;
	ld8	r26 = [r24]
	ld8	r27 = [r25]
	;;
	mov	KR_SPACE = r26
	mov	rr[r0] = r27
	;;
	srlz.d
	adds	r24 = TCB_SP, r8
	adds	r25 = TCB_RP, r8
	;;
	ld8	sp = [r24], 16
	ld8	r26 = [r25], 16
	;;
	ld8	r27 = [r24], 16				// pfs
	ld8	r28 = [r25], 16				// bspstore
	mov	rp = r26
	;;
	ld8	r29 = [r24]				// rnat
	ld8	gp = [r25]
	loadrs
	;;
	mov	ar.bspstore = r28
	;;
	mov	ar.rnat = r29
	mov	ar.pfs = r27
	;;
	mov	ar.rsc = RSC_PROGRAM
	adds	r24 = TCB_TAG, r8
	adds	r25 = TCB_WORDS, r8
	;;
	ld8	r11 = [r24], 16
	ld8	r16 = [r25], 16
	;;
	ld8	r17 = [r24], 16
	ld8	r18 = [r25], 16
	;;
	ld8	r19 = [r24], 16
	ld8	r20 = [r25], 16
	;;
	ld8	r21 = [r24], 16
	ld8	r22 = [r25]
	adds	r26 = TCB_PARTNER, r8
	;;
	ld8	r23 = [r24]
	ld8	r9 = [r26]
	extr.u	r8 = r11, 32, 8				// the error
	br.ret.sptk.many rp
	.endp	ipc_generic

// void resume_thread(struct tcb *thread)
	.global	resume_thread
	.proc	resume_thread
resume_thread:
	mov	r8 = r32
	br.sptk.many resume
	.endp	resume_thread

// A hypercall for a program: r15 = function, r8 = argument.
	.global	gate_hypercall
	.proc	gate_hypercall
gate_hypercall:
{ .mib
	nop.m	0
	nop.i	0
	epc
	;;
}
	break.m	HYPERCALL
	;;
	br.ret.sptk.many rp
	.endp	gate_hypercall
