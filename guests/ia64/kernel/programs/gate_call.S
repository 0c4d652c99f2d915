// long gate_call(long number, ...): a system call by `epc` (gate.S of the kernel).

#include "layout.h"

	.text
	.global	gate_call
	.proc	gate_call
gate_call:
	.prologue
	.save	ar.pfs, r39
	alloc	loc0 = ar.pfs, 7, 1, 6, 0
	.body
	mov	r15 = in0
	mov	out0 = in1
	mov	out1 = in2
	mov	out2 = in3
	mov	out3 = in4
	mov	out4 = in5
	mov	out5 = in6
	movl	r14 = GATE_ADDRESS
	;;
	mov	b7 = r14
	;;
	br.call.sptk.many b6 = b7
	;;
	cmp.eq	p6, p0 = -1, r10
	mov	ar.pfs = loc0
	;;
(p6)	sub	r8 = r0, r8
	br.ret.sptk.many rp
	.endp	gate_call

// long gate_call_big_endian(long number): the same of a program that reads memory in big-endian order.

	.global	gate_call_big_endian
	.proc	gate_call_big_endian
gate_call_big_endian:
	.prologue
	.save	ar.pfs, r33
	alloc	loc0 = ar.pfs, 1, 1, 0, 0
	.body
	mov	r15 = in0
	movl	r14 = GATE_ADDRESS
	;;
	mov	b7 = r14
	sum	PSR_BE
	;;
	br.call.sptk.many b6 = b7
	;;
	rum	PSR_BE					// what went on by break comes back as it was
	mov	ar.pfs = loc0
	br.ret.sptk.many rp
	.endp	gate_call_big_endian
