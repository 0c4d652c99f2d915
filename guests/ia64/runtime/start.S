// Where a program begins: finds its global pointer and arguments, calls `main`, and leaves with its answer.
//
// Linux enters with sp 16 bytes below the argument count (the scratch area every frame owes its callee), the
// register backing store ready, and gp undefined. The floating-point status register is set to the value of the software
// conventions (all traps masked, status field 0 rounding to nearest in the format each instruction names), which Linux
// also sets and simpler systems leave to the program.

	.text
	.global	_start
	.proc	_start
_start:
	.prologue
	.save	rp, r0
	.body
{ .mii
	alloc	r2 = ar.pfs, 0, 0, 3, 0
	nop.i	0
	mov	r3 = ip
}
{ .mlx
	adds	r14 = 16, sp
	movl	gp = @gprel(_start)
	;;
}
	movl	r15 = 0x9804c0270033f
	;;
	mov	ar.fpsr = r15
	sub	gp = r3, gp
	ld8	out0 = [r14], 8
	;;
	mov	out1 = r14
	shladd	out2 = out0, 3, r14
	;;
	adds	out2 = 8, out2
	br.call.sptk.many rp = main#
	;;
	mov	out0 = r8
	br.call.sptk.many rp = leave#
	;;
	break.b	0
	.endp	_start
