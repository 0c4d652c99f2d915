// The fast path scheduled by measured latencies: it waits for nothing twice. What takes long begins first (ar.rsc, 13
// cycles to the next register of the RSE; the current thread, 12) and what is left is done meanwhile. From
// the moment the receiver's backing store is set, 12 cycles pass to loadrs; the region register, 14 to srlz.d, fits
// beside them. No load follows a store to its line within 3 cycles, and nothing references memory 5 cycles behind the region
// register. The numbers on the right are cycles. See generic.S for the convention.

#include "layout.h"

	.section .text.gate.fast, "ax"
	.global	ipc_measured
	.proc	ipc_measured
ipc_measured:
{ .mib
	mov	ar.rsc = 0				// 0; its level stays 3 here, which is as good
	extr.u	r24 = r9, TCB_SHIFT, 8
	epc
	;;
}
{ .mlx
	flushrs						// 2, the cycle before it is its own
	movl	r3 = tcbs
}
{ .mii
	mov	r2 = KR_CURRENT				// to 14
	shl	r24 = r24, TCB_SHIFT
	mov	r26 = rp
	;;
}
{ .mib
	add	r3 = r3, r24				// 3: the receiver
	cmp.ne	p6, p0 = r9, r10			// wants the answer from somebody else
(p6)	br.cond.spnt.few ipc_slow
}
{ .mib
	cmp.ltu	p7, p0 = WORDS_MAX, r11			// more than fits in registers
	mov	r28 = ar.pfs
(p7)	br.cond.spnt.few ipc_slow
	;;
}
{ .mmi
	ld8	r24 = [r3]				// 4: identity
	adds	r25 = TCB_STATE, r3
	adds	r8 = TCB_PARTNER, r3
}
{ .mib
	adds	r31 = TCB_PENDING, r3
	cmp.ne	p6, p0 = r0, r14			// a timeout
(p6)	br.cond.spnt.few ipc_slow
	;;
}
{ .mmi
	ld8	r25 = [r25]				// 5: state
	ld8	r8 = [r8]				// whom the receiver waits for
	adds	r29 = TCB_SPACE, r3
}
{ .mib
	adds	r30 = TCB_BSPSTORE, r3
	cmp.ne	p7, p0 = r24, r9			// no such thread
(p7)	br.cond.spnt.few ipc_slow
	;;
}
{ .mmi
	ld8	r31 = [r31]				// 6: pending
	ld8	r29 = [r29]				// the page table
	adds	r24 = TCB_REGION, r3
}
{ .mib
	nop.m	0
	cmp.ne	p6, p0 = STATE_WAITING, r25
(p6)	br.cond.spnt.few ipc_slow
	;;
}
{ .mmi
	ld8	r25 = [r30]				// 7: the receiver's backing store
	ld8	r24 = [r24]				// and region
	cmp.eq	p8, p9 = ANYBODY, r8
}
{ .mib
	nop.m	0
	cmp.ne	p7, p0 = r0, r31
(p7)	br.cond.spnt.few ipc_slow
	;;
}
{ .mmi
	mov	r31 = ar.bspstore			// 13, to 25
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	mov	r30 = ar.rnat				// 14, to 26
	ld8	r27 = [r2]				// this thread's identity
	adds	r15 = TCB_PENDING, r2
	;;
}
{ .mib
	ld8	r15 = [r15]				// 15
(p9)	cmp.ne.unc p6, p0 = r8, r27			// the receiver waits for somebody else
(p6)	br.cond.spnt.few ipc_slow
	;;
}
{ .mib
	nop.m	0					// 16
	cmp.ne	p7, p0 = r0, r15
(p7)	br.cond.spnt.few ipc_slow
}
	// From here on it is this thread that waits.
{ .mmi
	mov	rr[r0] = r24				// srlz.d not before 30; no reference at 21
	adds	r15 = TCB_SP, r2
	adds	r14 = TCB_SP, r3
	;;
}
{ .mmi
	mov	ar.bspstore = r25			// 17: loadrs not before 29
	st8	[r15] = sp, 8
	adds	r25 = TCB_STATE, r2
	;;
}
{ .mmi
	mov	KR_SPACE = r29				// 18
	st8	[r15] = r26, 8				// rp
	mov	r24 = STATE_WAITING
}
{ .mmi
	ld8	sp = [r14], 8
	nop.m	0
	adds	r29 = TCB_RNAT, r3
	;;
}
{ .mmi
	mov	KR_CURRENT = r3				// 19
	st8	[r15] = r28, 8				// pfs
	adds	r3 = TCB_STATE, r3
}
{ .mmi
	ld8	r26 = [r14], 8
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	ld8	r28 = [r14]				// 20
	ld8	r29 = [r29]
	mov	rp = r26
	;;
}
{ .mii
	nop.m	0					// 21
	mov	ar.pfs = r28
	mov	r9 = r27
	;;
}
{ .mmi
	st8	[r25] = r24, 8				// 22: waits
	st8	[r3] = r0				// runs
	mov	r8 = 0
	;;
}
{ .mmi
	mov	ar.rnat = r29				// 23
	st8	[r25] = r10				// for the receiver
	nop.i	0
	;;
}
{ .mmi
	st8	[r15] = r31, 8				// 25: bspstore
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	st8	[r15] = r30				// 26: rnat
	nop.m	0
	nop.i	0
	;;
}
	loadrs						// 29: nothing of the sender's stays in the register stack
	;;
	srlz.d						// 30
	;;
{ .mib
	mov	ar.rsc = RSC_PROGRAM			// 31
	nop.i	0
	br.ret.sptk.many rp
	;;
}
	.endp	ipc_measured
