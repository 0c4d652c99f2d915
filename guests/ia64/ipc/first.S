// The fast path as one first writes it: the eight steps one after the other, each instruction behind the one it needs,
// not a thought about what any of them costs. See generic.S for the convention.

#include "layout.h"

	.section .text.gate.fast, "ax"
	.global	ipc_first
	.proc	ipc_first
ipc_first:
	// 1. Privilege.
{ .mib
	nop.m	0
	nop.i	0
	epc
	;;
}
	// 2. The control blocks: r2 = this thread's, r3 = the receiver's.
	mov	r2 = KR_CURRENT
	;;
	extr.u	r24 = r9, TCB_SHIFT, 8
	movl	r3 = tcbs
	;;
	shl	r24 = r24, TCB_SHIFT
	;;
	add	r3 = r3, r24
	;;
	ld8	r24 = [r3]				// identity
	;;
	adds	r25 = TCB_STATE, r3
	;;
	ld8	r25 = [r25]
	;;
	adds	r26 = TCB_PARTNER, r3
	;;
	ld8	r26 = [r26]
	;;
	ld8	r27 = [r2]				// this thread's identity
	;;
	// 3. Is this the case that is fast?
	cmp.ne	p6, p0 = r24, r9			// no such thread
	;;
(p6)	br.cond.spnt.few ipc_slow
	;;
	cmp.ne	p6, p0 = STATE_WAITING, r25
	;;
(p6)	br.cond.spnt.few ipc_slow
	;;
	cmp.eq	p6, p7 = ANYBODY, r26
	;;
(p7)	cmp.ne.unc p8, p0 = r26, r27			// waits for somebody else
	;;
(p8)	br.cond.spnt.few ipc_slow
	;;
	cmp.ne	p6, p0 = r9, r10			// wants the answer from somebody else
	;;
(p6)	br.cond.spnt.few ipc_slow
	;;
	cmp.ltu	p6, p0 = WORDS_MAX, r11			// more than fits in registers
	;;
(p6)	br.cond.spnt.few ipc_slow
	;;
	cmp.ne	p6, p0 = r0, r14			// a timeout
	;;
(p6)	br.cond.spnt.few ipc_slow
	;;
	adds	r24 = TCB_PENDING, r2
	;;
	ld8	r24 = [r24]
	;;
	adds	r25 = TCB_PENDING, r3
	;;
	ld8	r25 = [r25]
	;;
	or	r24 = r24, r25
	;;
	cmp.ne	p6, p0 = r0, r24
	;;
(p6)	br.cond.spnt.few ipc_slow
	;;
	// 4. The message is in registers.
	// 5. The register stack, and the other registers of a thread.
	flushrs
	;;
	mov	ar.rsc = 0
	;;
	mov	r24 = ar.bspstore
	;;
	mov	r25 = ar.rnat
	;;
	mov	r26 = rp
	;;
	mov	r28 = ar.pfs
	;;
	adds	r29 = TCB_SP, r2
	;;
	st8	[r29] = sp, 8
	;;
	st8	[r29] = r26, 8				// rp
	;;
	st8	[r29] = r28, 8				// pfs
	;;
	st8	[r29] = r24, 8				// bspstore
	;;
	st8	[r29] = r25				// rnat
	;;
	adds	r29 = TCB_SP, r3
	;;
	ld8	sp = [r29], 8
	;;
	ld8	r26 = [r29], 8
	;;
	mov	rp = r26
	;;
	ld8	r28 = [r29], 8
	;;
	mov	ar.pfs = r28
	;;
	ld8	r24 = [r29], 8
	;;
	ld8	r25 = [r29]
	;;
	mov	ar.bspstore = r24
	;;
	mov	ar.rnat = r25
	;;
	loadrs						// nothing of the sender's stays in the register stack
	;;
	mov	ar.rsc = RSC_PROGRAM
	;;
	// 6. The address space.
	adds	r24 = TCB_SPACE, r3
	;;
	ld8	r24 = [r24]
	;;
	mov	KR_SPACE = r24
	;;
	adds	r24 = TCB_REGION, r3
	;;
	ld8	r24 = [r24]
	;;
	mov	rr[r0] = r24
	;;
	srlz.d
	;;
	// 7. Who runs and who waits.
	adds	r24 = TCB_STATE, r2
	;;
	mov	r25 = STATE_WAITING
	;;
	st8	[r24] = r25, 8
	;;
	st8	[r24] = r10				// partner
	;;
	adds	r24 = TCB_STATE, r3
	;;
	st8	[r24] = r0
	;;
	mov	KR_CURRENT = r3
	;;
	// 8. Back, as the receiver.
	mov	r8 = 0
	mov	r9 = r27
	br.ret.sptk.many rp
	.endp	ipc_first
