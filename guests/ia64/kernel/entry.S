// The way into the kernel and out again.
//
//   interruption_entry    any interruption that C handles: saves the scratch state of what was interrupted as a frame
//   leave_interruption    restores a frame
//   break_instruction     a system call by `break`: saves only what a call does not destroy anyway
//   new_task              where a new process's first switch arrives
//
// A program's frame lies at the top of its task's kernel stack (layout.h). The register stack needs more: the registers of
// the program's own callers may still be in the processor. They stay there; the backing store is switched, so that
// the RSE spills them to the task's kernel backing store if it needs room, and on the way out `loadrs` brings back
// exactly those that were above the switch. Memory on the program's own backing store is not touched.
//
// Nothing here may miss the TLB while PSR.ic is off: tasks, their stacks and this code lie in the pinned granule.

#include "layout.h"
#include "assembly.h"

#include <asm/unistd.h>

	.text

// In: register bank 0, PSR.ic and PSR.i off, r30 = vector, r31 = predicates.
ENTRY(interruption_entry)
	ENTERED_BY(ENTERED_BY_INTERRUPTION)
	// Which stack? From a program (p6): the frame goes to the top of the task's kernel stack. From the kernel (p7): below
	// the stack pointer of what was interrupted.
	mov	r20 = KR_CURRENT
	mov	r16 = cr.ipsr
	mov	r29 = ar.rsc
	cover						// the interrupted frame goes to cr.ifs
	;;
	mov	r18 = cr.ifs
	mov	r17 = cr.iip
	mov	r19 = ar.unat
	mov	r21 = ar.pfs
	ld4	r22 = [r20]				// TASK_ON_USER_STACK
	;;
	mov	ar.rsc = 0
	cmp4.ne	p6, p7 = r0, r22
	;;
(p6)	st4	[r20] = r0
	mov	r22 = ar.rnat
	mov	r23 = ar.bspstore
(p6)	mov	r24 = TASK_FRAME
(p6)	mov	r25 = TASK_BACKING_STORE
(p7)	adds	r24 = -FRAME_SIZE, r12
	;;
(p6)	add	r24 = r24, r20
(p6)	add	r25 = r25, r20
	;;
	// Switches the backing store: what the program has in the stacked registers from here on spills to the task's own.
	// r17 then measures how much that is; `loadrs` brings back as much.
(p6)	mov	ar.bspstore = r25
	adds	r26 = FRAME_IPSR, r24
	adds	r27 = FRAME_IIP, r24
	adds	r28 = FRAME_LOADED, r24
	;;
	st8	[r26] = r16, 16				// ipsr
	st8	[r27] = r17, 16				// iip
	mov	r16 = ar.fpsr
(p6)	mov	r17 = ar.bsp
	;;
(p6)	sub	r17 = r17, r25
	;;
(p6)	st8	[r28] = r17				// loaded
	;;
	// What a call would destroy: first what the processor keeps beside the general registers ...
	st8	[r26] = r18, 16				// ifs
	st8	[r27] = r19, 16				// unat
	mov	r17 = b0
	;;
	st8	[r26] = r21, 16				// pfs
	st8	[r27] = r29, 16				// rsc
	mov	r18 = b6
	;;
	st8	[r26] = r22, 16				// rnat
	st8	[r27] = r23, 16				// bspstore
	mov	r19 = b7
	;;
	st8	[r26] = r31, 16				// predicates
	st8	[r27] = r17, 16				// b0
	mov	r21 = ar.ccv
	;;
	st8	[r26] = r18, 16				// b6
	st8	[r27] = r19, 16				// b7
	mov	r22 = ar.csd
	;;
	st8	[r26] = r21				// ccv
	st8	[r27] = r16				// fpsr
	adds	r28 = FRAME_CSD, r24
	adds	r26 = FRAME_R1, r24
	adds	r27 = FRAME_R2, r24
	;;
	// ... then the general registers, with their NaT bits in ar.unat, and what the handler wants to know.
	st8	[r28] = r22				// csd
	SPILL	[r26] = r1, 16
	SPILL_NEXT	[r27] = r2, 16
	adds	r28 = FRAME_VECTOR, r24
	;;
	SPILL	[r26] = r3, 16
	SPILL_NEXT	[r27] = r8, 16
	mov	r16 = cr.isr
	;;
	SPILL	[r26] = r9, 16
	SPILL_NEXT	[r27] = r10, 16
	mov	r17 = cr.ifa
	;;
	SPILL	[r26] = r11, 16
	SPILL_NEXT	[r27] = r12, 16
	mov	r18 = cr.iim
	;;
	SPILL	[r26] = r13, 16
	SPILL_NEXT	[r27] = r14
	mov	r19 = cr.iipa
	;;
	st8.spill [r26] = r15
	st8	[r28] = r30				// vector
	adds	r26 = FRAME_ISR, r24
	adds	r27 = FRAME_IFA, r24
	;;
	st8	[r26] = r16, 16				// isr
	st8	[r27] = r17, 16				// ifa
	mov	r13 = r20
	;;
	st8	[r26] = r18				// iim
	st8	[r27] = r19				// iipa
	mov	r8 = r24
	adds	r2 = FRAME_R16, r24
	adds	r3 = FRAME_R16 + 8, r24
	;;
	adds	r12 = -16, r8
	movl	r1 = __gp
	bsw.1						// the interrupted r16 to r31
	;;
	SPILL	[r2] = r16, 16
	SPILL_NEXT	[r3] = r17, 16
	;;
	SPILL	[r2] = r18, 16
	SPILL_NEXT	[r3] = r19, 16
	;;
	SPILL	[r2] = r20, 16
	SPILL_NEXT	[r3] = r21, 16
	;;
	SPILL	[r2] = r22, 16
	SPILL_NEXT	[r3] = r23, 16
	;;
	SPILL	[r2] = r24, 16
	SPILL_NEXT	[r3] = r25, 16
	;;
	SPILL	[r2] = r26, 16
	SPILL_NEXT	[r3] = r27, 16
	;;
	SPILL	[r2] = r28, 16
	SPILL_NEXT	[r3] = r29, 16
	;;
	SPILL	[r2] = r30
	SPILL_NEXT	[r3] = r31
	adds	r9 = FRAME_SPILL_UNAT, r8
	;;
	// C code may use f6 to f11; PSR.ic goes on again once nothing is left that another interruption would overwrite.
	mov	r10 = ar.unat
	movl	r11 = 0x9804c0270033f
	adds	r2 = FRAME_F6, r8
	adds	r3 = FRAME_F6 + 16, r8
	;;
	st8	[r9] = r10
	mov	ar.fpsr = r11
	stf.spill [r2] = f6, 32
	stf.spill [r3] = f7, 32
	;;
	stf.spill [r2] = f8, 32
	stf.spill [r3] = f9, 32
	;;
	stf.spill [r2] = f10
	stf.spill [r3] = f11
	mov	ar.rsc = 3
	ssm	PSR_IC					// C may miss the TLB
	;;
	srlz.i
	alloc	r14 = ar.pfs, 0, 0, 1, 0
	;;
	mov	out0 = r8
	br.call.sptk.many rp = interruption
	;;
	// Falls through: interrupts are off, the frame is at r12 + 16.
END(interruption_entry)

// Everything that may be done with interruptions on is done; `work_before_return` comes back with interrupts off and no
// work left.
ENTRY(leave_interruption)
	ENTERED_BY(ENTERED_BY_INTERRUPTION)
	alloc	r15 = ar.pfs, 0, 0, 1, 0
	;;
	mov	r14 = TASK_FRAME - 16
	adds	r15 = TASK_WORK, r13
	;;
	add	r14 = r14, r13
	;;
	cmp.eq	p6, p7 = r14, r12			// back to a program?
	adds	out0 = 16, r12
	;;
(p6)	ld4	r15 = [r15]
	;;
(p6)	and	r15 = WORK_BEFORE_RETURN, r15
	;;
(p6)	cmp4.ne.unc p8, p0 = r0, r15
(p8)	br.call.spnt.many rp = work_entry
	;;
	// An empty frame: only then may `loadrs` reach below it.
	alloc	r15 = ar.pfs, 0, 0, 0, 0
	;;
	mov	r14 = TASK_FRAME - 16
	;;
	add	r14 = r14, r13
	;;
	cmp.eq	p6, p7 = r14, r12
	rsm	PSR_IC | PSR_I
	adds	r8 = 16, r12				// the frame
	;;
	srlz.d
	adds	r2 = FRAME_F6, r8
	adds	r3 = FRAME_F6 + 16, r8
	adds	r9 = FRAME_SPILL_UNAT, r8
	adds	r10 = FRAME_B0, r8
	adds	r11 = FRAME_B6, r8
	;;
	ldf.fill f6 = [r2], 32
	ldf.fill f7 = [r3], 32
	;;
	ldf.fill f8 = [r2], 32
	ldf.fill f9 = [r3], 32
	;;
	ldf.fill f10 = [r2]
	ldf.fill f11 = [r3]
	;;
	ld8	r9 = [r9]
	ld8	r14 = [r10], 16				// b0
	ld8	r15 = [r11], 16				// b6
	;;
	ld8	r16 = [r10]				// b7
	ld8	r17 = [r11], FRAME_CSD - FRAME_CCV	// ccv
	mov	b0 = r14
	;;
	ld8	r18 = [r11]				// csd
	mov	ar.unat = r9
	mov	b6 = r15
	;;
	mov	b7 = r16
	mov	ar.ccv = r17
	;;
	mov	ar.csd = r18
	adds	r2 = FRAME_R16, r8
	adds	r3 = FRAME_R16 + 8, r8
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
	ld8.fill r24 = [r2], 16
	ld8.fill r25 = [r3], 16
	;;
	ld8.fill r26 = [r2], 16
	ld8.fill r27 = [r3], 16
	;;
	ld8.fill r28 = [r2], 16
	ld8.fill r29 = [r3], 16
	;;
	ld8.fill r30 = [r2]
	ld8.fill r31 = [r3]
	bsw.0
	;;
	mov	r18 = r8
	mov	r19 = r13
	adds	r16 = FRAME_R1, r8
	adds	r17 = FRAME_R2, r8
	;;
	ld8.fill r1 = [r16], 16
	ld8.fill r2 = [r17], 16
	;;
	ld8.fill r3 = [r16], 16
	ld8.fill r8 = [r17], 16
	;;
	ld8.fill r9 = [r16], 16
	ld8.fill r10 = [r17], 16
	;;
	ld8.fill r11 = [r16], 16
	ld8.fill r12 = [r17], 16
	;;
	ld8.fill r13 = [r16], 16
	ld8.fill r14 = [r17]
	;;
	ld8.fill r15 = [r16]
	adds	r16 = FRAME_IPSR, r18
	adds	r17 = FRAME_IIP, r18
	;;
	// From here on an interruption would overwrite cr.ipsr, cr.iip and cr.ifs: PSR.ic is off and nothing may miss the TLB.
	// Also the end of a system call: r18 = frame, r19 = task, r16 and r17 = its ipsr and iip, p6 = to a program.
restore_state:
	ld8	r20 = [r16], 16				// ipsr
	ld8	r21 = [r17], 16				// iip
	;;
	ld8	r22 = [r16], 16				// ifs
	ld8	r23 = [r17], 16				// unat
	mov	cr.ipsr = r20
	;;
	ld8	r24 = [r16], 16				// pfs
	ld8	r25 = [r17], 16				// rsc
	mov	cr.iip = r21
	;;
	ld8	r26 = [r16], 16				// rnat
	ld8	r27 = [r17], 16				// bspstore
	mov	cr.ifs = r22
	;;
	ld8	r28 = [r16], FRAME_FPSR - FRAME_PR	// predicates
	mov	ar.unat = r23
	mov	r30 = TASK_BACKING_STORE
	;;
	ld8	r31 = [r16]				// fpsr
	add	r30 = r30, r19
	mov	ar.rsc = 0
(p6)	mov	r29 = 1
	;;
(p6)	st4	[r19] = r29				// TASK_ON_USER_STACK
	invala						// no chk.a may find what another loaded in advance
	mov	r29 = ar.bsp
	mov	ar.pfs = r24
	;;
	mov	ar.fpsr = r31
	sub	r29 = r29, r30				// bytes of the program's registers above the switch
	mov	r21 = REGISTERS_STACKED + 2 + 7		// two words of it may be NaT bits; the number rounds up
	;;
	shr.u	r22 = r29, 3
	shl	r29 = r29, 16
(p7)	br.cond.dpnt.few 1f				// to the kernel: its own register stack goes on
	;;
	// The rest of the stacked registers hold what the kernel left there.
	sub	r21 = r21, r22
	movl	r22 = clear_stacked
	mov	r31 = b7
	;;
	shr.u	r21 = r21, 3
	;;
	cmp.ltu	p8, p0 = REGISTERS_STACKED / 8, r21
	;;
(p8)	mov	r21 = REGISTERS_STACKED / 8
	;;
	shl	r21 = r21, 5
	;;
	add	r22 = r21, r22
	;;
	mov	b7 = r22
	;;
	br.cond.sptk.many b7
	;;
	// A frame for each number of registers to clear, in eights; it may spill some of the program's, which loadrs brings back.
	.align	32
clear_stacked:
	.irp	eights, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
	alloc	r23 = ar.pfs, 0, 8 * \eights, 0, 0
	br.cond.sptk.few .Lclear_\eights
	;;
	.align	32
	.endr
	.macro	clear eights, a, b, c, d, e, f, g, h
.Lclear_\eights:
	.irp	register, \a, \b, \c, \d, \e, \f, \g, \h
	mov	r\register = r0
	.endr
	.endm
	clear	12, 127, 126, 125, 124, 123, 122, 121, 120
	clear	11, 119, 118, 117, 116, 115, 114, 113, 112
	clear	10, 111, 110, 109, 108, 107, 106, 105, 104
	clear	9, 103, 102, 101, 100, 99, 98, 97, 96
	clear	8, 95, 94, 93, 92, 91, 90, 89, 88
	clear	7, 87, 86, 85, 84, 83, 82, 81, 80
	clear	6, 79, 78, 77, 76, 75, 74, 73, 72
	clear	5, 71, 70, 69, 68, 67, 66, 65, 64
	clear	4, 63, 62, 61, 60, 59, 58, 57, 56
	clear	3, 55, 54, 53, 52, 51, 50, 49, 48
	clear	2, 47, 46, 45, 44, 43, 42, 41, 40
	clear	1, 39, 38, 37, 36, 35, 34, 33, 32
	;;
.Lclear_0:
	alloc	r23 = ar.pfs, 0, 0, 0, 0
	mov	b7 = r31
	;;
	mov	ar.rsc = r29
	;;
	loadrs
	;;
	mov	ar.bspstore = r27
	;;
	mov	ar.rnat = r26
	;;
1:	mov	ar.rsc = r25
	mov	pr = r28, -1
	;;
	rfi
	;;
END(leave_interruption)

// Calls `work_before_return(frame, preserved)`. With signal-state=full the preserved registers go to memory first and come
// back from there, as they do where a kernel keeps the whole state of a program in one structure; otherwise they
// stay where they are and `preserved` is null.
ENTRY(work_entry)
	.prologue
	.save	ar.pfs, r33
	alloc	r33 = ar.pfs, 1, 3, 2, 0
	.save	rp, r34
	mov	r34 = rp
	.body
	movl	r14 = save_preserved_state
	;;
	ld4	r14 = [r14]
	mov	out0 = in0
	mov	out1 = 0
	;;
	cmp4.ne	p8, p9 = r0, r14
(p8)	br.cond.spnt.few work_entry_full
	;;
	br.call.sptk.many rp = work_before_return
	;;
	mov	ar.pfs = r33
	mov	rp = r34
	br.ret.sptk.many rp
END(work_entry)

// The rest of it with signal-state=full.
ENTRY(work_entry_full)
	.prologue
	.save	ar.pfs, r33
	.save	rp, r34
	br.call.sptk.many rp = floating_low_to_current	// f2 to f31 must be this program's
	;;
	.fframe	PRESERVED_SIZE
	adds	sp = -PRESERVED_SIZE, sp
	.save	ar.unat, r35
	mov	r35 = ar.unat
	.body
	;;
	adds	r2 = PRESERVED_R4 + 16, sp
	adds	r3 = PRESERVED_R4 + 24, sp
	mov	r14 = b1
	mov	r15 = ar.lc
	;;
	SPILL	[r2] = r4, 16
	SPILL_NEXT	[r3] = r5, 16
	mov	r16 = b2
	;;
	SPILL	[r2] = r6, 16
	SPILL_NEXT	[r3] = r7, 16
	mov	r17 = b3
	;;
	mov	r18 = ar.unat
	st8	[r2] = r14, 16				// b1
	st8	[r3] = r16, 16				// b2
	mov	r19 = b4
	;;
	st8	[r2] = r17, 16				// b3
	st8	[r3] = r19				// b4
	mov	r20 = b5
	adds	r3 = PRESERVED_SPILL_UNAT + 16, sp
	;;
	st8	[r2] = r20				// b5
	st8	[r3] = r18, 8
	;;
	st8	[r3] = r15				// lc
	mov	r14 = ar.bsp				// where the program's registers end: an entry has no locals
	adds	r2 = PRESERVED_END + 16, sp
	;;
	st8	[r2] = r14
	adds	out0 = PRESERVED_F2 + 16, sp
	br.call.sptk.many rp = save_floating_low
	;;
	mov	out0 = in0
	adds	out1 = 16, sp
	br.call.sptk.many rp = work_before_return
	;;
	br.call.sptk.many rp = floating_low_to_current	// others may have run meanwhile
	;;
	adds	out0 = PRESERVED_F2 + 16, sp
	br.call.sptk.many rp = load_floating_low
	;;
	adds	r3 = PRESERVED_SPILL_UNAT + 16, sp
	;;
	ld8	r18 = [r3], 8
	;;
	ld8	r15 = [r3], 8
	adds	r2 = PRESERVED_R4 + 24, sp
	mov	ar.unat = r18
	;;
	ld8.fill r4 = [r3], 16
	ld8.fill r5 = [r2], 16
	mov	ar.lc = r15
	;;
	ld8.fill r6 = [r3], 16
	ld8.fill r7 = [r2], 16
	;;
	ld8	r14 = [r3], 16
	ld8	r16 = [r2], 16
	;;
	ld8	r17 = [r3], 16
	ld8	r19 = [r2]
	mov	b1 = r14
	mov	b2 = r16
	;;
	ld8	r20 = [r3]
	mov	b3 = r17
	mov	b4 = r19
	mov	ar.unat = r35
	;;
	mov	b5 = r20
	mov	ar.pfs = r33
	mov	rp = r34
	adds	sp = PRESERVED_SIZE, sp
	br.ret.sptk.many rp
END(work_entry_full)

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

// The first switch to a process arrives here with the frame of its program at r12 + 16.
ENTRY(new_task)
	ENTERED_BY(ENTERED_BY_INTERRUPTION)
	alloc	r14 = ar.pfs, 0, 0, 0, 0
	;;
	br.call.sptk.many rp = finish_switch		// what `switch_to` does behind the switch
	;;
	br.sptk.many leave_interruption
	;;
END(new_task)
