// The beginning of a bare machine's processor, and its interruption handlers.
//
// A processor starts here with physical addressing. It asks for its number, maps the first 16 MB and the processor
// interrupt block one to one, takes 128 kB for its stack (from above) and its backing store (from below), and calls
// main(number, processors) in virtual mode with interruptions collected; what main returns ends the machine.
// Interruptions that are not expected end it with exit code 100 plus the vector's number. The parts of it that C code uses
// are declared in machine.h.

	.explicit
	.set HYPERCALL, 0x5ede
	.set EXIT, 0
	.set IDENTIFY, 5
	.set STACK_LOG2, 17
	// 16 MB, unless the build asks for more.
	.ifndef IDENTITY_PAGE_LOG2
	.set IDENTITY_PAGE_LOG2, 24
	.endif
	// present, write-back, accessed, dirty, privilege level 0, read, write and execute
	.set IDENTITY_ENTRY, 0x661
	// The 16 MB with the processor interrupt block, and the memory attribute of devices.
	.set DEVICES, 0xfe000000
	.set UNCACHEABLE, 4 << 2
	// psr: ic, dt, rt, it, bn
	.set STATUS, 1 << 13 | 1 << 17 | 1 << 27 | 1 << 36 | 1 << 44

	.section .text.start, "ax"
	.global _start
	.proc _start
_start:
	mov r15 = IDENTIFY
	;;
	break.m HYPERCALL	// r8: number, r9: processors
	;;
	mov r10 = ((1 << 8) | (14 << 2))
	movl r11 = 1 << 61
	mov r14 = (IDENTITY_PAGE_LOG2 << 2)
	movl r15 = IDENTITY_ENTRY
	;;
	mov rr[r0] = r10
	add r10 = 1 << 8, r10
	;;
	mov rr[r11] = r10
	mov cr.itir = r14
	mov cr.ifa = r0
	;;
	srlz.d
	;;
	itr.i itr[r0] = r15
	;;
	itr.d dtr[r0] = r15
	movl r10 = DEVICES
	movl r11 = DEVICES | IDENTITY_ENTRY | UNCACHEABLE
	mov r14 = 1
	;;
	mov cr.ifa = r10
	;;
	itr.d dtr[r14] = r11
	;;
	srlz.i
	movl r2 = interruption_vectors
	;;
	mov cr.iva = r2
	movl r2 = STATUS
	movl r3 = virtual
	;;
	mov cr.ipsr = r2
	mov cr.iip = r3
	mov cr.ifs = r0
	;;
	rfi
	;;
virtual:
	alloc r2 = ar.pfs, 0, 0, 2, 0
	mov ar.rsc = 0
	shl r3 = r8, STACK_LOG2
	movl gp = __gp
	movl r10 = stacks
	;;
	add r10 = r3, r10
	movl r11 = (1 << STACK_LOG2) - 16
	;;
	mov ar.bspstore = r10
	add sp = r11, r10
	;;
	mov ar.rnat = r0
	mov ar.rsc = 3
	mov out0 = r8
	mov out1 = r9
	br.call.sptk.many rp = main
	;;
	mov r15 = EXIT
	;;
	break.m HYPERCALL
	;;
	.endp _start

// long hypercall(function, first, second, third)
	.text
	.global hypercall
	.proc hypercall
hypercall:
	alloc r2 = ar.pfs, 4, 0, 0, 0
	mov r15 = in0
	mov r8 = in1
	mov r9 = in2
	mov r10 = in3
	;;
	break.m HYPERCALL
	;;
	br.ret.sptk.many rp
	;;
	.endp hypercall

// The interruption vector table: 20 vectors of 64 bundles, then 48 of 16.
	.macro unexpected number
	mov r15 = EXIT
	mov r8 = 100 + \number
	;;
	break.m HYPERCALL
	;;
	.endm

	.section .text.vectors, "ax"
	.balign 32768
	.global interruption_vectors
interruption_vectors:
	.set vector, 0
	.rept 4
	.org interruption_vectors + vector * 0x400
	unexpected vector
	.set vector, vector + 1
	.endr

	.org interruption_vectors + 0x1000
// Data references to region 1: page n is where page_table[n] says. What another processor has changed while this one
// inserts the old entry is purged again.
	mov r22 = pr
	mov r16 = cr.ifa
	movl r18 = page_table
	;;
	extr.u r17 = r16, 14, 8
	;;
	shladd r17 = r17, 3, r18
	;;
	ld8 r19 = [r17]
	;;
	itc.d r19
	mov r20 = (14 << 2)
	;;
	srlz.d
	ld8.acq r21 = [r17]
	;;
	cmp.ne p6, p0 = r19, r21
	;;
(p6)	ptc.l r16, r20
	;;
	mov pr = r22, -1
	rfi
	;;

	.set vector, 5
	.rept 7
	.org interruption_vectors + vector * 0x400
	unexpected vector
	.set vector, vector + 1
	.endr

	.org interruption_vectors + 0x3000
// External interrupts: counts them for this processor, which kernel register 0 numbers.
	mov r16 = cr.ivr
	mov r17 = ar.k0
	movl r18 = interrupts
	;;
	shladd r17 = r17, 3, r18
	;;
	srlz.d
	ld8 r19 = [r17]
	;;
	mov cr.eoi = r0
	add r19 = 1, r19
	;;
	srlz.d
	st8.rel [r17] = r19
	rfi
	;;

	.set vector, 13
	.rept 7
	.org interruption_vectors + vector * 0x400
	unexpected vector
	.set vector, vector + 1
	.endr
	.set vector, 20
	.rept 48
	.org interruption_vectors + 0x5000 + (vector - 20) * 0x100
	unexpected vector
	.set vector, vector + 1
	.endr
	.org interruption_vectors + 32768

	.set PROCESSORS_MAX, 16
	.comm stacks, PROCESSORS_MAX << STACK_LOG2, 16384
	.comm page_table, 256 * 8, 16
	.comm interrupts, PROCESSORS_MAX * 8, 16
