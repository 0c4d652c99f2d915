// The first instructions, the two translation misses that can occur, and how C enters a thread.

#include "layout.h"

	.section .text.boot, "ax"
	.global boot
	.proc	boot
boot:
	rsm	PSR_IC
	mov	ar.rsc = 0
	;;
	srlz.i
	// No walker: regions 5 and 7 are pinned, region 0 is refilled by the handlers below.
	mov	r16 = 7 << 8 | KERNEL_SIZE_SHIFT << 2
	movl	r17 = KERNEL_BASE
	movl	r18 = GATE_ADDRESS
	mov	r19 = 5 << 8 | PAGE_SHIFT << 2
	;;
	mov	rr[r17] = r16
	mov	rr[r18] = r19
	;;
	srlz.d
	;;
	mov	r20 = KERNEL_SIZE_SHIFT << 2
	movl	r21 = PTE_KERNEL
	mov	cr.ifa = r17
	;;
	mov	cr.itir = r20
	;;
	itr.i	itr[r0] = r21
	;;
	itr.d	dtr[r0] = r21
	movl	r22 = gate_page - KERNEL_BASE + PTE_GATE
	mov	r20 = PAGE_SHIFT << 2
	mov	r23 = 1
	;;
	mov	cr.ifa = r18
	mov	cr.itir = r20
	;;
	itr.i	itr[r23] = r22
	;;
	movl	r16 = interruption_vectors
	movl	r17 = PSR_IC | 1 << 17 | 1 << 27 | 1 << 36 | 1 << 44 // dt, rt, it, bn
	movl	r18 = 1f
	;;
	mov	cr.iva = r16
	mov	cr.ipsr = r17
	mov	cr.iip = r18
	mov	cr.ifs = r0
	;;
	srlz.i
	;;
	rfi
	;;
1:	movl	gp = __gp
	mov	r16 = ALARM_VECTOR
	;;
	mov	cr.itv = r16
	mov	cr.tpr = r0
	;;
	srlz.d
	movl	r14 = tcbs + TCB_BACKING_STORE
	movl	r15 = tcbs + TCB_SIZE - 16
	;;
	mov	ar.bspstore = r14
	mov	sp = r15
	;;
	mov	ar.rnat = r0
	;;
	mov	ar.rsc = 3
	alloc	r2 = ar.pfs, 0, 0, 0, 0
	;;
	br.call.sptk.many rp = start
	;;
	.endp	boot

// The page of a program: its entry is in the current space's table.
	.macro	refill insert
	mov	r16 = cr.ifa
	mov	r17 = KR_SPACE
	;;
	extr.u	r18 = r16, PAGE_SHIFT, SPACE_SHIFT
	;;
	shladd	r17 = r18, 3, r17
	;;
	ld8	r19 = [r17]
	;;
	\insert	r19
	;;
	srlz.i
	;;
	rfi
	;;
	.endm

// Nothing else is expected: the machine ends, by the fault of a program or of the kernel.
	.macro	unexpected number
	mov	r16 = cr.ipsr
	mov	r15 = HYPERCALL_EXIT
	mov	r8 = END_UNEXPECTED + \number
	;;
	tbit.nz	p6, p0 = r16, PSR_CPL_SHIFT
	;;
(p6)	mov	r8 = END_EXCEPTION
	;;
	break.m	HYPERCALL
	;;
	.endm

	.section .text.vectors, "ax"
	.align	32768
	.global interruption_vectors
interruption_vectors:
	.set	vector, 0
	.rept	3
	.org	interruption_vectors + vector * 0x400
	unexpected vector
	.set	vector, vector + 1
	.endr
	.org	interruption_vectors + 0xc00
	refill	itc.i
	.org	interruption_vectors + 0x1000
	refill	itc.d
	.set	vector, 5
	.rept	7
	.org	interruption_vectors + vector * 0x400
	unexpected vector
	.set	vector, vector + 1
	.endr
	// A deadline is over: whoever runs goes the generic way when it passes a message, and sees to it.
	.org	interruption_vectors + 0x3000
	mov	r16 = KR_CURRENT
	mov	r17 = cr.ivr
	;;
	adds	r16 = TCB_RESOURCES, r16
	;;
	ld8	r17 = [r16]
	;;
	or	r17 = RESOURCE_ALARM, r17
	;;
	st8	[r16] = r17
	mov	cr.eoi = r0
	;;
	srlz.d
	;;
	rfi
	;;
	.set	vector, 13
	.rept	7
	.org	interruption_vectors + vector * 0x400
	unexpected vector
	.set	vector, vector + 1
	.endr
	.rept	48
	.org	interruption_vectors + 0x5000 + (vector - 20) * 0x100
	unexpected vector
	.set	vector, vector + 1
	.endr
	.org	interruption_vectors + 32768

// uint64_t hypercall(function, first, second)
	.text
	.global hypercall
	.proc	hypercall
hypercall:
	mov	r15 = r32
	mov	r8 = r33
	mov	r9 = r34
	;;
	break.m	HYPERCALL
	;;
	br.ret.sptk.many rp
	.endp	hypercall
