// The two programs: a sender that waits for each answer, and a receiver that answers. Both have the same text page in spaces of
// their own; what they need to remember is on their stacks, as a message destroys the registers.
//
//   [sp] = the way into the kernel   [sp + 8] = the partner   [sp + 16] = rounds left   [sp + 24] = rounds
//   [sp + 32] = the gate's hypercall

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
	.macro	round call
	mov	r2 = sp
	adds	r3 = 8, sp
	;;
	ld8	r24 = [r2]
	ld8	r9 = [r3]
	mov	r11 = WORDS_MAX
	;;
	mov	b6 = r24
	mov	r10 = r9
	mov	r14 = r0
	adds	r16 = 1, r16
	;;
	\call
	;;
	adds	r2 = 16, sp
	;;
	ld8	r3 = [r2]
	;;
	adds	r3 = -1, r3
	;;
	st8	[r2] = r3
	cmp.ne	p6, p7 = r0, r3
	.endm

// r25 rounds to do.
	.macro	rounds call
	adds	r2 = 16, sp
	;;
	st8	[r2] = r25
	;;
1:	round	"\call"
(p6)	br.cond.sptk.many 1b
	;;
	.endm

	.macro	mark label
	adds	r2 = 32, sp
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
	adds	r2 = 24, sp
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
	rounds	"nop.b 0"
	mark	1
	all_rounds
	add	r25 = r25, r25				// as many as both threads do
	;;
	rounds	"nop.b 0"
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
	rounds	"br.call.sptk.many rp = b6"
	mark	3
	all_rounds
	rounds	"br.call.sptk.many rp = b6"
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
	adds	r2 = 32, sp
	mov	r15 = HYPERCALL_EXIT
	;;
(p8)	mov	r26 = 1
(p17)	mov	r26 = 1
	;;
	cmp.ne	p6, p7 = r0, r26
	ld8	r2 = [r2]
	;;
(p6)	mov	r8 = 1
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
1:	round	"br.call.sptk.many rp = b6"
	br.cond.sptk.many 1b
	;;
	.endp	receiver
	.align	PAGE_SIZE
