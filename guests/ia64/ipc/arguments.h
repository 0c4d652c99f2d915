/* What the kernel looks at, keeps, or hands on must be values: not a thing (NaT) may cross from a program to the kernel or to
   another program. A sum is a value if all of its parts are. */

#ifndef ARGUMENTS_H
#define ARGUMENTS_H

// p6: whether one of a call's arguments, the words in registers, gp, sp or tp is not a thing. Takes r2 to r8.
	.macro	test_arguments
	add	r2 = r9, r10
	add	r3 = r11, r14
	add	r4 = r16, r17
	add	r5 = r18, r19
	;;
	add	r6 = r20, r21
	add	r7 = r22, r23
	add	r8 = gp, sp
	add	r2 = r2, r3
	;;
	add	r4 = r4, r5
	add	r6 = r6, r7
	add	r8 = r8, tp
	;;
	add	r2 = r2, r4
	add	r6 = r6, r8
	;;
	add	r2 = r2, r6
	;;
	tnat.nz	p6, p0 = r2
	.endm

#endif
