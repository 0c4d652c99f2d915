// Where each CPU begins: pins the kernel's translations, switches to virtual addresses, and calls `start` on its idle
// task's stack.
//
// A CPU arrives in physical mode at privilege level 0 (PSR is zero, nothing is translated). It leaves with
// PSR.ic, dt, rt and it set, on register bank 1, interrupts disabled.

#include "layout.h"
#include "assembly.h"

	.section .text.boot, "ax"
	.global boot
	.proc	boot
boot:
	rsm	PSR_IC | PSR_I
	mov	ar.rsc = 0
	mov	r15 = 5				// hypercall: which CPU is this?
	;;
	srlz.i
	break.m	BREAK_HYPERCALL
	;;
	mov	r20 = r8			// its number
	cmp.leu	p6, p7 = PROCESSORS, r8
	;;
(p6)	mov	r15 = 7				// hypercall: a CPU that this kernel does not use stops
(p6)	break.m	BREAK_HYPERCALL
	;;
	// Regions 5 to 7 belong to the kernel: no walker, large pages.
	mov	r16 = GRANULE_SHIFT << 2
	mov	r17 = REGION_PINNED
	;;
1:	shl	r18 = r17, REGION_SHIFT
	dep	r19 = r17, r16, RID_SHIFT, 8
	;;
	mov	rr[r18] = r19
	adds	r17 = 1, r17
	;;
	cmp.geu	p6, p0 = REGION_KERNEL, r17
(p6)	br.cond.sptk 1b
	;;
	srlz.d
	;;
	// The kernel's granule, for instructions and data.
	movl	r16 = KERNEL_BASE
	mov	r17 = KERNEL_SIZE_SHIFT << 2
	movl	r18 = PTE_KERNEL
	mov	r19 = ITR_KERNEL
	;;
	mov	cr.ifa = r16
	mov	cr.itir = r17
	;;
	itr.i	itr[r19] = r18
	;;
	itr.d	dtr[r19] = r18			// DTR_KERNEL has the same number
	;;
	// The gate page, which programs may execute.
	movl	r16 = GATE_ADDRESS
	movl	r18 = gate_page - KERNEL_BASE + PTE_PRESENT + PTE_ACCESSED + PTE_DIRTY + PTE_GATE
	mov	r17 = PAGE_SHIFT << 2
	mov	r19 = ITR_GATE
	;;
	mov	cr.ifa = r16
	mov	cr.itir = r17
	;;
	itr.i	itr[r19] = r18
	;;
	// This CPU's page, at the same address on each.
	movl	r16 = PER_CPU_ADDRESS
	movl	r18 = per_cpu_pages - KERNEL_BASE + PTE_KERNEL
	shl	r21 = r20, PER_CPU_SHIFT
	mov	r17 = PER_CPU_SHIFT << 2
	mov	r19 = DTR_PER_CPU
	;;
	add	r18 = r18, r21
	mov	cr.ifa = r16
	mov	cr.itir = r17
	;;
	itr.d	dtr[r19] = r18
	;;
	// Interruptions, and what a speculative load may defer.
	movl	r16 = interruption_vectors
	movl	r17 = 0x7f00
	;;
	mov	cr.iva = r16
	mov	cr.dcr = r17
	// On to virtual addresses.
	movl	r16 = 1f
	movl	r17 = PSR_IC | PSR_DT | PSR_RT | (WORD(1) << PSR_IT_BIT) | (WORD(1) << PSR_BN_BIT)
	;;
	mov	cr.iip = r16
	mov	cr.ipsr = r17
	mov	cr.ifs = r0
	mov	r8 = r20			// r16 to r31 change bank
	;;
	srlz.i
	;;
	rfi
	;;
1:	movl	gp = __gp
	movl	r13 = idle_tasks
	shl	r14 = r8, TASK_SHIFT
	movl	r15 = 0x9804c0270033f		// all floating-point traps masked
	;;
	add	r13 = r13, r14
	mov	ar.fpsr = r15
	;;
	mov	KR_CURRENT = r13
	mov	r14 = TASK_BACKING_STORE
	mov	r12 = TASK_SIZE - 32
	;;
	add	r14 = r14, r13
	add	r12 = r12, r13
	;;
	mov	ar.bspstore = r14
	;;
	mov	ar.rnat = r0
	;;
	mov	ar.rsc = 3
	alloc	r2 = ar.pfs, 0, 0, 1, 0
	;;
	mov	out0 = r8
	br.call.sptk.many rp = start
	;;
	break.b	0
	.endp	boot
