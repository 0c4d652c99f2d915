// Made of first.S by the script `schedule`: a list scheduler that takes each latency of a system instruction for one cycle.
 .section .text.gate.fast, "ax"
 .global ipc_scheduled
 .proc ipc_scheduled
ipc_scheduled:
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
	add r2 = r9, r10
	add r3 = r11, r14
	add r4 = r16, r17
}
{	.mmi
	add r5 = r18, r19
	add r6 = r20, r21
	add r7 = r22, r23
	;;
}
{	.mmi
	rsm (1 << 14)
	add r8 = gp, sp
	extr.u r24 = r9, 32, 3
}
{	.mmi
	add r2 = r2, r3
	add r4 = r4, r5
	add r6 = r6, r7
	;;
}
{	.mmi
	add r8 = r8, tp
	add r2 = r2, r4
	shl r24 = r24, 12
}
{	.mlx
	mov ar.rsc = 0
	movl r3 = tcbs
	;;
}
{	.mmi
	add r6 = r6, r8
	add r3 = r3, r24
	nop.i	0
	;;
}
{	.mmi
	add r2 = r2, r6
	ld8.s r24 = [r3]	// identity
	adds r25 = 32, r3
}
{	.mmi
	adds r26 = 40, r3
	adds r27 = 8, r3
	adds r5 = 24, r3
	;;
}
{	.mmi
	ld8.s r25 = [r25]
	ld8.s r26 = [r26]
	tnat.nz p6, p0 = r2
}
{	.mib
	mov r2 = ar.k6
	nop.i	0
	(p6) br.cond.spnt.few ipc_slow
	;;
}
{	.mmi
	ld8 r4 = [r2]	// this thread's identity
	cmp.ne p6, p0 = r24, r9	// no such thread
	extr.u r24 = r11, 6, 16 - 6
}
{	.mib
	adds r28 = 8, r2
	adds r29 = 16, r2
	(p6) br.cond.spnt.few ipc_slow
	;;
}
{	.mmi
	ld8 r27 = [r27]
	ld8 r29 = [r29]
	adds r6 = 24, r2
}
{	.mib
	cmp.ne p6, p0 = 1, r25	// does not wait, or not for ever
	adds r7 = 64, r2
	(p6) br.cond.spnt.few ipc_slow
	;;
}
{	.mmi
	ld8 r5 = [r5]
	ld8 r28 = [r28]
	mov r25 = ar.pfs
}
{	.mmi
	cmp.eq p6, p7 = (-1), r26
	nop.m	0
	nop.i	0
	;;
}
{	.mmi
	ld8 r6 = [r6]
	(p7) cmp.ne.unc p8, p0 = r26, r4	// waits for somebody else
	cmp.eq p6, p7 = (-1), r10
}
{	.mib
	or r27 = r27, r28
	nop.i	0
	(p8) br.cond.spnt.few ipc_slow
	;;
}
{	.mib
	(p7) cmp.ne.unc p8, p0 = r9, r10	// wants the answer from somebody else
	nop.i	0
	(p8) br.cond.spnt.few ipc_slow
	;;
}
{	.mmi
	(p6) cmp.ne.unc p8, p0 = r0, r29	// wants any message, and there is one
	cmp.ne p6, p0 = r0, r24	// typed items, or flags
	and r24 = 0x3f, r11
}
{	.mbb
	nop.m	0
	(p8) br.cond.spnt.few ipc_slow
	(p6) br.cond.spnt.few ipc_slow
	;;
}
{	.mib
	cmp.ltu p6, p0 = 8, r24	// more than fits in registers
	zxt2 r24 = r14
	(p6) br.cond.spnt.few ipc_slow
	;;
}
{	.mib
	cmp.ne p6, p0 = r0, r24	// does not wait for the answer, or not for ever
	nop.i	0
	(p6) br.cond.spnt.few ipc_slow
	;;
}
{	.mib
	cmp.ne p6, p0 = r0, r27	// one of them has more to exchange
	mov r27 = rp
	(p6) br.cond.spnt.few ipc_slow
	;;
}
{	.mib
	cmp.eq p6, p0 = r5, r6	// in one space, where senders have other names
	adds r6 = 72, r2
	(p6) br.cond.spnt.few ipc_slow
	;;
}
{	.mmi
	mov r29 = psr
	st8 [r6] = gp, 16
	mov r9 = r4
	;;
}
{	.mmi
	mov r28 = ar.unat
	;;
	mov ar.k7 = r5
	nop.i	0
}
{	.mmi
	st8 [r7] = r30, 16	// rsc
	nop.m	0
	nop.i	0
	;;
}
{	.mmi
	mov ar.k6 = r3
	st8 [r7] = r25, 16	// pfs
	nop.i	0
	;;
}
{	.mmi
	flushrs
	nop.m	0
	nop.i	0
	;;
}
{	.mmi
	mov r24 = ar.bspstore
	nop.m	0
	nop.i	0
	;;
}
{	.mmi
	mov r26 = ar.rnat
	st8 [r6] = r24, 16	// bspstore
	nop.i	0
}
{	.mlx
	nop.m	0
	movl r24 = return_to_program
	;;
}
{	.mmi
	st8 [r7] = r26, 16	// rnat
	st8 [r6] = r28, 16	// unat
	nop.i	0
	;;
}
{	.mmi
	st8 [r7] = r31, 16	// predicates
	st8 [r6] = r29, 16	// psr
	nop.i	0
	;;
}
{	.mmi
	st8 [r7] = sp, 16
	st8 [r6] = r27, 16	// rp
	nop.i	0
	;;
}
{	.mmi
	st8 [r7] = tp
	st8 [r6] = r24	// continuation
	adds r7 = 64, r3
}
{	.mmi
	adds r6 = 72, r3
	invala	// nor of its advanced loads
	nop.i	0
	;;
}
{	.mmi
	ld8 r30 = [r7], 16	// rsc
	ld8 gp = [r6], 16
	nop.i	0
	;;
}
{	.mmi
	ld8 r25 = [r7], 16	// pfs
	ld8 r24 = [r6], 16	// bspstore
	nop.i	0
	;;
}
{	.mmi
	ld8 r26 = [r7], 16	// rnat
	ld8 r28 = [r6], 16	// unat
	mov ar.pfs = r25
}
{	.mmi
	mov ar.bspstore = r24
	adds r24 = 48, r3
	mov r25 = 1
	;;
}
{	.mmi
	ld8 r29 = [r6], 16	// psr
	mov ar.rnat = r26
	nop.i	0
}
{	.mmi
	ld8 r24 = [r24]
	nop.m	0
	nop.i	0
	;;
}
{	.mmi
	ld8 r31 = [r7], 16	// predicates
	ld8 r27 = [r6]	// rp
	nop.i	0
}
{	.mmi
	mov rr[r0] = r24
	adds r24 = 32, r2
	nop.i	0
	;;
}
{	.mmi
	ld8 sp = [r7], 16
	mov psr.l = r29
	mov rp = r27
}
{	.mmi
	st8 [r24] = r25, 40 - 32
	nop.m	0
	nop.i	0
	;;
}
{	.mmi
	mov ar.unat = r28
	st8 [r24] = r10
	adds r24 = 32, r3
}
{	.mmi
	srlz.d	// for loads and for what is fetched
	;;
	ld8 tp = [r7]
	mov pr = r31, -1
}
{	.mmi
	st8 [r24] = r0	// STATE_RUNNING
	adds r24 = 56, r3
	nop.i	0
	;;
}
{	.mmi
	ld8 r24 = [r24]
	nop.m	0
	nop.i	0
	;;
}
{	.mmi
	mov ar.k5 = r24
	nop.m	0
	nop.i	0
	;;
}
{	.mmi
	loadrs	// nothing of the sender's stays in the register stack
	mov ar.rsc = r30
	nop.i	0
	;;
}
{	.mib
	ssm (1 << 14)
	nop.i	0
	br.ret.sptk.many rp
	;;
}
 .endp ipc_scheduled
