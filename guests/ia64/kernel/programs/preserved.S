// long preserved(long depth, const struct preserved_values *values, long way)
//
// Calls itself `depth` times, each frame with known values in its registers, puts the values given into the preserved
// registers, and enters the kernel: with `way` 0 by a reference to nothing, which ends the process; otherwise by the system call
// `way`, with the arguments that `values` gives. Answers what that answers; the preserved registers are as before then.
//
// Stacked registers of the frame at a depth d: r35 to r44 = d << 8 | 35 .. 44, but r40 at depth 3, which is NaT.

#include <asm/unistd.h>

#define VALUE_ARGUMENTS 0
#define VALUE_R4 24
#define VALUE_B1 56
#define VALUE_LC 96
#define VALUE_PR 104
#define VALUE_UNAT 112
#define VALUE_F2 120
#define SAVED_SIZE 464

	.text
	.global	preserved
	.proc	preserved
preserved:
	.prologue
	.save	ar.pfs, r45
	alloc	r45 = ar.pfs, 3, 13, 3, 0
	.save	rp, r46
	mov	r46 = rp
	.body
	cmp.eq	p6, p0 = r0, r32
	cmp.eq	p8, p0 = 3, r32
	shl	r14 = r32, 8
	;;
	.irp	register, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44
	adds	r\register = \register, r14
	.endr
	;;
(p8)	ld8.s	r40 = [r0]
	adds	r48 = -1, r32
	mov	r49 = r33
	mov	r50 = r34
(p6)	br.cond.dpnt.few 1f
	;;
	br.call.sptk.many rp = preserved
3:	br.cond.sptk.few 2f				// a bundle of its own: a call returns to the next one
	;;
1:	br.call.sptk.many rp = enter
	;;
2:	mov	ar.pfs = r45
	mov	rp = r46
	br.ret.sptk.many rp
	.endp	preserved

	.proc	enter
enter:
	.prologue
	.save	ar.pfs, r35
	alloc	r35 = ar.pfs, 3, 5, 3, 0
	.fframe	SAVED_SIZE
	adds	sp = -SAVED_SIZE, sp
	.save	ar.unat, r36
	mov	r36 = ar.unat
	.save	ar.lc, r37
	mov	r37 = ar.lc
	.save	pr, r38
	mov	r38 = pr
	.body
	;;
	adds	r14 = 16, sp
	adds	r15 = 24, sp
	;;
	.mem.offset 0, 0; st8.spill [r14] = r4, 16
	.mem.offset 8, 0; st8.spill [r15] = r5, 16
	mov	r16 = b1
	mov	r17 = b2
	;;
	.mem.offset 0, 0; st8.spill [r14] = r6, 16
	.mem.offset 8, 0; st8.spill [r15] = r7, 16
	mov	r18 = b3
	mov	r19 = b4
	;;
	st8	[r14] = r16, 16
	st8	[r15] = r17, 16
	mov	r20 = b5
	mov	r39 = ar.unat
	;;
	st8	[r14] = r18, 16
	st8	[r15] = r19, 16
	;;
	st8	[r14] = r20
	adds	r14 = 112, sp
	adds	r15 = 128, sp
	;;
	.macro	pairs what:vararg
	.irp	pair, "f2, f3", "f4, f5", "f16, f17", "f18, f19", "f20, f21", "f22, f23", "f24, f25", "f26, f27", "f28, f29", "f30, f31"
	\what	\pair
	.endr
	.endm
	.macro	save_pair a, b
	stf.spill [r14] = \a, 32
	stf.spill [r15] = \b, 32
	;;
	.endm
	.macro	restore_pair a, b
	ldf.fill \a = [r14], 32
	ldf.fill \b = [r15], 32
	;;
	.endm
	.macro	set_pair a, b
	ldf8	\a = [r14], 16
	ldf8	\b = [r15], 16
	;;
	.endm
	pairs	save_pair

	adds	r14 = VALUE_R4, r33
	adds	r15 = VALUE_R4 + 8, r33
	;;
	ld8	r4 = [r14], 16
	ld8	r5 = [r15], 16
	;;
	ld8	r6 = [r14], 16
	ld8	r7 = [r15], 16
	;;
	ld8	r16 = [r14], 16
	ld8	r17 = [r15], 16
	;;
	ld8	r18 = [r14], 16
	ld8	r19 = [r15], 16
	mov	b1 = r16
	mov	b2 = r17
	;;
	ld8	r20 = [r14], 16
	ld8	r21 = [r15], 16				// lc
	mov	b3 = r18
	mov	b4 = r19
	;;
	ld8	r22 = [r14], 16				// predicates
	ld8	r23 = [r15], 16				// unat
	mov	b5 = r20
	mov	ar.lc = r21
	;;
	mov	ar.unat = r23
	mov	pr = r22, 0x1003e			// p1 to p5, p16 to p63
	adds	r15 = 8, r14
	;;
	pairs	set_pair
	ld8.s	r6 = [r0]				// NaT
	adds	r14 = 8, r33
	adds	r16 = 16, r33
	mov	r15 = r34
	cmp.eq	p6, p0 = r0, r34
	;;
	ld8	r40 = [r33]
	ld8	r41 = [r14]
	ld8	r42 = [r16]
(p6)	ld8	r14 = [r0]
	break.i	0x100000
	;;
	cmp.eq	p6, p0 = -1, r10
	adds	r14 = 16, sp
	adds	r15 = 24, sp
	mov	ar.unat = r39
	;;
(p6)	sub	r8 = r0, r8
	ld8.fill r4 = [r14], 16
	ld8.fill r5 = [r15], 16
	;;
	ld8.fill r6 = [r14], 16
	ld8.fill r7 = [r15], 16
	;;
	ld8	r16 = [r14], 16
	ld8	r17 = [r15], 16
	;;
	ld8	r18 = [r14], 16
	ld8	r19 = [r15], 16
	mov	b1 = r16
	mov	b2 = r17
	;;
	ld8	r20 = [r14]
	mov	b3 = r18
	mov	b4 = r19
	adds	r14 = 112, sp
	adds	r15 = 128, sp
	;;
	mov	b5 = r20
	pairs	restore_pair
	mov	ar.unat = r36
	mov	ar.lc = r37
	mov	pr = r38, -2
	mov	ar.pfs = r35
	.restore sp
	adds	sp = SAVED_SIZE, sp
	br.ret.sptk.many rp
	.endp	enter
