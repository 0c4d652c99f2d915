// Made of first.S by the script `schedule`: the fewest cycles, by the solver.
 .section .text.gate.fast, "ax"
 .global ipc_measured
 .proc ipc_measured
ipc_measured:
 // schedule: dead at ipc_slow: r2-r8, r15, r24-r29, p6-p15, ar.rsc, stack
 // schedule: dead at return: r2-r8, r14, r15, r24-r31
 // schedule: apart: r2, r3, stack
 // schedule: resident: r2, r3
 // schedule: addressing kept
 // schedule: fetching kept
 // 1. Privilege. What the checks need is kept, for the slow path as well.
{	.mib
	mov r30 = ar.rsc
	mov r31 = pr
	epc
	;;
}
{	.mmi
	add r4 = r16, r17
	add r5 = r18, r19
	extr.u r24 = r9, 32, 3
}
{	.mmi
	add r6 = r20, r21
	mov r2 = ar.k6
	add r7 = r22, r23
	;;
}
{	.mmi
	rsm (1 << 14)
	add r29 = r4, r5
	shl r5 = r24, 12
}
{	.mlx
	cmp.eq p6, p7 = (-1), r10
	movl r3 = tcbs
	;;
}
{	.mmi
	add r24 = r6, r7
	add r7 = r3, r5
	(p7) cmp.ne.unc p8, p0 = r9, r10	// wants the answer from somebody else
}
{	.mmi
	mov ar.rsc = 0
	add r6 = r11, r14
	add r8 = gp, sp
	;;
}
{	.mmi
	ld8.s r5 = [r7]	// identity
	adds r26 = 40, r7
	adds r27 = 8, r7
}
{	.mib
	nop.m	0
	nop.i	0
	(p8) br.cond.spnt.few ipc_slow
	;;
}
{	.mmi
	flushrs
	ld8.s r3 = [r26]
	cmp.ne p7, p0 = r5, r9	// no such thread
}
{	.mmi
	adds r5 = 48, r7
	add r26 = r9, r10
	adds r25 = 32, r7
	;;
}
{	.mmi
	ld8.s r4 = [r27]
	ld8.s r27 = [r5]
	add r5 = r26, r6
}
{	.mmi
	mov r28 = ar.unat
	;;
	add r26 = r8, tp
	nop.i	0
}
{	.mib
	ld8.s r8 = [r25]
	adds r25 = 56, r7
	(p7) br.cond.spnt.few ipc_slow
	;;
}
{	.mmi
	add r6 = r24, r26
	adds r26 = 24, r7
	cmp.ne p15, p0 = 1, r8	// does not wait, or not for ever
}
{	.mib
	ld8.s r8 = [r25]
	and r24 = 0x3f, r11
	(p15) br.cond.spnt.few ipc_slow
	;;
}
{	.mmi
	add r25 = r5, r29
	ld8.s r5 = [r26]
	extr.u r26 = r11, 6, 16 - 6
}
{	.mib
	cmp.ltu p15, p0 = 8, r24	// more than fits in registers
	nop.i	0
	(p15) br.cond.spnt.few ipc_slow
	;;
}
{	.mmi
	add r24 = r25, r6
	cmp.ne p7, p0 = r0, r26	// typed items, or flags
	zxt2 r26 = r14
}
{	.mib
	nop.m	0
	nop.i	0
	(p7) br.cond.spnt.few ipc_slow
	;;
}
{	.mmi
	cmp.ne p8, p0 = r0, r26	// does not wait for the answer, or not for ever
	nop.m	0
	tnat.nz p15, p0 = r24
}
{	.mbb
	nop.m	0
	(p15) br.cond.spnt.few ipc_slow
	(p8) br.cond.spnt.few ipc_slow
	;;
}
{	.mmi
	ld8 r26 = [r2]	// this thread's identity
	adds r24 = 8, r2
	adds r29 = 16, r2
}
{	.mmi
	cmp.eq p15, p8 = (-1), r3
	adds r6 = 24, r2
	nop.i	0
	;;
}
{	.mmi
	ld8 r25 = [r24]
	ld8 r24 = [r29]
	(p8) cmp.ne.unc p15, p0 = r3, r26	// waits for somebody else
}
{	.mib
	adds r3 = 72, r7
	nop.i	0
	(p15) br.cond.spnt.few ipc_slow
	;;
}
{	.mmi
	ld8 r29 = [r6]
	(p6) cmp.ne.unc p8, p0 = r0, r24	// wants any message, and there is one
	or r24 = r4, r25
}
{	.mib
	adds r6 = 72, r2
	adds r4 = 64, r2
	(p8) br.cond.spnt.few ipc_slow
	;;
}
{	.mmi
	mov r25 = ar.bspstore
	cmp.ne p6, p0 = r0, r24	// one of them has more to exchange
	cmp.eq p8, p0 = r5, r29	// in one space, where senders have other names
}
{	.mbb
	nop.m	0
	(p6) br.cond.spnt.few ipc_slow
	(p8) br.cond.spnt.few ipc_slow
	;;
}
{	.mmi
	mov r24 = psr
	nop.m	0
	nop.i	0
	;;
}
{	.mmi
	mov r9 = ar.rnat
	st8 [r6] = gp, 16
	mov r29 = ar.pfs
}
{	.mmi
	ld8 gp = [r3], 16
	nop.m	0
	nop.i	0
	;;
}
{	.mmi
	mov rr[r0] = r27
	st8 [r4] = r30, 16	// rsc
	nop.i	0
}
{	.mmi
	ld8 r30 = [r3], 16	// bspstore
	nop.m	0
	nop.i	0
	;;
}
{	.mmi
	mov ar.bspstore = r30
	st8 [r4] = r29, 16	// pfs
	adds r30 = 64, r7
	;;
}
{	.mmi
	ld8 r29 = [r30], 16	// rsc
	mov ar.k6 = r7
	nop.i	0
	;;
}
{	.mmi
	mov ar.k7 = r5
	nop.m	0
	nop.i	0
	;;
}
{	.mmi
	mov ar.k5 = r8
	st8 [r4] = r9, 16	// rnat
	mov r9 = r26
}
{	.mmi
	ld8 r26 = [r30], 16	// pfs
	ld8 r8 = [r3], 16	// unat
	nop.i	0
	;;
}
{	.mmi
	st8 [r4] = r31, 16	// predicates
	ld8 r31 = [r30], 16	// rnat
	nop.i	0
	;;
}
{	.mmi
	st8 [r4] = sp, 16
	ld8 r12 = [r3], 16	// psr
	nop.i	0
	;;
}
{	.mmi
	mov ar.rnat = r31
	nop.m	0
	nop.i	0
	;;
}
{	.mmi
	ld8 r31 = [r30], 16	// predicates
	mov psr.l = r12
	nop.i	0
}
{	.mmi
	st8 [r6] = r25, 16	// bspstore
	nop.m	0
	nop.i	0
	;;
}
{	.mmi
	st8 [r6] = r28, 16	// unat
	adds r28 = 32, r7
	mov r7 = rp
}
{	.mmi
	st8 [r4] = tp
	nop.m	0
	nop.i	0
	;;
}
{	.mmi
	ld8 r27 = [r3]	// rp
	mov ar.unat = r8
	mov r25 = 1
}
{	.mmi
	st8 [r6] = r24, 16	// psr
	ld8 sp = [r30], 16
	adds r24 = 32, r2
	;;
}
{	.mmi
	loadrs	// nothing of the sender's stays in the register stack
	mov ar.rsc = r29
	mov rp = r27
}
{	.mlx
	st8 [r6] = r7, 16	// rp
	movl r7 = return_to_program
	;;
}
{	.mmi
	st8 [r6] = r7	// continuation
	invala	// nor of its advanced loads
	mov ar.pfs = r26
}
{	.mmi
	st8 [r24] = r25, 40 - 32
	nop.m	0
	nop.i	0
	;;
}
{	.mmi
	st8 [r24] = r10
	st8 [r28] = r0	// STATE_RUNNING
	nop.i	0
}
{	.mmi
	srlz.d	// for loads and for what is fetched
	;;
	ld8 tp = [r30]
	mov pr = r31, -1
}
{	.mib
	ssm (1 << 14)
	nop.i	0
	br.ret.sptk.many rp
	;;
}
 .endp ipc_measured
