// The fast path scheduled by what public documentation says: every instruction as early as its operands allow when
// each takes a cycle, as many to a group as there are units, bundles chosen so that no group splits. It knows nothing
// of the latencies between system instructions. See generic.S for the convention.

#include "layout.h"

	.section .text.gate.fast, "ax"
	.global	ipc_scheduled
	.proc	ipc_scheduled
ipc_scheduled:
{ .mib
	mov	r2 = KR_CURRENT				// this thread
	extr.u	r24 = r9, TCB_SHIFT, 8
	epc
	;;
}
{ .mlx
	flushrs
	movl	r3 = tcbs
}
{ .mii
	cmp.ne	p6, p0 = r9, r10			// wants the answer from somebody else
	shl	r24 = r24, TCB_SHIFT
	mov	r26 = rp
	;;
}
{ .mmi
	mov	ar.rsc = 0
	add	r3 = r3, r24				// the receiver
	mov	r28 = ar.pfs
	;;
}
{ .mmi
	ld8	r24 = [r3]				// identity
	adds	r25 = TCB_STATE, r3
	adds	r29 = TCB_SP, r3
}
{ .mmb
	adds	r30 = TCB_BSPSTORE, r3
	adds	r31 = TCB_PENDING, r3
(p6)	br.cond.spnt.few ipc_slow
	;;
}
{ .mmi
	ld8	r25 = [r25]				// state
	ld8	r31 = [r31]
	cmp.ne	p7, p0 = r24, r9			// no such thread
}
{ .mib
	adds	r15 = TCB_SP, r2
	cmp.ltu	p6, p0 = WORDS_MAX, r11			// more than fits in registers
(p6)	br.cond.spnt.few ipc_slow
	;;
}
{ .mib
	cmp.ne	p8, p0 = STATE_WAITING, r25
	adds	r8 = TCB_PARTNER, r3
(p7)	br.cond.spnt.few ipc_slow
}
{ .mib
	ld8	r27 = [r2]				// this thread's identity
	cmp.ne	p6, p0 = r0, r14			// a timeout
(p6)	br.cond.spnt.few ipc_slow
	;;
}
{ .mib
	ld8	r8 = [r8]				// whom the receiver waits for
	adds	r24 = TCB_PENDING, r2
(p8)	br.cond.spnt.few ipc_slow
	;;
}
{ .mib
	ld8	r24 = [r24]
	cmp.eq	p8, p9 = ANYBODY, r8
	nop.b	0
	;;
}
{ .mib
	or	r24 = r24, r31
(p9)	cmp.ne.unc p7, p0 = r8, r27
(p7)	br.cond.spnt.few ipc_slow
	;;
}
{ .mib
	mov	r31 = ar.bspstore
	cmp.ne	p6, p0 = r0, r24
(p6)	br.cond.spnt.few ipc_slow
	;;
}
	// From here on it is this thread that waits.
{ .mmi
	mov	r14 = ar.rnat
	st8	[r15] = sp, 8
	adds	r25 = TCB_STATE, r2
	;;
}
{ .mmi
	st8	[r15] = r26, 8				// rp
	ld8	sp = [r29], 8
	mov	r8 = STATE_WAITING
	;;
}
{ .mmi
	st8	[r15] = r28, 8				// pfs
	ld8	r26 = [r29], 8
	adds	r24 = TCB_SPACE, r3
	;;
}
{ .mmi
	st8	[r15] = r31, 8				// bspstore
	ld8	r28 = [r29]
	mov	rp = r26
}
{ .mmi
	ld8	r31 = [r30], 8
	nop.m	0
	adds	r29 = TCB_REGION, r3
	;;
}
{ .mmi
	st8	[r15] = r14				// rnat
	ld8	r14 = [r30]
	mov	ar.pfs = r28
}
{ .mmi
	ld8	r24 = [r24]				// the page table
	mov	ar.bspstore = r31
	adds	r26 = TCB_STATE, r3
	;;
}
{ .mmi
	ld8	r29 = [r29]				// the region
	mov	ar.rnat = r14
	nop.i	0
}
{ .mmi
	st8	[r25] = r8, 8				// waits
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	loadrs						// nothing of the sender's stays in the register stack
	st8	[r25] = r10				// for the receiver
	nop.i	0
}
{ .mmi
	st8	[r26] = r0				// runs
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	mov	KR_SPACE = r24
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	mov	rr[r0] = r29
	nop.m	0
	nop.i	0
	;;
}
{ .mmi
	mov	KR_CURRENT = r3
	mov	r9 = r27
	mov	r8 = 0
	;;
}
	srlz.d
	;;
{ .mib
	mov	ar.rsc = RSC_PROGRAM
	nop.i	0
	br.ret.sptk.many rp
	;;
}
	.endp	ipc_scheduled
