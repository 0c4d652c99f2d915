// Changing from one task to another, and the floating-point state that moves lazily.
//
// `switch_context` is an ordinary function to its caller, so only preserved registers need saving: r4 to r7, b0 to b5,
// ar.pfs, ar.lc, ar.unat, the predicates, the stack pointer, and the register stack. The floating-point registers are
// not among them: kernel code uses f6 to f11 alone (they are part of each interruption's frame), and what a
// program has in the others stays in the processor until another program touches floating point (floating_point.c).

#include "layout.h"
#include "assembly.h"

	.text

// Saves what a call preserves, but for floating-point registers, as a `struct context` at r2, which the instruction `address`
// sets; r14 = ar.pfs of the caller. The whole register stack is in memory then, and ar.rsc is 0; r16 has what it was.
	.macro	save_preserved_at address:vararg
	flushrs						// every frame of this task to its own backing store
	mov	r15 = ar.unat
	\address
	mov	r20 = pr
	mov	r16 = ar.rsc
	mov	r21 = ar.lc
	;;
	mov	ar.rsc = 0
	adds	r3 = CONTEXT_R4, r2
	adds	r22 = CONTEXT_R4 + 8, r2
	mov	r23 = ar.fpsr
	;;
	mov	r17 = ar.rnat
	mov	r18 = ar.bspstore
	SPILL	[r3] = r4, 16
	SPILL_NEXT	[r22] = r5, 16
	mov	r24 = b0
	;;
	SPILL	[r3] = r6
	SPILL_NEXT	[r22] = r7
	adds	r3 = CONTEXT_SP, r2
	adds	r22 = CONTEXT_UNAT, r2
	mov	r25 = b1
	;;
	mov	r19 = ar.unat
	st8	[r3] = sp, 16
	st8	[r22] = r15, 16				// unat
	mov	r26 = b2
	;;
	st8	[r3] = r19, 16				// spill_unat
	st8	[r22] = r17, 16				// rnat
	mov	r27 = b3
	;;
	st8	[r3] = r18, 16				// bspstore
	st8	[r22] = r14, 16				// pfs
	mov	r28 = b4
	;;
	st8	[r3] = r21, 16				// lc
	st8	[r22] = r20, 16				// predicates
	mov	r29 = b5
	;;
	st8	[r3] = r23, 16				// fpsr
	st8	[r22] = r24, 16				// b0
	;;
	st8	[r3] = r25, 16				// b1 to b5 in CONTEXT_B0 + 8 ..
	st8	[r22] = r26, 16
	;;
	st8	[r3] = r27
	st8	[r22] = r28
	adds	r3 = CONTEXT_R4 + 32, r2
	;;
	st8	[r3] = r29
	.endm

// void switch_context(struct context **save, struct context *next, struct task *task)
ENTRY(switch_context)
	alloc	r14 = ar.pfs, 3, 0, 0, 0
	;;
	save_preserved_at adds r2 = -CONTEXT_SIZE, sp
	st8	[in0] = r2
	mov	r2 = in1
	mov	r13 = in2
	mov	KR_CURRENT = in2
	;;
	// From here on it is the other task.
	adds	r3 = CONTEXT_BSPSTORE, r2
	adds	r22 = CONTEXT_RNAT, r2
	;;
	ld8	r18 = [r3]
	ld8	r17 = [r22]
	invala
	;;
	loadrs						// nothing of the old task stays (ar.rsc.loadrs is 0)
	;;
	mov	ar.bspstore = r18
	;;
	mov	ar.rnat = r17
	;;
	mov	ar.rsc = r16
	adds	r3 = CONTEXT_SPILL_UNAT, r2
	adds	r22 = CONTEXT_UNAT, r2
	;;
	ld8	r19 = [r3]
	ld8	r15 = [r22]
	adds	r3 = CONTEXT_R4, r2
	adds	r22 = CONTEXT_R4 + 8, r2
	;;
	mov	ar.unat = r19
	;;
	ld8.fill r4 = [r3], 16
	ld8.fill r5 = [r22], 16
	;;
	ld8.fill r6 = [r3], 16
	ld8.fill r7 = [r22]
	adds	r22 = CONTEXT_SP, r2
	;;
	ld8	r29 = [r3]
	ld8	sp = [r22], CONTEXT_PFS - CONTEXT_SP
	adds	r3 = CONTEXT_LC, r2
	;;
	ld8	r14 = [r22], 16				// pfs
	ld8	r21 = [r3], 16				// lc
	mov	ar.unat = r15
	;;
	ld8	r20 = [r22], 16				// predicates
	ld8	r23 = [r3], 16				// fpsr
	mov	b5 = r29
	;;
	ld8	r24 = [r22], 16				// b0
	ld8	r25 = [r3], 16				// b1
	mov	ar.pfs = r14
	;;
	ld8	r26 = [r22], 16				// b2
	ld8	r27 = [r3]				// b3
	mov	ar.lc = r21
	;;
	ld8	r28 = [r22]				// b4
	mov	ar.fpsr = r23
	mov	pr = r20, -1
	mov	b0 = r24
	;;
	mov	b1 = r25
	mov	b2 = r26
	mov	b3 = r27
	;;
	mov	b4 = r28
	br.ret.sptk.many b0
END(switch_context)

// void save_context(struct context *context): as switch_context does, but goes on. For who wants to unwind from its caller.
ENTRY(save_context)
	alloc	r14 = ar.pfs, 1, 0, 0, 0
	;;
	save_preserved_at mov r2 = in0
	mov	ar.unat = r15
	mov	ar.rsc = r16
	br.ret.sptk.many rp
END(save_context)

// void save_floating_low(void *area): f2 to f5 and f12 to f31, which the kernel never uses
ENTRY(save_floating_low)
	alloc	r14 = ar.pfs, 1, 0, 0, 0
	adds	r2 = 16, in0
	;;
#define SAVE(a, b) \
	stf.spill [in0] = a, 32; \
	stf.spill [r2] = b, 32; \
	;;
	SAVE(f2, f3) SAVE(f4, f5)
	SAVE(f12, f13) SAVE(f14, f15) SAVE(f16, f17) SAVE(f18, f19) SAVE(f20, f21)
	SAVE(f22, f23) SAVE(f24, f25) SAVE(f26, f27) SAVE(f28, f29) SAVE(f30, f31)
	br.ret.sptk.many rp
END(save_floating_low)

// void load_floating_low(const void *area)
ENTRY(load_floating_low)
	alloc	r14 = ar.pfs, 1, 0, 0, 0
	adds	r2 = 16, in0
	;;
#define LOAD(a, b) \
	ldf.fill a = [in0], 32; \
	ldf.fill b = [r2], 32; \
	;;
	LOAD(f2, f3) LOAD(f4, f5)
	LOAD(f12, f13) LOAD(f14, f15) LOAD(f16, f17) LOAD(f18, f19) LOAD(f20, f21)
	LOAD(f22, f23) LOAD(f24, f25) LOAD(f26, f27) LOAD(f28, f29) LOAD(f30, f31)
	br.ret.sptk.many rp
END(load_floating_low)

#define HIGH(pair) \
	pair(f32, f33) pair(f34, f35) pair(f36, f37) pair(f38, f39) pair(f40, f41) pair(f42, f43) \
	pair(f44, f45) pair(f46, f47) pair(f48, f49) pair(f50, f51) pair(f52, f53) pair(f54, f55) \
	pair(f56, f57) pair(f58, f59) pair(f60, f61) pair(f62, f63) pair(f64, f65) pair(f66, f67) \
	pair(f68, f69) pair(f70, f71) pair(f72, f73) pair(f74, f75) pair(f76, f77) pair(f78, f79) \
	pair(f80, f81) pair(f82, f83) pair(f84, f85) pair(f86, f87) pair(f88, f89) pair(f90, f91) \
	pair(f92, f93) pair(f94, f95) pair(f96, f97) pair(f98, f99) pair(f100, f101) pair(f102, f103) \
	pair(f104, f105) pair(f106, f107) pair(f108, f109) pair(f110, f111) pair(f112, f113) pair(f114, f115) \
	pair(f116, f117) pair(f118, f119) pair(f120, f121) pair(f122, f123) pair(f124, f125) pair(f126, f127)

// void save_floating_high(void *area): f32 to f127
ENTRY(save_floating_high)
	alloc	r14 = ar.pfs, 1, 0, 0, 0
	adds	r2 = 16, in0
	;;
	HIGH(SAVE)
	br.ret.sptk.many rp
END(save_floating_high)

// void load_floating_high(const void *area)
ENTRY(load_floating_high)
	alloc	r14 = ar.pfs, 1, 0, 0, 0
	adds	r2 = 16, in0
	;;
	HIGH(LOAD)
	br.ret.sptk.many rp
END(load_floating_high)

// long copy_user(void *to, const void *from, size_t bytes)
//
// Copies between the kernel and a program. Answers the bytes that are left when a page cannot be reached: the fault handler
// goes on at `copy_user_fault` for any instruction between `copy_user` and `copy_user_end`.
	.global	copy_user_end, copy_user_fault
ENTRY(copy_user)
	alloc	r14 = ar.pfs, 3, 0, 0, 0
	or	r15 = in0, in1
	;;
	and	r15 = 7, r15
	cmp.eq	p8, p0 = r0, in2
(p8)	br.cond.spnt.few 3f
	;;
	cmp.ne	p6, p7 = r0, r15
(p6)	br.cond.spnt.few 2f
	;;
1:	cmp.gtu	p6, p7 = 8, in2				// eight bytes at a time
(p6)	br.cond.dpnt.few 2f
	;;
	ld8	r16 = [in1], 8
	;;
	st8	[in0] = r16, 8
	adds	in2 = -8, in2
	br.sptk.few 1b
	;;
2:	cmp.eq	p6, p7 = r0, in2
(p6)	br.cond.dpnt.few 3f
	;;
	ld1	r16 = [in1], 1
	;;
	st1	[in0] = r16, 1
	adds	in2 = -1, in2
	br.sptk.few 2b
	;;
copy_user_end:
3:	nop.m	0
copy_user_fault:
	mov	r8 = in2
	br.ret.sptk.many rp
END(copy_user)
