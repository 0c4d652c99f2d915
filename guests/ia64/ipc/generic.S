// The gate page begins here: the generic path, and what is not message passing.
//
// A program calls one of the versions on the gate page with
//     r9 = to whom   r10 = from whom it wants the answer   r11 = tag   r14 = timeouts
//     r16 to r23 = the first eight words, the others in its control block
// and returns with r9 = from whom, and the tag and the words as that thread sent them. What stays as it was: sp, gp, tp,
// rp, the register stack, the predicates, ar.pfs, ar.rsc, ar.unat, and the user mask.
//
// The generic path has nothing to do with how fast messages ought to be: assembly saves the program's state in the
// thread's control block and the message in the program's, goes to the kernel's stacks and calls C (generic.c), which
// passes the message and may switch to another thread in the middle of that; assembly restores the state of the
// program of the thread that comes back from there.

#include "arguments.h"
#include "layout.h"

	.section .text.gate, "ax"
	.align	PAGE_SIZE
	.global	gate_page
gate_page:

	.global	ipc_generic
	.proc	ipc_generic
ipc_generic:
{ .mib
	mov	r30 = ar.rsc
	mov	r31 = pr
	epc
	;;
}
	rsm	PSR_I
	;;
	// Where the fast paths go that are not fast: privileged, without interrupts, r30 = ar.rsc, r31 = predicates.
	.global	ipc_slow
ipc_slow:
	test_arguments
(p6)	br.cond.spnt.few not_a_thing
	;;
	mov	r2 = KR_CURRENT
	flushrs
	;;
	mov	ar.rsc = 0
	adds	r24 = TCB_RSC, r2
	adds	r25 = TCB_GP, r2
	;;
	mov	r26 = ar.bspstore
	mov	r27 = ar.pfs
	;;
	mov	r28 = ar.rnat
	mov	r29 = ar.unat
	;;
	st8	[r24] = r30, 16				// rsc
	st8	[r25] = gp, 16
	mov	r30 = psr
	;;
	st8	[r24] = r27, 16				// pfs
	st8	[r25] = r26, 16				// bspstore
	mov	r27 = rp
	;;
	st8	[r24] = r28, 16				// rnat
	st8	[r25] = r29, 16				// unat
	;;
	st8	[r24] = r31, 16				// predicates
	st8	[r25] = r30, 16				// psr
	;;
	st8	[r24] = sp, 16
	st8	[r25] = r27, TCB_UTCB - TCB_RP		// rp
	;;
	st8	[r24] = tp
	ld8	r25 = [r25]				// the message goes to the program's control block
	;;
	adds	r24 = UTCB_MESSAGE, r25
	adds	r25 = UTCB_MESSAGE + 8, r25
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
	movl	r27 = TCB_SIZE - 16
	;;
	mov	ar.bspstore = r26
	add	sp = r27, r2
	movl	gp = __gp
	movl	r28 = ipc
	;;
	mov	ar.rnat = r0
	mov	b6 = r28
	;;
	mov	ar.rsc = 3
	alloc	r29 = ar.pfs, 0, 0, 4, 0
	;;
	mov	out0 = r2
	mov	out1 = r9
	mov	out2 = r10
	mov	out3 = r14
	br.call.sptk.many rp = b6
	;;
	// Back to the program of the current thread, with what is in its control block.
	.global	return_to_program
return_to_program:
	alloc	r29 = ar.pfs, 0, 0, 0, 0
	mov	ar.rsc = 0
	mov	r2 = KR_CURRENT
	;;
	loadrs						// nothing of the kernel's stays in the register stack
	adds	r24 = TCB_RSC, r2
	adds	r25 = TCB_GP, r2
	;;
	ld8	r30 = [r24], 16				// rsc
	ld8	gp = [r25], 16
	;;
	ld8	r27 = [r24], 16				// pfs
	ld8	r26 = [r25], 16				// bspstore
	;;
	ld8	r28 = [r24], 16				// rnat
	ld8	r29 = [r25], 16				// unat
	mov	ar.pfs = r27
	;;
	mov	ar.bspstore = r26
	ld8	r31 = [r24], 16				// predicates
	ld8	r26 = [r25], 16				// psr
	;;
	mov	ar.rnat = r28
	mov	ar.unat = r29
	ld8	sp = [r24], 16
	ld8	r27 = [r25], TCB_UTCB - TCB_RP		// rp
	;;
	mov	psr.l = r26
	mov	rp = r27
	ld8	tp = [r24], TCB_FROM - TCB_TP
	ld8	r25 = [r25]				// the message is in the program's control block
	;;
	ld8	r9 = [r24]				// from whom
	adds	r24 = UTCB_MESSAGE, r25
	adds	r25 = UTCB_MESSAGE + 8, r25
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
	;;
	ld8	r23 = [r24]
	;;
	srlz.d
	mov	pr = r31, -1
	mov	ar.rsc = r30
	invala						// another thread's advanced loads
	;;
	ssm	PSR_I
	br.ret.sptk.many rp
	;;
	// Back to the program as it was, to meet itself what it would have the kernel meet.
not_a_thing:
	movl	r2 = consume - gate_page + GATE_ADDRESS
	mov	ar.rsc = r30
	mov	pr = r31, -1
	;;
	mov	b6 = r2
	ssm	PSR_I
	br.ret.sptk.many b6
	;;
consume:
	.irp	argument, r9, r10, r11, r14, r16, r17, r18, r19, r20, r21, r22, r23, gp, sp, tp
	mov	b6 = \argument
	;;
	.endr
	br.sptk.many ipc_generic
	.endp	ipc_generic

// void switch_context(struct tcb *next): goes on with `next` where it left the kernel, and returns when somebody switches here.
	.global	switch_context
	.proc	switch_context
switch_context:
	.regstk	1, 0, 0, 0
	mov	r31 = r32				// the thread to go on with
	mov	r2 = KR_CURRENT
	mov	r30 = ar.pfs
	;;
	alloc	r14 = ar.pfs, 0, 0, 0, 0
	adds	sp = -CONTEXT_SIZE, sp
	mov	r29 = rp
	;;
	flushrs
	adds	r24 = CONTEXT_R4, sp
	adds	r25 = CONTEXT_R4 + 8, sp
	mov	r28 = ar.unat
	;;
	mov	ar.rsc = 0
	.mem.offset 0, 0
	st8.spill [r24] = r4, 16
	.mem.offset 8, 0
	st8.spill [r25] = r5, 16
	mov	r14 = b1
	;;
	.mem.offset 16, 0
	st8.spill [r24] = r6
	.mem.offset 24, 0
	st8.spill [r25] = r7
	mov	r15 = b2
	;;
	mov	r26 = ar.bspstore
	adds	r24 = CONTEXT_BSPSTORE, sp
	adds	r25 = CONTEXT_RNAT, sp
	mov	r16 = b3
	;;
	mov	r27 = ar.rnat
	mov	r20 = ar.unat
	mov	r17 = b4
	mov	r18 = b5
	;;
	st8	[r24] = r26, 16				// bspstore
	st8	[r25] = r27, 16				// rnat
	mov	r19 = pr
	;;
	st8	[r24] = r30, 16				// pfs
	st8	[r25] = r29, 16				// rp
	mov	r21 = ar.lc
	;;
	st8	[r24] = r28, 16				// unat
	st8	[r25] = r20, 16				// of the spilled registers
	;;
	st8	[r24] = r19, 16				// predicates
	st8	[r25] = r21, 16				// lc
	;;
	st8	[r24] = r14, 16				// b1
	st8	[r25] = r15, 16				// b2
	;;
	st8	[r24] = r16, 16				// b3
	st8	[r25] = r17				// b4
	;;
	st8	[r24] = r18				// b5
	adds	r26 = TCB_CONTINUATION, r2
	adds	r27 = TCB_KERNEL_SP, r2
	movl	r14 = switched
	;;
	st8	[r26] = r14
	st8	[r27] = sp
	adds	r16 = TCB_SPACE, r2
	;;
	ld8	r16 = [r16]				// this thread's space
	.global	continue_with
continue_with:						// r31 = the thread, r16 = the space there is
	adds	r24 = TCB_SPACE, r31
	adds	r25 = TCB_REGION, r31
	adds	r26 = TCB_LOCAL, r31
	;;
	ld8	r24 = [r24]
	ld8	r25 = [r25]
	ld8	r26 = [r26]
	;;
	mov	KR_CURRENT = r31
	cmp.ne	p6, p0 = r16, r24
	;;
	mov	KR_UTCB = r26
(p6)	mov	KR_SPACE = r24
(p6)	mov	rr[r0] = r25
	;;
(p6)	srlz.i
	adds	r26 = TCB_CONTINUATION, r31
	adds	r27 = TCB_KERNEL_SP, r31
	;;
	ld8	r26 = [r26]
	ld8	sp = [r27]
	;;
	mov	b6 = r26
	br.sptk.many b6
	;;
switched:						// here again: sp is this thread's kernel stack
	adds	r24 = CONTEXT_BSPSTORE, sp
	adds	r25 = CONTEXT_RNAT, sp
	mov	ar.rsc = 0
	;;
	loadrs
	ld8	r26 = [r24], 16
	ld8	r27 = [r25], 16
	;;
	ld8	r30 = [r24], 16				// pfs
	ld8	r29 = [r25], 16				// rp
	mov	ar.bspstore = r26
	;;
	ld8	r28 = [r24], 16				// unat
	ld8	r20 = [r25], 16				// of the spilled registers
	mov	ar.rnat = r27
	;;
	ld8	r19 = [r24], 16				// predicates
	ld8	r21 = [r25], 16				// lc
	mov	ar.unat = r20
	;;
	mov	ar.rsc = 3
	ld8	r14 = [r24], 16				// b1
	ld8	r15 = [r25], 16				// b2
	mov	ar.pfs = r30
	mov	rp = r29
	;;
	ld8	r16 = [r24], 16				// b3
	ld8	r17 = [r25], 16				// b4
	mov	b1 = r14
	mov	b2 = r15
	;;
	ld8	r18 = [r24]				// b5
	mov	b3 = r16
	mov	b4 = r17
	adds	r24 = CONTEXT_R4, sp
	adds	r25 = CONTEXT_R4 + 8, sp
	;;
	ld8.fill r4 = [r24], 16
	ld8.fill r5 = [r25], 16
	mov	b5 = r18
	mov	ar.lc = r21
	;;
	ld8.fill r6 = [r24]
	ld8.fill r7 = [r25]
	mov	pr = r19, -1
	;;
	mov	ar.unat = r28
	adds	sp = CONTEXT_SIZE, sp
	br.ret.sptk.many rp
	.endp	switch_context

// void begin_with(struct tcb *first): the first thread, from the code that starts the machine.
	.global	begin_with
	.proc	begin_with
begin_with:
	mov	r31 = r32
	mov	r16 = r0
	br.sptk.many continue_with
	.endp	begin_with

// void save_floating_point(struct tcb *thread), load_floating_point: the registers that calls preserve.
	.macro	floating_point operation
	.irp	register, f2, f3, f4, f5, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31
	\operation \register
	;;
	.endr
	.endm

	.macro	save register
	stf.spill [r14] = \register, 16
	.endm

	.macro	load register
	ldf.fill \register = [r14], 16
	.endm

	.global	save_floating_point
	.proc	save_floating_point
save_floating_point:
	adds	r14 = TCB_FLOATING_POINT, r32
	;;
	floating_point save
	br.ret.sptk.many rp
	.endp	save_floating_point

	.global	load_floating_point
	.proc	load_floating_point
load_floating_point:
	adds	r14 = TCB_FLOATING_POINT, r32
	;;
	floating_point load
	br.ret.sptk.many rp
	.endp	load_floating_point

// void purge_page(uint64_t region, uint64_t address): forgets the translation of a page of another space, or of this one.
	.global	purge_page
	.proc	purge_page
purge_page:
	mov	r14 = rr[r0]
	mov	r15 = PAGE_SHIFT << 2
	;;
	mov	rr[r0] = r32
	;;
	srlz.d
	;;
	ptc.l	r33, r15
	;;
	mov	rr[r0] = r14
	;;
	srlz.i
	;;
	br.ret.sptk.many rp
	.endp	purge_page

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
