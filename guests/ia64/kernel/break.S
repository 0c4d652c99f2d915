// System calls by `break`.
//
//   break_instruction     saves only what a call does not destroy anyway, as the same frame that an interruption has (entry.S)
//   system_call_dispatch  calls the function, on behalf of which the program's output registers are the arguments
//   system_call_work      the end of a call with something to do before it returns: leaves like an interruption
//
// What needs the whole frame, as the return from a signal does, goes on as an interruption.

#include "layout.h"
#include "assembly.h"

#include <asm/unistd.h>

	.text

// A `break`. From a program and with the number of Linux, it is a system call: number in r15, arguments in the output
// registers, result in r8, r10 = -1 for an error. Everything that a call would destroy may be destroyed, but r11 is kept.
ENTRY(break_instruction)
	ENTERED_BY(ENTERED_BY_SYSTEM_CALL)
	mov	r16 = cr.iim
	mov	r18 = cr.ipsr
	movl	r17 = BREAK_SYSTEM_CALL
	mov	r20 = KR_CURRENT
	mov	r30 = 0x2c00
	;;
	ld4	r19 = [r20]				// TASK_ON_USER_STACK
	cmp.ne	p6, p0 = r16, r17
	mov	r16 = __NR_clone2
	mov	r17 = __NR_rt_sigreturn
	;;
	cmp4.eq	p7, p0 = r0, r19
	cmp.eq	p8, p0 = r15, r16			// these two need the whole frame
	cmp.eq	p9, p0 = r15, r17
(p6)	br.cond.spnt.many interruption_entry
(p7)	br.cond.spnt.many interruption_entry
(p8)	br.cond.spnt.many interruption_entry
(p9)	br.cond.spnt.many interruption_entry
	;;
	mov	r29 = ar.rsc
	mov	r17 = cr.iip
	extr.u	r19 = r18, PSR_RI_SHIFT, 2
	mov	r21 = ar.pfs
	mov	r22 = ar.unat
	;;
	// On behind the `break`.
	cmp.eq	p6, p7 = 2, r19
	adds	r19 = 1, r19
	mov	ar.rsc = 0
	;;
(p6)	mov	r19 = 0
(p6)	adds	r17 = 16, r17
	mov	r24 = TASK_FRAME
	;;
	add	r24 = r24, r20
	mov	r28 = TASK_BACKING_STORE
	;;
	dep	r18 = r19, r18, PSR_RI_SHIFT, 2
	mov	r19 = 3
	mov	r23 = ar.rnat
	mov	r25 = ar.bspstore
	adds	r26 = FRAME_IPSR, r24
	adds	r27 = FRAME_IIP, r24
	add	r28 = r28, r20
	;;
	mov	ar.bspstore = r28
	dep	r18 = r19, r18, PSR_CPL_SHIFT, 2	// the gate page calls at level 0
	;;
	st8	[r26] = r18, 16
	st8	[r27] = r17, 16
	mov	r16 = b0
	;;
	st8	[r26] = r0, 16				// ifs: the way out sets it
	st8	[r27] = r22, 16				// unat
	mov	r17 = ar.fpsr
	;;
	st8	[r26] = r21, 16				// pfs
	st8	[r27] = r29, 16				// rsc
	adds	r18 = FRAME_FPSR, r24
	;;
	st8	[r26] = r23, 16				// rnat
	st8	[r27] = r25, 16				// bspstore
	adds	r19 = FRAME_VECTOR, r24
	;;
	st8	[r26] = r31, FRAME_B6 - FRAME_PR	// predicates
	st8	[r27] = r16				// b0
	mov	r16 = b6
	;;
	st8	[r26] = r16				// b6: where the gate page's code returns to
	adds	r26 = FRAME_R1, r24
	;;
	st8	[r18] = r17				// fpsr
	st8.spill [r26] = r1, FRAME_R12 - FRAME_R1
	adds	r27 = FRAME_R12 + 8, r24
	adds	r18 = FRAME_R11, r24
	;;
	SPILL	[r26] = r12, FRAME_R12 + 24 - FRAME_R12
	SPILL_NEXT	[r27] = r13
	tnat.nz	p6, p0 = r15
	;;
(p6)	mov	r15 = 0
	st8	[r19] = r30				// vector
	st8.spill [r18] = r11				// where who calls by epc keeps ar.pfs
	adds	r28 = FRAME_SPILL_UNAT, r24
	mov	r13 = r20
	;;
	st8	[r26] = r15				// r15: the number
	mov	r16 = ar.unat
	st4	[r20] = r0				// TASK_ON_USER_STACK
	;;
	st8	[r28] = r16
	adds	r12 = -16, r24
	movl	r1 = __gp
	bsw.1
	;;
	mov	ar.rsc = 3
	ssm	PSR_IC
	;;
	srlz.i
	;;
	ssm	PSR_I
	br.call.sptk.many rp = system_call_dispatch	// the program's frame moves to ar.pfs
	;;
	// The result is in r8. Interrupts off, then look for work; none of it may be missed between the two.
	rsm	PSR_I
	adds	r14 = TASK_WORK, r13
	cmp.lt	p6, p7 = r8, r0
	;;
	ld4	r14 = [r14]
	mov	r10 = 0
(p6)	sub	r15 = r0, r8
	;;
	and	r14 = WORK_BEFORE_RETURN, r14
(p6)	mov	r16 = 4095
	;;
	cmp4.ne	p9, p0 = r0, r14
	;;
(p6)	cmp.leu.unc p8, p0 = r15, r16			// -4095 to -1 are errors
	;;
(p8)	mov	r8 = r15
(p8)	mov	r10 = -1
(p9)	br.cond.spnt.many system_call_work
	;;
	rsm	PSR_IC
	cmp.eq	p6, p7 = r0, r0
	// Nothing of the kernel's stays in what a call destroys.
	.macro	clear_three general, floating, another
	mov	r\general = r0
	mov	f\floating = f0
	mov	r\another = r0
	.endm
	clear_three 2, 6, 3
	clear_three 9, 7, 14
	clear_three 15, 8, 16
	clear_three 17, 9, 18
	clear_three 19, 10, 20
	clear_three 21, 11, 22
	.irp	register, 23, 24, 25, 26, 27, 28, 29, 30, 31
	mov	r\register = r0
	.endr
	mov	b7 = r0
	mov	ar.ccv = r0
	mov	ar.csd = r0
	;;
	srlz.d
	bsw.0
	;;
	cover						// with PSR.ic off: the program's frame to cr.ifs
	;;
	mov	r22 = cr.ifs
	adds	r18 = 16, r12
	mov	r19 = r13
	;;
	adds	r26 = FRAME_SPILL_UNAT, r18
	adds	r16 = FRAME_B0, r18
	adds	r17 = FRAME_IFS, r18
	;;
	ld8	r26 = [r26]
	ld8	r27 = [r16], FRAME_B6 - FRAME_B0
	st8	[r17] = r22
	;;
	ld8	r28 = [r16]
	adds	r16 = FRAME_R1, r18
	adds	r17 = FRAME_R12 + 8, r18
	;;
	mov	ar.unat = r26
	mov	b0 = r27
	mov	b6 = r28
	;;
	ld8.fill r1 = [r16], FRAME_R12 - FRAME_R1
	ld8.fill r13 = [r17], FRAME_R11 - FRAME_R12 - 8
	;;
	ld8.fill r12 = [r16]
	ld8.fill r11 = [r17]
	adds	r16 = FRAME_IPSR, r18
	adds	r17 = FRAME_IIP, r18
	br.sptk.many restore_state
	;;
END(break_instruction)

// Before a system call returns there is work to do: make its frame a whole one, with zeros for what the call destroyed, and
// leave like an interruption.
ENTRY(system_call_work)
	ENTERED_BY(ENTERED_BY_INTERRUPTION)
	cover						// PSR.ic is on: cr.ifs stays; the dispatch has noted ifs
	;;
	alloc	r15 = ar.pfs, 0, 0, 3, 0
	;;
	adds	out0 = 16, r12
	mov	out1 = r8
	mov	out2 = r10
	br.call.sptk.many rp = complete_system_call_frame
	;;
	br.sptk.many leave_interruption
	;;
END(system_call_work)

// Calls the function of system call r15. The program's output registers are this frame's inputs.
ENTRY(system_call_dispatch)
	.prologue
	.save	ar.pfs, r41
	alloc	loc1 = ar.pfs, 8, 3, 8, 0
	.save	rp, r40
	mov	loc0 = rp
	.body
	adds	r14 = 16 + FRAME_IFS, r12
	movl	r16 = 1 << 63
	adds	r20 = TASK_WORK, r13
	mov	out6 = r15
	adds	r15 = -SYSTEM_CALL_FIRST, r15
	movl	r17 = system_calls			// its entry 0 answers for calls that do not exist
	mov	r19 = SYSTEM_CALLS
	;;
	extr.u	r18 = loc1, 0, 38
	cmp.ltu	p7, p0 = r15, r19
	tnat.nz	p8, p0 = in0
	tnat.nz	p9, p0 = in1
	;;
	or	r18 = r16, r18				// the program's frame, for whoever asks
(p7)	shladd	r17 = r15, 3, r17
	tnat.nz	p10, p0 = in2
	tnat.nz	p11, p0 = in3
	;;
	st8	[r14] = r18
	ld8	r17 = [r17]
	ld4	r20 = [r20]
	tnat.nz	p12, p0 = in4
	tnat.nz	p13, p0 = in5
	;;
	// An argument that is NaT is a bad one, as any other.
(p8)	mov	in0 = -1
(p9)	mov	in1 = -1
(p10)	mov	in2 = -1
(p11)	mov	in3 = -1
(p12)	mov	in4 = -1
(p13)	mov	in5 = -1
	;;
	mov	out0 = in0
	mov	out1 = in1
	mov	out2 = in2
	mov	out3 = in3
	mov	out4 = in4
	mov	out5 = in5
	mov	b6 = r17
	tbit.nz	p8, p0 = r20, WORK_TRACE_BIT
	mov	out7 = r17
(p8)	br.cond.spnt.few 1f
	br.call.sptk.many rp = b6
	;;
	mov	ar.pfs = loc1
	mov	rp = loc0
	br.ret.sptk.many rp
	;;
1:	br.call.sptk.many rp = call_traced		// calls out7 and says so
	;;
	mov	ar.pfs = loc1
	mov	rp = loc0
	br.ret.sptk.many rp
END(system_call_dispatch)
