// long residue(void): all registers that a system call leaves behind beyond this function's own, or-ed together: the stacked
// ones, and those that a call destroys. Zero from a kernel that clears them.
// long gate_residue(long number, void *first): those that a call by `epc` leaves behind in r16 to r31. Negative if an address of the
// kernel's may be among them.

#include <asm/unistd.h>

#include "layout.h"

	.macro	also registers:vararg
	.irp	register, \registers
	or	r14 = r14, r\register
	;;
	.endr
	.endm

	.text
	.global	residue
	.proc	residue
residue:
	alloc	r14 = ar.pfs, 0, 0, 0, 0		// what the caller passed is its own
	mov	r15 = __NR_getppid
	;;
	break.i	0x100000
	;;
	alloc	r32 = ar.pfs, 0, 96, 0, 0
	or	r14 = r2, r3
	mov	r9 = b7
	;;
	or	r14 = r14, r9
	;;
	.irp	register, 6, 7, 8, 9, 10, 11
	getf.exp r2 = f\register
	getf.sig r3 = f\register
	;;
	or	r2 = r2, r3
	;;
	or	r14 = r14, r2
	.endr
	;;
	also	16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	also	33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56
	also	57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80
	also	81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100, 101, 102, 103, 104
	also	105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127
	mov	r8 = r14
	mov	ar.pfs = r32
	br.ret.sptk.many rp
	.endp	residue

	.global	gate_residue
	.proc	gate_residue
gate_residue:
	alloc	r34 = ar.pfs, 2, 1, 2, 0
	movl	r14 = GATE_ADDRESS
	mov	r15 = r32
	;;
	mov	b7 = r14
	mov	r35 = r33
	mov	r36 = r0
	br.call.sptk.many b6 = b7
	;;
	mov	r14 = r0
	;;
	also	16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	mov	r8 = r14
	mov	ar.pfs = r34
	br.ret.sptk.many rp
	.endp	gate_residue
