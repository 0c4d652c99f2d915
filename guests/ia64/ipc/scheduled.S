// The fast path scheduled by what public documentation says: every instruction as early as its operands allow when
// each takes a cycle, the longest chain first, as many to a group as there are units, bundles chosen so that no group
// splits; one branch for all the checks, whose results are gathered by parallel compares. It knows nothing of the
// latencies between system instructions. Loads before the branch are speculative, as the receiver's name may be a NaT. See
// generic.S for the convention.

#include "layout.h"

	.section .text.gate.fast, "ax"
	.global	ipc_scheduled
	.proc	ipc_scheduled
ipc_scheduled:
{ .mmi
	add	r3 = r9, r10				// no argument is a NaT
	add	r4 = r17, r18
	extr.u	r2 = r9, NUMBER_SHIFT, TCBS_SHIFT
	;;
}
{ .mmi
	add	r3 = r3, r11
	add	r4 = r4, r19
	shl	r5 = r2, TCB_SHIFT
}
{ .mlx
	add	r7 = r22, r23
	movl	r6 = tcbs
	;;
}
{ .mib
	add	r2 = r6, r5				// the receiver
	add	r3 = r3, r14
	epc						// 1. privilege
}
{ .mmi
	mov	r8 = KR_CURRENT				// 2. this thread
	add	r4 = r4, r20
	add	r7 = r7, gp
	;;
}
{ .mmi
	adds	r15 = TCB_STATE, r2
	adds	r5 = TCB_PARTNER, r2
	adds	r6 = TCB_RESOURCES, r2
}
{ .mmi
	add	r3 = r3, r16
	add	r4 = r4, r21
	add	r7 = r7, sp
	;;
}
{ .mmi
	ld8.s	r24 = [r5]				// whom the receiver waits for
	ld8.s	r25 = [r6], TCB_SPACE - TCB_RESOURCES	// whether it has more to exchange
	adds	r26 = TCB_RESOURCES, r8
}
{ .mmi
	adds	r27 = TCB_SENDERS, r8
	add	r7 = r7, tp
	add	r3 = r3, r4
	;;
}
{ .mmi
	flushrs
	mov	r5 = KR_SPACE				// and its space
	zxt2	r4 = r11
}
{ .mmi
	add	r3 = r3, r7
	nop.m	0
	nop.i	0
	;;
}
{ .mii
	ld8.s	r7 = [r2]				// identity
	mov	r31 = pr				// kept for the slow path
	cmp.eq	p6, p7 = r0, r0				// 3. fast until something says otherwise: p7
}
{ .mmi
	cmp.eq	p8, p9 = ANYBODY, r24
	cmp.eq	p10, p11 = ANYBODY, r10
	cmp.ltu	p12, p0 = WORDS_IN_REGISTERS, r4
	;;
}
{ .mmi
	mov	r30 = ar.rsc				// kept for the slow path
	ld8.s	r4 = [r15]				// state
	cmp.eq.and.orcm p6, p7 = r9, r7			// there is such a thread
}
{ .mmi
(p11)	cmp.eq.and.orcm p6, p7 = r9, r10		// the answer shall be the receiver's
(p12)	cmp.ne.and.orcm p6, p7 = r0, r0			// words in registers, and nothing else
	cmp.eq.and.orcm p6, p7 = r0, r25		// neither has more to exchange
	;;
}
{ .mmi
	rsm	PSR_I
	ld8.s	r7 = [r6]				// its space
	zxt2	r25 = r14
}
{ .mmi
	ld8	r15 = [r8]				// this thread's identity
	cmp.eq.and.orcm p6, p7 = STATE_WAITING, r4	// it waits
	nop.i	0
	;;
}
{ .mmi
	ld8	r4 = [r26]
	ld8	r6 = [r27]				// whoever wants to send to it
	tnat.nz.or.andcm p7, p6 = r3
}
{ .mmi
(p9)	cmp.eq.and.orcm p6, p7 = r24, r15		// for this one or any
	cmp.eq.and.orcm p6, p7 = r0, r25		// this thread waits for the answer
	cmp.ne.and.orcm p6, p7 = r7, r5			// in spaces of their own
	;;
}
{ .mmi
(p10)	cmp.eq.and.orcm p6, p7 = r0, r6			// or anybody's, and nobody has one
	cmp.eq.and.orcm p6, p7 = r0, r4
	adds	r3 = TCB_RSC, r8
}
{ .mib
	adds	r5 = TCB_GP, r8
	adds	r24 = TCB_RSC, r2
(p7)	br.cond.spnt.few ipc_slow
	;;
}
{ .mmi
	mov	ar.rsc = 0
	st8	[r3] = r30, 16				// rsc
	mov	r6 = ar.pfs
}
{ .mmi
	ld8	r25 = [r24], 16				// the receiver's: rsc
	adds	r26 = TCB_REGION, r2
	adds	r4 = TCB_GP, r2
	;;
}
{ .mmi
	mov	r27 = ar.bspstore			// 5. the sender's state
	st8	[r5] = gp, 16				// gp
	adds	r29 = TCB_LOCAL, r2
}
{ .mmi
	ld8	gp = [r4], 16				// gp
	ld8	r28 = [r24], 16				// pfs
	mov	r9 = r15				// 8. back, as the receiver
	;;
}
{ .mmi
	mov	r15 = ar.rnat
	st8	[r3] = r6, 16				// pfs
	mov	ar.pfs = r28
}
{ .mmi
	invala						// nor of its advanced loads
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	mov	r28 = ar.unat
	st8	[r5] = r27, 16				// bspstore
	nop.i	0
}
{ .mmi
	ld8	r6 = [r4], 16				// bspstore
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	st8	[r3] = r15, 16				// rnat
	st8	[r5] = r28, 16				// unat
	nop.i	0
}
{ .mmi
	ld8	r27 = [r24], 16				// rnat
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	ld8	r28 = [r26]				// its region
	mov	ar.bspstore = r6
	nop.i	0
}
{ .mmi
	st8	[r3] = r31, 16				// predicates
	ld8	r15 = [r4], 16				// unat
	nop.i	0
	;;
}
{ .mmi
	mov	r6 = psr
	st8	[r3] = sp, 16				// sp
	nop.i	0
}
{ .mmi
	ld8	r26 = [r24], 16				// predicates
	ld8	r14 = [r4], 16				// psr
	nop.i	0
	;;
}
{ .mmi
	mov	ar.rnat = r27
	st8	[r5] = r6, 16				// psr
	mov	pr = r26, -1
}
{ .mmi
	ld8	sp = [r24], 16				// sp
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	mov	psr.l = r14
	st8	[r3] = tp				// tp
	mov	r6 = rp
}
{ .mmi
	ld8	tp = [r24]				// tp
	ld8	r26 = [r4]				// rp
	adds	r27 = TCB_STATE, r8
	;;
}
{ .mmi
	ld8	r4 = [r29]				// its control block
	mov	rr[r0] = r28
	mov	r3 = STATE_WAITING
}
{ .mlx
	st8	[r5] = r6, 16				// rp
	movl	r8 = return_to_program
	;;
}
{ .mmi
	loadrs						// nothing of the sender's stays in the register stack
	mov	ar.unat = r15
	mov	rp = r26
}
{ .mmi
	st8	[r27] = r3, TCB_PARTNER - TCB_STATE	// 7. waits
	adds	r6 = TCB_STATE, r2
	nop.i	0
	;;
}
{ .mmi
	srlz.d
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	mov	ar.rsc = r25
	st8	[r5] = r8				// where it goes on when the generic path answers
	nop.i	0
	;;
}
{ .mmi
	mov	KR_SPACE = r7				// 6. the address space
	st8	[r27] = r10				// for whom
	nop.i	0
	;;
}
{ .mmi
	mov	KR_CURRENT = r2
	st8	[r6] = r0				// runs
	nop.i	0
	;;
}
{ .mmi
	mov	KR_UTCB = r4
	nop.m	0
	nop.i	0
	;;
}
{ .mib
	ssm	PSR_I
	nop.i	0
	br.ret.sptk.many rp
	;;
}
	.endp	ipc_scheduled
