// The fast path scheduled by what public documentation says: every instruction as early as its operands allow when
// each takes a cycle, the longest chain first, as many to a group as there are units, bundles chosen so that no group
// splits; one branch for all the checks, whose results are gathered by parallel compares. It knows nothing of the
// latencies between system instructions. See generic.S for the convention.

#include "layout.h"

	.section .text.gate.fast, "ax"
	.global	ipc_scheduled
	.proc	ipc_scheduled
ipc_scheduled:
{ .mib
	mov	r30 = ar.rsc				// kept for the slow path
	extr.u	r2 = r9, TCB_SHIFT, TCBS_SHIFT
	epc						// 1. privilege
	;;
}
{ .mmi
	flushrs
	mov	r5 = KR_CURRENT				// 2. this thread
	shl	r3 = r2, TCB_SHIFT
}
{ .mlx
	mov	r6 = STATE_WAITING
	movl	r4 = tcbs
	;;
}
{ .mmi
	ld8	r15 = [r5]				// this thread's identity
	add	r2 = r4, r3				// the receiver
	mov	r31 = pr				// kept for the slow path
}
{ .mmi
	adds	r7 = TCB_PENDING, r5
	adds	r8 = TCB_SENDERS, r5
	cmp.eq	p6, p7 = r0, r0				// 3. fast until something says otherwise: p7
	;;
}
{ .mmi
	ld8	r25 = [r2]				// identity
	ld8	r26 = [r7]
	adds	r4 = TCB_STATE, r2
}
{ .mmi
	adds	r3 = TCB_PARTNER, r2
	adds	r24 = TCB_PENDING, r2
	cmp.eq	p10, p11 = ANYBODY, r10
	;;
}
{ .mmi
	rsm	PSR_I
	ld8	r27 = [r4]				// state
	cmp.eq.and.orcm p6, p7 = r9, r25		// there is such a thread
}
{ .mmi
	ld8	r7 = [r3], TCB_SPACE - TCB_PARTNER	// whom the receiver waits for
(p11)	cmp.eq.and.orcm p6, p7 = r9, r10		// the answer shall be the receiver's
	cmp.ltu	p12, p0 = WORDS_MAX, r11
	;;
}
{ .mmi
	ld8	r4 = [r24], TCB_REGION - TCB_PENDING	// whether it has something else to do
	ld8	r25 = [r8]				// whoever wants to send to it
	cmp.eq.and.orcm p6, p7 = STATE_WAITING, r27	// it waits
}
{ .mmi
	cmp.eq	p8, p9 = ANYBODY, r7
(p12)	cmp.ne.and.orcm p6, p7 = r0, r0			// the words are in registers
	cmp.eq.and.orcm p6, p7 = r0, r26
	;;
}
{ .mmi
(p9)	cmp.eq.and.orcm p6, p7 = r7, r15		// for this one or any
(p10)	cmp.eq.and.orcm p6, p7 = r0, r25		// or anybody's, and nobody has one
	zxt2	r8 = r14
}
{ .mmi
	cmp.eq.and.orcm p6, p7 = r0, r4			// and neither has something else to do
	adds	r26 = TCB_RSC, r5
	adds	r27 = TCB_GP, r5
	;;
}
{ .mmi
	mov	ar.rsc = 0
	cmp.eq.and.orcm p6, p7 = r0, r8			// this thread waits for the answer
	mov	r25 = ar.pfs
}
{ .mib
	adds	r4 = TCB_RSC, r2
	adds	r7 = TCB_GP, r2
(p7)	br.cond.spnt.few ipc_slow
	;;
}
{ .mmi
	st8	[r26] = r30, 16				// rsc
	st8	[r27] = gp, 16				// gp
	mov	r28 = rp
}
{ .mmi
	ld8	r8 = [r4], 16				// the receiver's: rsc
	ld8	gp = [r7], 16				// gp
	nop.i	0
	;;
}
{ .mmi
	mov	r29 = ar.bspstore			// 5. the sender's state
	st8	[r26] = r25, 16				// pfs
	nop.i	0
}
{ .mmi
	invala						// nor of its advanced loads
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	mov	r25 = ar.rnat
	st8	[r27] = r29, 16				// bspstore
	nop.i	0
	;;
}
{ .mmi
	mov	KR_CURRENT = r2
	st8	[r26] = r25, 16				// rnat
	nop.i	0
}
{ .mmi
	ld8	r29 = [r4], 16				// pfs
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	mov	KR_IDENTITY = r9
	st8	[r26] = r31, 16				// predicates
	mov	ar.pfs = r29
}
{ .mmi
	ld8	r25 = [r7], 16				// bspstore
	mov	r9 = r15				// 8. back, as the receiver
	nop.i	0
	;;
}
{ .mmi
	mov	r15 = ar.unat
	st8	[r26] = sp, 16				// sp
	nop.i	0
}
{ .mmi
	ld8	r29 = [r4], 16				// rnat
	ld8	r14 = [r7], 16				// unat
	nop.i	0
	;;
}
{ .mmi
	mov	ar.bspstore = r25
	st8	[r27] = r15, 16				// unat
	nop.i	0
	;;
}
{ .mmi
	ld8	r15 = [r24]				// and region
	mov	r25 = psr.um
	nop.i	0
}
{ .mmi
	st8	[r26] = tp				// tp
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	mov	ar.rnat = r29
	st8	[r27] = r25, 16				// user mask
	nop.i	0
}
{ .mmi
	ld8	r24 = [r4], 16				// predicates
	ld8	r26 = [r7], 16				// user mask
	nop.i	0
	;;
}
{ .mmi
	mov	rr[r0] = r15
	st8	[r27] = r28, 16				// rp
	mov	pr = r24, -1
}
{ .mmi
	ld8	sp = [r4], 16				// sp
	ld8	r25 = [r7]				// rp
	adds	r29 = TCB_STATE, r5
	;;
}
{ .mmi
	ld8	r5 = [r3]				// its page table
	ld8	tp = [r4]				// tp
	mov	rp = r25
}
{ .mlx
	mov	ar.unat = r14
	movl	r7 = return_to_program
	;;
}
{ .mmi
	loadrs						// nothing of the sender's stays in the register stack
	mov	psr.um = r26
	adds	r3 = TCB_STATE, r2
}
{ .mmi
	st8	[r29] = r6, TCB_PARTNER - TCB_STATE	// 7. waits
	nop.m	0
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
	mov	ar.rsc = r8
	st8	[r27] = r7				// where it goes on when the generic path answers
	nop.i	0
	;;
}
{ .mmi
	mov	KR_SPACE = r5				// 6. the address space
	st8	[r29] = r10				// for whom
	mov	r8 = r0
	;;
}
{ .mmb
	ssm	PSR_I
	st8	[r3] = r0				// runs
	br.ret.sptk.many rp
	;;
}
	.endp	ipc_scheduled
