// A function that is changed while it is in use, and what it is changed to: each variant returns its number.

	.explicit
	.macro variant number
{	.mib
	mov r8 = \number
	nop.i 0
	br.ret.sptk.many rp
	;;
}
	.endm

	.text
	.balign 32
	.global patched
	.proc patched
patched:
	variant 0
	.endp patched

	.section .rodata
	.balign 16
	.global variants
variants:
	.irp number, 0, 1, 2, 3, 4, 5, 6, 7
	variant \number
	.endr
