// The way into the kernel and out again.
//
//   interruption_entry    any interruption that C handles: saves the scratch state of what was interrupted as a frame
//   leave_interruption    restores a frame
//   restore_state         the end of that, and of a system call (break.S)
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
	.global	restore_state
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
