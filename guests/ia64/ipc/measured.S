// The fast path scheduled by measured latencies, from the same instructions as scheduled.S. What takes long begins first
// (ar.rsc, 13 cycles to the next register of the RSE; the current thread and its space, 12) and what is left is done
// meanwhile. From the moment the receiver's backing store is set, 12 cycles pass to loadrs; the region register, 14 to srlz.d,
// fits beside them, and the processor status, 5. No load follows a store to its line within 3 cycles, and nothing
// references memory 5 cycles behind the region register. The numbers on the right count issue groups' cycles without
// the two that flushrs and loadrs take themselves. See generic.S for the convention.

#include "layout.h"

	.section .text.gate.fast, "ax"
	.global	ipc_measured
	.proc	ipc_measured
ipc_measured:
{ .mib
	mov	r30 = ar.rsc				// 0: kept for the slow path
	extr.u	r2 = r9, NUMBER_SHIFT, TCBS_SHIFT
	epc						// 1. privilege
	;;
}
{ .mmi
	mov	r3 = KR_CURRENT				// 1: 2. this thread
	add	r4 = r9, r10				// no argument is a NaT
	shl	r6 = r2, TCB_SHIFT
}
{ .mlx
	add	r5 = r17, r18
	movl	r7 = tcbs
	;;
}
{ .mmi
	mov	ar.rsc = 0				// 2
	add	r8 = r7, r6				// the receiver
	zxt2	r15 = r11
}
{ .mmi
	add	r4 = r4, r11
	add	r5 = r5, r19
	add	r2 = r22, r23
	;;
}
{ .mmi
	mov	r6 = KR_SPACE				// 3: and its space
	adds	r7 = TCB_PARTNER, r8
	adds	r24 = TCB_RESOURCES, r8
}
{ .mmi
	add	r4 = r4, r14
	add	r5 = r5, r20
	add	r2 = r2, gp
	;;
}
{ .mmi
	ld8.s	r26 = [r7]				// 4: whom the receiver waits for
	ld8.s	r27 = [r24], TCB_SPACE - TCB_RESOURCES	// whether it has more to exchange
	adds	r25 = TCB_STATE, r8
}
{ .mmi
	add	r4 = r4, r16
	add	r5 = r5, r21
	add	r2 = r2, sp
	;;
}
{ .mmi
	ld8.s	r7 = [r8]				// 5: identity
	ld8.s	r28 = [r25]				// state
	mov	r31 = pr				// kept for the slow path
}
{ .mmi
	cmp.eq	p6, p7 = r0, r0				// 3. fast until something says otherwise: p7
	add	r2 = r2, tp
	add	r4 = r4, r5
	;;
}
{ .mmi
	ld8.s	r5 = [r24]				// 6: its space
	cmp.eq	p8, p9 = ANYBODY, r26
	zxt2	r25 = r14
}
{ .mmi
	cmp.eq	p10, p11 = ANYBODY, r10
	cmp.ltu	p12, p0 = WORDS_IN_REGISTERS, r15
	add	r4 = r4, r2
	;;
}
{ .mmi
	flushrs						// 7
	rsm	PSR_I
	cmp.eq.and.orcm p6, p7 = r9, r7			// there is such a thread
}
{ .mmi
	cmp.eq.and.orcm p6, p7 = STATE_WAITING, r28	// it waits
(p11)	cmp.eq.and.orcm p6, p7 = r9, r10		// the answer shall be the receiver's
(p12)	cmp.ne.and.orcm p6, p7 = r0, r0			// words in registers, and nothing else
	;;
}
{ .mmi
	mov	r2 = psr				// 8
	cmp.eq.and.orcm p6, p7 = r0, r25		// this thread waits for the answer
	tnat.nz.or.andcm p7, p6 = r4
}
{ .mmi
	cmp.eq.and.orcm p6, p7 = r0, r27		// neither has more to exchange
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	mov	r4 = ar.unat				// 9
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	ld8	r25 = [r3]				// 13: this thread's identity
	adds	r24 = TCB_REGION, r8
	adds	r7 = TCB_RESOURCES, r3
}
{ .mmi
	adds	r15 = TCB_SENDERS, r3
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	ld8	r27 = [r7]				// 14
	ld8	r28 = [r15]				// whoever wants to send to it
(p9)	cmp.eq.and.orcm p6, p7 = r26, r25		// for this one or any
}
{ .mmi
	adds	r29 = TCB_GP, r3
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	ld8.s	r7 = [r24]				// 15: its region
	mov	r15 = ar.bspstore			// 5. the sender's state
(p10)	cmp.eq.and.orcm p6, p7 = r0, r28		// or anybody's, and nobody has one
}
{ .mib
	cmp.eq.and.orcm p6, p7 = r0, r27
	cmp.ne.and.orcm p6, p7 = r5, r6			// in spaces of their own
(p7)	br.cond.spnt.few ipc_slow
	;;
}
{ .mmi
	mov	rr[r0] = r7				// 16
	st8	[r29] = gp, 16				// gp
	adds	r27 = TCB_LOCAL, r8
}
{ .mmi
	adds	r24 = TCB_RSC, r3
	adds	r26 = TCB_RSC, r8
	adds	r6 = TCB_GP, r8
	;;
}
{ .mmi
	mov	r7 = ar.rnat				// 17
	st8	[r24] = r30, 16				// rsc
	mov	r9 = r25				// 8. back, as the receiver
}
{ .mmi
	ld8	gp = [r6], 16				// gp
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	ld8	r25 = [r6], 16				// 18: bspstore
	mov	KR_SPACE = r5				// 6. the address space
	mov	r28 = ar.pfs
	;;
}
{ .mmi
	ld8	r5 = [r6], 16				// 19: unat
	mov	ar.bspstore = r25
	nop.i	0
	;;
}
{ .mmi
	mov	KR_CURRENT = r8				// 20
	st8	[r24] = r28, 16				// pfs
	nop.i	0
}
{ .mmi
	ld8	r25 = [r6], 16				// psr
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	nop.m	0					// 21
	nop.m	0
	mov	r28 = rp
	;;
}
{ .mmi
	mov	psr.l = r25				// 22
	st8	[r24] = r7, 16				// rnat
	nop.i	0
	;;
}
{ .mmi
	mov	ar.unat = r5				// 23
	st8	[r24] = r31, 16				// predicates
	nop.i	0
}
{ .mmi
	ld8	r7 = [r26], 16				// the receiver's: rsc
	ld8	r25 = [r6]				// rp
	nop.i	0
	;;
}
{ .mmi
	st8	[r24] = sp, 16				// 24: sp
	ld8	r5 = [r26], 16				// pfs
	mov	rp = r25
}
{ .mmi
	adds	r6 = TCB_STATE, r3
	mov	r14 = STATE_WAITING
	nop.i	0
	;;
}
{ .mmi
	ld8	r25 = [r27]				// 25: its control block
	st8	[r24] = tp				// tp
	mov	ar.pfs = r5
}
{ .mmi
	ld8	r3 = [r26], 16				// rnat
	st8	[r6] = r14, TCB_PARTNER - TCB_STATE	// 7. waits
	nop.i	0
	;;
}
{ .mmi
	ld8	r5 = [r26], 16				// 26: predicates
	mov	ar.rnat = r3
	adds	r27 = TCB_STATE, r8
}
{ .mlx
	st8	[r6] = r10				// for whom
	movl	r24 = return_to_program
	;;
}
{ .mmi
	st8	[r29] = r15, 16				// 27: bspstore
	ld8	sp = [r26], 16				// sp
	mov	pr = r5, -1
}
{ .mmi
	st8	[r27] = r0				// runs
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	mov	KR_UTCB = r25				// 28
	st8	[r29] = r4, 16				// unat
	nop.i	0
}
{ .mmi
	ld8	tp = [r26]				// tp
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	st8	[r29] = r2, 16				// 29: psr
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	srlz.d						// 30
	;;
	loadrs						// 31: nothing of the sender's stays in the register stack
	nop.i	0
}
{ .mmi
	ssm	PSR_I
	st8	[r29] = r28, 16				// rp
	nop.i	0
	;;
}
{ .mmi
	mov	ar.rsc = r7				// 32
	st8	[r29] = r24				// where it goes on when the generic path answers
	nop.i	0
}
{ .mib
	invala						// nor of its advanced loads
	nop.i	0
	br.ret.sptk.many rp
	;;
}
	.endp	ipc_measured
