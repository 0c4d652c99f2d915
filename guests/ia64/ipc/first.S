// The fast path as one first writes it: the eight steps one after the other, loads and stores in pairs where two
// pointers walk over a control block, and not a thought about what any instruction costs. See generic.S for the
// convention.
//
// The comments that begin with `schedule:` are for `sidestep schedule --speculate`: what the generic path and the
// receiver do not look at; that two threads' control blocks and a program's backing store lie apart; that control
// blocks are pinned; that the kernel's memory is reached with any program's region and status; that the kernel fetches
// nothing by that region.

#include "arguments.h"
#include "layout.h"

	.section .text.gate.fast, "ax"
	.global	ipc_first
	.proc	ipc_first
ipc_first:
	// schedule: dead at ipc_slow: r2-r8, r15, r24-r29, p6-p15, ar.rsc, stack
	// schedule: dead at return: r2-r8, r14, r15, r24-r31
	// schedule: apart: r2, r3, stack
	// schedule: resident: r2, r3
	// schedule: addressing kept
	// schedule: fetching kept
	// 1. Privilege. What the checks need is kept, for the slow path as well.
{ .mib
	mov	r30 = ar.rsc
	mov	r31 = pr
	epc
	;;
}
	rsm	PSR_I
	;;
	test_arguments
(p6)	br.cond.spnt.few ipc_slow
	;;
	// 2. The control blocks: r2 = this thread's, r3 = the receiver's.
	mov	r2 = KR_CURRENT
	extr.u	r24 = r9, NUMBER_SHIFT, TCBS_SHIFT
	movl	r3 = tcbs
	;;
	shl	r24 = r24, TCB_SHIFT
	;;
	add	r3 = r3, r24
	;;
	ld8	r24 = [r3]				// identity
	adds	r25 = TCB_STATE, r3
	;;
	ld8	r25 = [r25]
	adds	r26 = TCB_PARTNER, r3
	;;
	ld8	r26 = [r26]
	adds	r27 = TCB_RESOURCES, r3
	;;
	ld8	r27 = [r27]
	adds	r5 = TCB_SPACE, r3
	;;
	ld8	r5 = [r5]
	;;
	ld8	r4 = [r2]				// this thread's identity
	adds	r28 = TCB_RESOURCES, r2
	;;
	ld8	r28 = [r28]
	adds	r29 = TCB_SENDERS, r2
	;;
	ld8	r29 = [r29]
	adds	r6 = TCB_SPACE, r2
	;;
	ld8	r6 = [r6]
	;;
	// 3. Is this the case that is fast?
	cmp.ne	p6, p0 = r24, r9			// no such thread
(p6)	br.cond.spnt.few ipc_slow
	;;
	cmp.ne	p6, p0 = STATE_WAITING, r25		// does not wait, or not for ever
(p6)	br.cond.spnt.few ipc_slow
	;;
	cmp.eq	p6, p7 = ANYBODY, r26
	;;
(p7)	cmp.ne.unc p8, p0 = r26, r4			// waits for somebody else
(p8)	br.cond.spnt.few ipc_slow
	;;
	cmp.eq	p6, p7 = ANYBODY, r10
	;;
(p7)	cmp.ne.unc p8, p0 = r9, r10			// wants the answer from somebody else
(p8)	br.cond.spnt.few ipc_slow
	;;
(p6)	cmp.ne.unc p8, p0 = r0, r29			// wants any message, and there is one
(p8)	br.cond.spnt.few ipc_slow
	;;
	extr.u	r24 = r11, TAG_TYPED_SHIFT, TAG_LABEL_SHIFT - TAG_TYPED_SHIFT
	;;
	cmp.ne	p6, p0 = r0, r24			// typed items, or flags
(p6)	br.cond.spnt.few ipc_slow
	;;
	and	r24 = TAG_UNTYPED, r11
	;;
	cmp.ltu	p6, p0 = WORDS_IN_REGISTERS, r24	// more than fits in registers
(p6)	br.cond.spnt.few ipc_slow
	;;
	zxt2	r24 = r14
	;;
	cmp.ne	p6, p0 = r0, r24			// does not wait for the answer, or not for ever
(p6)	br.cond.spnt.few ipc_slow
	;;
	or	r27 = r27, r28
	;;
	cmp.ne	p6, p0 = r0, r27			// one of them has more to exchange
(p6)	br.cond.spnt.few ipc_slow
	;;
	cmp.eq	p6, p0 = r5, r6				// in one space, where senders have other names
(p6)	br.cond.spnt.few ipc_slow
	;;
	// 4. The message is in registers.
	// 5. The register stack, and the other registers of a program.
	flushrs
	;;
	mov	ar.rsc = 0
	;;
	mov	r24 = ar.bspstore
	mov	r25 = ar.pfs
	;;
	mov	r26 = ar.rnat
	mov	r27 = rp
	;;
	mov	r28 = ar.unat
	;;
	mov	r29 = psr
	;;
	adds	r7 = TCB_RSC, r2
	adds	r6 = TCB_GP, r2
	;;
	st8	[r7] = r30, 16				// rsc
	st8	[r6] = gp, 16
	;;
	st8	[r7] = r25, 16				// pfs
	st8	[r6] = r24, 16				// bspstore
	;;
	st8	[r7] = r26, 16				// rnat
	st8	[r6] = r28, 16				// unat
	;;
	st8	[r7] = r31, 16				// predicates
	st8	[r6] = r29, 16				// psr
	;;
	st8	[r7] = sp, 16
	st8	[r6] = r27, 16				// rp
	movl	r24 = return_to_program
	;;
	st8	[r7] = tp
	st8	[r6] = r24				// continuation
	;;
	adds	r7 = TCB_RSC, r3
	adds	r6 = TCB_GP, r3
	;;
	ld8	r30 = [r7], 16				// rsc
	ld8	gp = [r6], 16
	;;
	ld8	r25 = [r7], 16				// pfs
	ld8	r24 = [r6], 16				// bspstore
	;;
	ld8	r26 = [r7], 16				// rnat
	ld8	r28 = [r6], 16				// unat
	;;
	ld8	r31 = [r7], 16				// predicates
	ld8	r29 = [r6], 16				// psr
	;;
	ld8	sp = [r7], 16
	ld8	r27 = [r6]				// rp
	;;
	ld8	tp = [r7]
	;;
	mov	ar.bspstore = r24
	mov	ar.pfs = r25
	;;
	mov	ar.rnat = r26
	mov	rp = r27
	;;
	mov	ar.unat = r28
	mov	pr = r31, -1
	;;
	mov	psr.l = r29
	;;
	loadrs						// nothing of the sender's stays in the register stack
	;;
	mov	ar.rsc = r30
	invala						// nor of its advanced loads
	;;
	// 6. The address space.
	adds	r24 = TCB_REGION, r3
	;;
	ld8	r24 = [r24]
	;;
	mov	KR_SPACE = r5
	;;
	mov	rr[r0] = r24
	;;
	srlz.i						// for loads and for what is fetched
	;;
	// 7. Who runs and who waits.
	adds	r24 = TCB_STATE, r2
	mov	r25 = STATE_WAITING
	;;
	st8	[r24] = r25, TCB_PARTNER - TCB_STATE
	;;
	st8	[r24] = r10
	adds	r24 = TCB_STATE, r3
	;;
	st8	[r24] = r0				// STATE_RUNNING
	;;
	mov	KR_CURRENT = r3
	adds	r24 = TCB_LOCAL, r3
	;;
	ld8	r24 = [r24]
	;;
	mov	KR_UTCB = r24
	;;
	// 8. Back, as the receiver.
	mov	r9 = r4
	ssm	PSR_I
	br.ret.sptk.many rp
	.endp	ipc_first
