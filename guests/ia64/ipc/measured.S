// The fast path scheduled by measured latencies: it waits for nothing twice. What takes long begins first (ar.rsc, 13
// cycles to the next register of the RSE; the current thread, 12) and what is left is done meanwhile. From the moment the
// receiver's backing store is set, 12 cycles pass to loadrs; the region register, 14 to invala, fits beside them. No load
// follows a store to its line within 3 cycles, nothing references memory 5 cycles behind the region register, and the user
// mask is written only where the two programs' differ. The numbers on the right count issue groups' cycles without the two
// that flushrs and loadrs take themselves. See generic.S for the convention.

#include "layout.h"

	.section .text.gate.fast, "ax"
	.global	ipc_measured
	.proc	ipc_measured
ipc_measured:
{ .mib
	mov	r30 = ar.rsc				// 0: kept for the slow path
	extr.u	r2 = r9, TCB_SHIFT, TCBS_SHIFT
	epc						// 1. privilege
	;;
}
{ .mmi
	flushrs						// 1
	mov	r3 = KR_CURRENT				// 2. this thread
	shl	r5 = r2, TCB_SHIFT
}
{ .mlx
	nop.m	0
	movl	r4 = tcbs
	;;
}
{ .mmi
	mov	ar.rsc = 0				// 2
	add	r2 = r4, r5				// the receiver
	zxt2	r6 = r14
	;;
}
{ .mmi
	rsm	PSR_I					// 3
	adds	r5 = TCB_STATE, r2
	mov	r31 = pr				// kept for the slow path
}
{ .mmi
	adds	r4 = TCB_PARTNER, r2
	adds	r7 = TCB_PENDING, r2
	cmp.eq	p10, p11 = ANYBODY, r10
	;;
}
{ .mmi
	ld8	r8 = [r5]				// 4: state
	ld8	r15 = [r4], TCB_SPACE - TCB_PARTNER	// whom the receiver waits for
	cmp.eq	p6, p7 = r0, r0				// 3. fast until something says otherwise: p7
}
{ .mmi
	mov	r24 = psr.um
	cmp.ltu	p12, p0 = WORDS_MAX, r11
	nop.i	0
	;;
}
{ .mmi
	ld8	r5 = [r2]				// 5: identity
	ld8	r25 = [r7], TCB_REGION - TCB_PENDING	// whether it has something else to do
	cmp.eq.and.orcm p6, p7 = STATE_WAITING, r8	// it waits
}
{ .mmi
	cmp.eq	p8, p9 = ANYBODY, r15
(p11)	cmp.eq.and.orcm p6, p7 = r9, r10		// the answer shall be the receiver's
(p12)	cmp.ne.and.orcm p6, p7 = r0, r0			// the words are in registers
	;;
}
{ .mmi
	ld8	r26 = [r4]				// 6: its page table
	ld8	r8 = [r7]				// and region
	cmp.eq.and.orcm p6, p7 = r9, r5			// there is such a thread
}
{ .mmi
	cmp.eq.and.orcm p6, p7 = r0, r6			// this thread waits for the answer
	cmp.eq.and.orcm p6, p7 = r0, r25		// and neither has something else to do
	nop.i	0
	;;
}
{ .mmi
	mov	r4 = ar.unat				// 10
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	ld8	r6 = [r3]				// 13: this thread's identity
	adds	r5 = TCB_PENDING, r3
	adds	r7 = TCB_SENDERS, r3
}
{ .mmi
	adds	r27 = TCB_RSC, r3
	adds	r25 = TCB_GP, r3
	nop.i	0
	;;
}
{ .mmi
	ld8	r28 = [r5]				// 14
	ld8	r29 = [r7]				// whoever wants to send to it
(p9)	cmp.eq.and.orcm p6, p7 = r15, r6		// for this one or any
}
{ .mmi
	st8	[r27] = r30, 16				// rsc
	st8	[r25] = gp, 16				// gp
	nop.i	0
	;;
}
{ .mmi
	mov	r7 = ar.bspstore			// 15: 5. the sender's state
(p10)	cmp.eq.and.orcm p6, p7 = r0, r29		// or anybody's, and nobody has one
	cmp.eq.and.orcm p6, p7 = r0, r28
}
{ .mib
	adds	r5 = TCB_GP, r2
	nop.i	0
(p7)	br.cond.spnt.few ipc_slow
	;;
}
{ .mmi
	ld8	gp = [r5], 16				// 16: gp
	mov	rr[r0] = r8
	adds	r28 = TCB_STATE, r3
}
{ .mlx
	mov	r29 = STATE_WAITING
	movl	r15 = return_to_program
	;;
}
{ .mmi
	mov	r3 = ar.rnat				// 17
	ld8	r8 = [r5], 16				// bspstore
	nop.i	0
}
{ .mmi
	st8	[r28] = r29, TCB_PARTNER - TCB_STATE	// 7. waits
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	ld8	r29 = [r5], 16				// 18: unat
	mov	ar.bspstore = r8
	nop.i	0
}
{ .mmi
	st8	[r28] = r10				// for whom
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	ld8	r28 = [r5], 16				// 19: user mask
	mov	KR_CURRENT = r2
	adds	r8 = TCB_RSC, r2
	;;
}
{ .mmi
	mov	KR_SPACE = r26				// 20: 6. the address space
	cmp.ne	p13, p0 = r28, r24			// writing it costs what follows 5 cycles
	nop.i	0
	;;
}
{ .mmi
(p13)	mov psr.um = r28				// 21
	nop.m	0
	mov	r26 = ar.pfs
	;;
}
{ .mmi
	ld8	r28 = [r8], 16				// 22: the receiver's: rsc
	mov	KR_IDENTITY = r9
	mov	r9 = r6					// 8. back, as the receiver
	;;
}
{ .mmi
	mov	ar.unat = r29				// 23
	st8	[r27] = r26, 16				// pfs
	nop.i	0
}
{ .mmi
	ld8	r6 = [r8], 16				// pfs
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	st8	[r27] = r3, 16				// 24: rnat
	ld8	r26 = [r8], 16				// rnat
	mov	r29 = rp
	;;
}
{ .mmi
	mov	ar.rnat = r26				// 25
	st8	[r27] = r31, 16				// predicates
	mov	ar.pfs = r6
}
{ .mmi
	ld8	r3 = [r8], 16				// predicates
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	st8	[r27] = sp, 16				// 26: sp
	ld8	sp = [r8], 16				// sp
	mov	pr = r3, -1
}
{ .mmi
	ld8	r6 = [r5]				// rp
	adds	r26 = TCB_STATE, r2
	nop.i	0
	;;
}
{ .mmi
	st8	[r25] = r7, 16				// 27: bspstore
	st8	[r27] = tp				// tp
	mov	rp = r6
}
{ .mmi
	ld8	tp = [r8]				// tp
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	st8	[r25] = r4, 16				// 28: unat
	st8	[r26] = r0				// runs
	mov	r8 = r0
	;;
}
{ .mmi
	st8	[r25] = r24, 16				// 29: user mask
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
	st8	[r25] = r29, 16				// rp
	nop.i	0
	;;
}
{ .mmi
	mov	ar.rsc = r28				// 32
	st8	[r25] = r15				// where it goes on when the generic path answers
	nop.i	0
}
{ .mib
	invala						// nor of its advanced loads
	nop.i	0
	br.ret.sptk.many rp
	;;
}
	.endp	ipc_measured
