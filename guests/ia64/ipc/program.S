// The programs that are measured: a sender that waits for each answer, and a receiver that answers. All programs have the same
// text pages in spaces of their own; what these two need to remember is on their stacks, as a message destroys the registers.
// And what the programs of the cases (cases.c) need of assembly.

#include "layout.h"

#define WORD_FIRST 1000
// What the thread pointers hold.
#define SENDER 0x111
#define RECEIVER 0x222

	.section .text.program, "ax"
	.align	PAGE_SIZE
	.global	text_page
text_page:

// One round: eight words to the partner, of which the first is one more than what came.
	.macro	round call, partner
	adds	r2 = ARGUMENTS + ARGUMENT_IPC, sp
	adds	r3 = ARGUMENTS + ARGUMENT_NAMES + 8 * \partner, sp
	;;
	ld8	r24 = [r2]
	ld8	r9 = [r3]
	mov	r11 = WORDS_IN_REGISTERS
	;;
	mov	b6 = r24
	mov	r10 = r9
	mov	r14 = r0
	adds	r16 = 1, r16
	;;
	\call
	;;
	adds	r2 = ARGUMENTS + ARGUMENT_LEFT, sp
	;;
	ld8	r3 = [r2]
	;;
	adds	r3 = -1, r3
	;;
	st8	[r2] = r3
	cmp.ne	p6, p7 = r0, r3
	.endm

// r25 rounds to do.
	.macro	rounds call, partner
	adds	r2 = ARGUMENTS + ARGUMENT_LEFT, sp
	;;
	st8	[r2] = r25
	;;
1:	round	"\call", \partner
(p6)	br.cond.sptk.many 1b
	;;
	.endm

	.macro	mark label
	adds	r2 = ARGUMENTS + ARGUMENT_HYPERCALL, sp
	mov	r8 = \label
	mov	r15 = HYPERCALL_MARK
	;;
	ld8	r2 = [r2]
	;;
	mov	b6 = r2
	;;
	br.call.sptk.many rp = b6
	;;
	.endm

	.macro	all_rounds
	adds	r2 = ARGUMENTS + ARGUMENT_ROUNDS, sp
	;;
	ld8	r25 = [r2]
	;;
	.endm

	.global	sender
	.proc	sender
sender:
	mov	tp = SENDER				// these three have to be the same at the end
	cmp.eq	p16, p17 = r0, r0
	sum	PSR_AC
	mov	r25 = 20
	;;
	rounds	"nop.b 0", 2
	mark	1
	all_rounds
	add	r25 = r25, r25				// as many as both threads do
	;;
	rounds	"nop.b 0", 2
	mark	2
	mov	r16 = WORD_FIRST
	mov	r17 = 2
	mov	r18 = 3
	mov	r19 = 4
	mov	r20 = 5
	mov	r21 = 6
	mov	r22 = 7
	mov	r23 = 8
	mov	r25 = 20
	;;
	rounds	"br.call.sptk.many rp = b6", 2
	mark	3
	all_rounds
	rounds	"br.call.sptk.many rp = b6", 2
	mark	4
	// Each round added one on either side.
	all_rounds
	mov	r26 = WORD_FIRST + 40
	;;
	shladd	r26 = r25, 1, r26
	adds	r27 = -2, r17
	adds	r28 = -8, r23
	;;
	sub	r26 = r16, r26
	or	r27 = r27, r28
	;;
	or	r26 = r26, r27
	adds	r27 = -SENDER, tp
	mov	r28 = psr.um
	;;
	tbit.z	p8, p0 = r28, PSR_AC_BIT
	or	r26 = r26, r27
	adds	r2 = ARGUMENTS + ARGUMENT_HYPERCALL, sp
	mov	r15 = HYPERCALL_EXIT
	;;
(p8)	mov	r26 = END_WRONG
	;;
(p17)	mov	r26 = END_WRONG
	;;
	cmp.ne	p6, p7 = r0, r26
	ld8	r2 = [r2]
	;;
(p6)	mov	r8 = END_WRONG
(p7)	mov	r8 = 0
	mov	b6 = r2
	;;
	br.call.sptk.many rp = b6
	;;
	.endp	sender

	.global	receiver
	.proc	receiver
receiver:
	mov	tp = RECEIVER
	cmp.ne	p16, p17 = r0, r0
1:	round	"br.call.sptk.many rp = b6", 1
	br.cond.sptk.many 1b
	;;
	.endp	receiver

// The program of a case: its function, in C, with the arguments.
	.global	case_program
	.proc	case_program
case_program:
	alloc	r2 = ar.pfs, 0, 0, 1, 0
	adds	r3 = ARGUMENTS + ARGUMENT_FUNCTION, sp
	;;
	ld8	r3 = [r3]
	adds	out0 = ARGUMENTS, sp
	;;
	mov	b6 = r3
	br.call.sptk.many rp = b6
	;;
	.endp	case_program

// void pass(struct call *call, uint64_t gate, uint64_t unat): passes a message; what the kernel destroys and C does not expect
// to be is kept. Where `unat` says so, an argument is not a thing.
	.global	pass
	.proc	pass
pass:
	alloc	r35 = ar.pfs, 3, 14, 0, 0
	mov	r36 = rp
	mov	r37 = ar.unat
	mov	r38 = ar.lc
	mov	r39 = r4
	mov	r40 = r5
	mov	r41 = r6
	mov	r42 = r7
	mov	r43 = b1
	mov	r44 = b2
	mov	r45 = b3
	mov	r46 = b4
	mov	r47 = b5
	mov	r48 = tp
	;;
	mov	ar.unat = r34
	mov	b6 = r33
	mov	r2 = r32
	adds	r3 = 8, r32
	;;
	ld8.fill r9 = [r2], 16
	ld8.fill r10 = [r3], 16
	;;
	ld8.fill r11 = [r2], 16
	ld8.fill r14 = [r3], 16
	;;
	ld8.fill r16 = [r2], 16
	ld8.fill r17 = [r3], 16
	;;
	ld8.fill r18 = [r2], 16
	ld8.fill r19 = [r3], 16
	;;
	ld8.fill r20 = [r2], 16
	ld8.fill r21 = [r3], 16
	;;
	ld8.fill r22 = [r2], 16
	ld8.fill r23 = [r3], 16
	;;
	ld8.fill tp = [r2]
	br.call.sptk.many rp = b6
	;;
	adds	r2 = 8, r32
	adds	r3 = 16, r32
	mov	r8 = ar.unat
	;;
	st8	[r2] = r9, 24
	st8	[r3] = r11, 24
	cmp.ne	p6, p7 = r8, r34			// the kernel keeps it
	;;
	st8	[r2] = r16, 16
	st8	[r3] = r17, 16
	;;
	st8	[r2] = r18, 16
	st8	[r3] = r19, 16
	;;
	st8	[r2] = r20, 16
	st8	[r3] = r21, 16
	;;
	st8	[r2] = r22, 16
	st8	[r3] = r23
	;;
(p7)	st8	[r2] = tp
(p6)	st8	[r2] = r0
	mov	ar.unat = r37
	mov	ar.lc = r38
	mov	r4 = r39
	mov	r5 = r40
	mov	r6 = r41
	mov	r7 = r42
	mov	b1 = r43
	mov	b2 = r44
	mov	b3 = r45
	mov	b4 = r46
	mov	b5 = r47
	mov	tp = r48
	mov	rp = r36
	mov	ar.pfs = r35
	;;
	br.ret.sptk.many rp
	.endp	pass

// void kernel_call(uint64_t function, uint64_t argument, uint64_t gate): a hypercall, by the gate page.
	.global	kernel_call
	.proc	kernel_call
kernel_call:
	alloc	r35 = ar.pfs, 3, 2, 0, 0
	mov	r36 = rp
	mov	b6 = r34
	mov	r15 = r32
	mov	r8 = r33
	;;
	br.call.sptk.many rp = b6
	;;
	mov	ar.pfs = r35
	mov	rp = r36
	;;
	br.ret.sptk.many rp
	.endp	kernel_call

// void set_floating_point(uint64_t number), uint64_t floating_point(void): f2 and f31, whose difference is nothing.
	.global	set_floating_point
	.proc	set_floating_point
set_floating_point:
	setf.sig f2 = r32
	setf.sig f31 = r32
	br.ret.sptk.many rp
	.endp	set_floating_point

	.global	floating_point
	.proc	floating_point
floating_point:
	getf.sig r8 = f2
	getf.sig r9 = f31
	;;
	xor	r9 = r8, r9
	;;
	cmp.ne	p6, p0 = r0, r9
	;;
(p6)	mov	r8 = r0
	br.ret.sptk.many rp
	.endp	floating_point
