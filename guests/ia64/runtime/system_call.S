// Linux/ia64 system calls: number in r15, arguments in the output registers, `break 0x100000`.
// The kernel answers in r8; r10 is -1 when r8 is an error number. It keeps what a call keeps, so not r2 or r3.

#include <asm/unistd.h>

	.text

// long system_call(long number, ...)
	.global	system_call
	.proc	system_call
system_call:
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
	;;
	break.i	0x100000
	;;
	cmp.eq	p6, p0 = -1, r10
	;;
(p6)	sub	r8 = r0, r8
	mov	ar.pfs = loc0
	br.ret.sptk.many rp
	.endp	system_call

// long thread_clone(long flags, void *stack, long size, int *parent, int *child, void *tls)
//
// The child begins with an empty register frame at the bottom of the stack given, its sp 16 bytes below the top, where
// the parent has left a function (as the address of its descriptor) and its argument.
	.global	thread_clone
	.proc	thread_clone
thread_clone:
	.prologue
	.save	ar.pfs, r38
	alloc	loc0 = ar.pfs, 6, 1, 6, 0
	.body
	mov	r15 = __NR_clone2
	mov	out0 = in0
	mov	out1 = in1
	mov	out2 = in2
	mov	out3 = in3
	mov	out4 = in4
	mov	out5 = in5
	;;
	break.i	0x100000
	;;
	cmp.eq	p6, p0 = -1, r10
	cmp.ne	p7, p0 = 0, r8
	;;
(p6)	sub	r8 = r0, r8
(p7)	mov	ar.pfs = loc0
(p7)	br.ret.sptk.many rp
	;;
	alloc	r2 = ar.pfs, 0, 0, 1, 0
	mov	r14 = sp
	;;
	ld8	r15 = [r14], 8
	;;
	ld8	out0 = [r14]
	ld8	r16 = [r15], 8
	;;
	ld8	gp = [r15]
	mov	b6 = r16
	br.call.sptk.many rp = b6
	;;
	mov	r15 = __NR_exit
	mov	out0 = 0
	;;
	break.i	0x100000
	;;
	.endp	thread_clone
