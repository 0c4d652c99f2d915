// The beginning of a kernel that stays in physical mode: a stack, a register stack, and main.

	.explicit
	.set STACK_LOG2, 16

	.section .text.start, "ax"
	.global _start
	.proc _start
_start:
	alloc r2 = ar.pfs, 0, 0, 0, 0
	mov ar.rsc = 0
	movl gp = __gp
	movl r10 = stack
	movl r11 = (1 << STACK_LOG2) - 16
	;;
	mov ar.bspstore = r10
	add sp = r11, r10
	;;
	mov ar.rnat = r0
	mov ar.rsc = 3
	br.call.sptk.many rp = main
	;;
1:	br.sptk.few 1b
	;;
	.endp _start

// void firmware(procedure, first, second, third, fourth, 0, 0, 0): a procedure of SAL, as the gate of the firmware
// calls it, which goes on a bundle behind the break.
	.global firmware
	.proc firmware
firmware:
	alloc r2 = ar.pfs, 8, 0, 0, 0
	mov r15 = 0x101
	;;
	{ .mii
	break.m 0x5ede
	nop.i 0
	nop.i 0
	}
	;;
	{ .mib
	nop.m 0
	nop.i 0
	br.ret.sptk.many rp
	}
	;;
	.endp firmware
