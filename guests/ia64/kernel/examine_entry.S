// void examine_undescribed(struct program_registers *registers): program_registers(current, 0, registers), through a function
// that no unwind table has (there is no .proc). For the tests of unwind.c.

#include "layout.h"

	.text
	.align	16
	.global	examine_undescribed
	.type	examine_undescribed, @function
examine_undescribed:
	alloc	r33 = ar.pfs, 1, 2, 3, 0
	mov	r34 = b0
	;;
	mov	r35 = r13
	mov	r36 = r0
	mov	r37 = r32
	br.call.sptk.many b0 = program_registers
	;;
	mov	ar.pfs = r33
	mov	b0 = r34
	br.ret.sptk.many b0
