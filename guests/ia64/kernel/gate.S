// The gate page: the one page of the kernel that programs may execute. On it `epc` raises the privilege level without an
// interruption.
//
//   gate_system_call   system calls by `epc`: `br.call b6 = gate_system_call` with the number in r15; r8 and r10 answer as
//                      they do for `break`; r11 is kept, r16 to r31, p6 to p15, b7 and ar.ccv are lost, and PSR.be is off
//   gate_signal        where a signal's handler is called from, and returns to
//
// After `epc` the code is privileged but still on the program's stacks, which it must not trust: it calls nothing
// (a frame could spill to the program's backing store), takes no fault (it touches pinned memory only, and probes
// what the program gave it), and works in scratch registers. `br.ret` takes the program's level from ar.pfs. What has no
// fast code here is done by `break`.
//
// An interrupt may come at any instruction. It finds TASK_ON_USER_STACK set, so it switches stacks although the privilege
// level is zero.

#include "layout.h"
#include "assembly.h"

#include <asm/unistd.h>

	.section .text.gate, "ax"
	.align	PAGE_SIZE
	.global	gate_page
gate_page:

	.global	gate_system_call
	.proc	gate_system_call
gate_system_call:
{ .mib
	mov	r17 = SYSTEM_CALLS
	adds	r18 = -SYSTEM_CALL_FIRST, r15
	epc						// level 0 from here on
	;;
}
	rsm	PSR_BE					// or the kernel would read its own words backwards
	movl	r19 = gate_calls
	cmp.ltu	p6, p7 = r18, r17
	;;
	mov	r16 = KR_CURRENT			// takes 12 cycles
(p6)	shladd	r19 = r18, 3, r19
	;;
	srlz.d						// 5 cycles behind rsm
	;;
	ld8	r19 = [r19]				// entry 0 is for numbers that do not exist, and NaT
	;;
	mov	b7 = r19
	adds	r17 = TASK_WORK, r16
	br.cond.sptk.many b7
	;;
	.endp	gate_system_call

// The fast calls: r16 = current task, r17 = address of its work word. They leave no address of the kernel's behind.
	.global	gate_getpid
gate_getpid:
	ld4	r17 = [r17]
	adds	r18 = TASK_IDENTITY, r16
	mov	r10 = 0
	;;
	ld8	r8 = [r18]
	cmp4.ne	p8, p0 = r0, r17
	mov	r16 = 0
(p8)	br.cond.spnt.few gate_by_break			// somebody wants this task, or traces it: take the slow way
	;;
	mov	r17 = 0
	mov	r18 = 0
	mov	r19 = 0
	br.ret.sptk.many b6
	;;

// The parent may end between the two loads, on another CPU or, as an interrupt may come in between, on this one, and its memory be
// something else: what was read counts if it still is the parent afterwards.
	.global	gate_getppid
gate_getppid:
	ld4	r17 = [r17]
	adds	r18 = TASK_PARENT, r16
	mov	r10 = 0
	;;
1:	ld8	r19 = [r18]
	cmp4.ne	p8, p0 = r0, r17
	mov	r16 = 0
	;;
	adds	r20 = TASK_IDENTITY, r19
(p8)	br.cond.spnt.few gate_by_break
	;;
	ld8.acq	r8 = [r20]
	ld8	r21 = [r18]
	;;
	cmp.ne	p9, p0 = r19, r21
	mov	r21 = 0
(p9)	br.cond.spnt.few 1b
	;;
	mov	r17 = 0
	mov	r18 = 0
	mov	r19 = 0
	mov	r20 = 0
	br.ret.sptk.many b6
	;;

// gettimeofday(struct timeval *, 0): seconds and microseconds from the time data (time.c), which are valid while their sequence
// number is even and stays the same.
	.global	gate_gettimeofday
gate_gettimeofday:
	ld4	r17 = [r17]
	movl	r19 = time_data
	tnat.nz	p8, p0 = r32
	tnat.nz	p9, p0 = r33
	;;
	adds	r18 = TIME_SOURCE, r19
	cmp4.ne	p10, p0 = r0, r17
	mov	r16 = 0
(p8)	br.cond.spnt.few gate_by_break
(p9)	br.cond.spnt.few gate_by_break
	;;
	ld4	r18 = [r18]
	cmp.ne	p9, p0 = r0, r33			// a time zone
	extr.u	r21 = r32, REGION_SHIFT, 3
	and	r20 = 7, r32
	;;
	cmp4.ne	p8, p0 = CLOCK_COUNTER, r18		// time is not what the counter says
	cmp.le	p11, p0 = USER_REGIONS, r21
	cmp.ne	p12, p0 = r0, r20
(p10)	br.cond.spnt.few gate_by_break
(p9)	br.cond.spnt.few gate_by_break
(p8)	br.cond.spnt.few gate_by_break
	;;
	adds	r21 = 8, r32
	probe.w	r18 = r32, 3
(p11)	br.cond.spnt.few gate_by_break
(p12)	br.cond.spnt.few gate_by_break
	;;
	cmp.eq	p8, p0 = r0, r18
	probe.w	r20 = r21, 3
	adds	r22 = TIME_LAST, r19
	;;
	cmp.eq	p9, p0 = r0, r20
	adds	r23 = TIME_MULTIPLIER, r19
	adds	r24 = TIME_SECONDS, r19
(p8)	br.cond.spnt.few gate_by_break
(p9)	br.cond.spnt.few gate_by_break
	;;
1:	ld4.acq	r20 = [r19]				// sequence
	adds	r25 = TIME_NANOSECONDS, r19
	mov	r26 = ar.itc				// takes 36 cycles
	;;
	ld8	r28 = [r22]
	ld8	r27 = [r23]
	tbit.nz	p8, p0 = r20, 0
#if PROCESSORS > 1
	adds	r30 = TIME_LATEST, r19
#endif
(p8)	br.cond.spnt.few 1b
	;;
	ld8	r29 = [r24]
	ld8	r25 = [r25]
	setf.sig f7 = r27
	;;
#if PROCESSORS > 1
	// Another CPU's counter may be ahead of this one's: the latest value that was used counts.
	ld8	r31 = [r30]
	;;
	mov	ar.ccv = r31
	sub	r18 = r31, r26
	;;
	cmp.lt	p9, p10 = r0, r18
	;;
(p9)	mov	r26 = r31
(p10)	cmpxchg8.rel r18 = [r30], r26, ar.ccv
	;;
(p10)	cmp.ne.unc p11, p0 = r18, r31			// somebody was faster
(p11)	br.cond.spnt.few 1b
	;;
#endif
	sub	r26 = r26, r28
	;;
	setf.sig f6 = r26
	;;
	xma.l	f8 = f6, f7, f0
	movl	r27 = 1000000000
	mf
	;;
	ld4	r28 = [r19]				// the same sequence number?
	getf.sig r26 = f8
	;;
	cmp4.ne	p8, p0 = r20, r28
	shr.u	r26 = r26, TIME_SHIFT
(p8)	br.cond.spnt.few 1b
	;;
	add	r25 = r25, r26
	movl	r28 = 2361183241434822607		// 2^71 / 1000, for the division by 1000
	;;
2:	cmp.geu	p8, p9 = r25, r27
	;;
(p8)	sub	r25 = r25, r27
(p8)	adds	r29 = 1, r29
(p8)	br.cond.spnt.few 2b
	;;
	shr.u	r26 = r25, 3
	setf.sig f7 = r28
	;;
	setf.sig f6 = r26
	;;
	xmpy.hu	f8 = f6, f7
	;;
	getf.sig r26 = f8
	;;
	shr.u	r26 = r26, 4
	st8	[r32] = r29
	mov	r8 = 0
	;;
	st8	[r21] = r26
	mov	r10 = 0
	mov	r19 = 0
	mov	r22 = 0
	mov	r23 = 0
	mov	r24 = 0
	mov	r30 = 0
	br.ret.sptk.many b6
	;;

// By `break`, here at level 0: the kernel returns behind it at the program's level.
	.global	gate_by_break
gate_by_break:
	break.m	BREAK_SYSTEM_CALL
	br.ret.sptk.many b6
	;;

// In: the signal's frame is 16 bytes above sp; the register frame is empty. Keeps what the handler, as a function, may destroy and
// the kernel has not put there: f6 to f15, and the register stack, if the handler is to have one of its own.
#define CONTEXT(offset) 16 + SIGNAL_FRAME_CONTEXT + offset
#define DESCRIBED \
	.prologue; \
	.unwabi	@svr4, 's'; \
	.spillsp rp, CONTEXT(40);			/* ip */ \
	.spillsp ar.pfs, CONTEXT(112); \
	.spillsp pr, CONTEXT(128); \
	.body
	.global	gate_signal
	.proc	gate_signal
gate_signal:
	DESCRIBED
	adds	r15 = 16 + SIGNAL_FRAME_HANDLER, sp
	adds	r16 = 16 + SIGNAL_FRAME_ARGUMENTS, sp
	adds	r22 = CONTEXT(SIGNAL_CONTEXT_BACKING_STORE), sp
	;;
	ld8	r22 = [r22]
	mov	r18 = ar.bsp
	adds	r19 = CONTEXT(SIGNAL_CONTEXT_BSP), sp
	;;
	st8	[r19] = r18
	cmp.ne	p6, p0 = r0, r22
(p6)	br.cond.spnt.few switch_register_stack
	;;
call_handler:
	alloc	r14 = ar.pfs, 0, 0, 3, 0
	adds	r20 = CONTEXT(SIGNAL_CONTEXT_F6), sp
	adds	r21 = CONTEXT(SIGNAL_CONTEXT_F6 + 16), sp
	;;
	ld8	r15 = [r15]				// the handler's descriptor
	ld8	out0 = [r16], 8
	;;
	ld8	r17 = [r15], 8
	ld8	out1 = [r16], 8
	;;
	ld8	gp = [r15]
	ld8	out2 = [r16]
	mov	b6 = r17
	stf.spill [r20] = f6, 32
	stf.spill [r21] = f7, 32
	;;
	stf.spill [r20] = f8, 32
	stf.spill [r21] = f9, 32
	;;
	stf.spill [r20] = f10, 32
	stf.spill [r21] = f11, 32
	;;
	stf.spill [r20] = f12, 32
	stf.spill [r21] = f13, 32
	;;
	stf.spill [r20] = f14
	stf.spill [r21] = f15
	br.call.sptk.many b0 = b6
	;;
	alloc	r14 = ar.pfs, 0, 0, 0, 0		// empty again, so that the register stack is as it was
	adds	r19 = CONTEXT(SIGNAL_CONTEXT_BSP), sp
	mov	r15 = __NR_rt_sigreturn
	;;
	ld8	r19 = [r19]
	mov	r18 = ar.bsp
	adds	r20 = CONTEXT(SIGNAL_CONTEXT_F6), sp
	adds	r21 = CONTEXT(SIGNAL_CONTEXT_F6 + 16), sp
	;;
	cmp.ne	p6, p0 = r18, r19
(p6)	br.cond.spnt.few switch_register_stack_back
	;;
return_from_signal:
	ldf.fill f6 = [r20], 32
	ldf.fill f7 = [r21], 32
	;;
	ldf.fill f8 = [r20], 32
	ldf.fill f9 = [r21], 32
	;;
	ldf.fill f10 = [r20], 32
	ldf.fill f11 = [r21], 32
	;;
	ldf.fill f12 = [r20], 32
	ldf.fill f13 = [r21], 32
	;;
	ldf.fill f14 = [r20]
	ldf.fill f15 = [r21]
	break.m	BREAK_SYSTEM_CALL
	;;

// To the backing store at r22. What of the program's callers is in the processor goes there if the RSE needs room; loadrs brings back as
// much, and with the old address it is in its place again.
	DESCRIBED
switch_register_stack:
	mov	ar.rsc = 0xc				// lazy, level 3
	adds	r19 = CONTEXT(SIGNAL_CONTEXT_BSPSTORE), sp
	adds	r20 = CONTEXT(SIGNAL_CONTEXT_RNAT), sp
	;;
	mov	r23 = ar.bspstore
	mov	r24 = ar.rnat
	adds	r21 = CONTEXT(SIGNAL_CONTEXT_LOADED), sp
	;;
	mov	ar.bspstore = r22
	st8	[r19] = r23
	st8	[r20] = r24
	;;
	mov	r18 = ar.bsp
	invala
	;;
	sub	r18 = r18, r22
	mov	ar.rsc = 0xf
	;;
	shl	r18 = r18, 16
	;;
	st8	[r21] = r18
	br.cond.sptk.few call_handler
	;;

	DESCRIBED
switch_register_stack_back:
	adds	r22 = CONTEXT(SIGNAL_CONTEXT_LOADED), sp
	adds	r23 = CONTEXT(SIGNAL_CONTEXT_BSPSTORE), sp
	adds	r24 = CONTEXT(SIGNAL_CONTEXT_RNAT), sp
	;;
	ld8	r22 = [r22]
	ld8	r23 = [r23]
	ld8	r24 = [r24]
	;;
	dep	r22 = -1, r22, 2, 2			// lazy, level 3
	;;
	mov	ar.rsc = r22
	;;
	loadrs
	;;
	mov	ar.bspstore = r23
	;;
	mov	ar.rnat = r24
	;;
	mov	ar.rsc = 0xf
	br.cond.sptk.few return_from_signal
	;;
	.endp	gate_signal
	.org	PAGE_SIZE

// Which calls have fast code, by number.
	.section .rodata
	.align	16
	.global	gate_calls
	.set	next, 0
	.set	otherwise, GATE_ADDRESS + (gate_by_break - gate_page)
gate_calls:
	entry	__NR_getpid, GATE_ADDRESS + (gate_getpid - gate_page)
	entry	__NR_getppid, GATE_ADDRESS + (gate_getppid - gate_page)
	entry	__NR_gettimeofday, GATE_ADDRESS + (gate_gettimeofday - gate_page)
	entry	(SYSTEM_CALL_FIRST + SYSTEM_CALLS), otherwise
