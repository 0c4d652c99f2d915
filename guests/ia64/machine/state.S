// Processor state that is hard to virtualise, handled by instructions that C cannot say.
//
// The vector table here knows one interruption: a data reference or one of the register stack engine misses the TLB. Page n of
// regions 1 and 4 is where page_table[n] says. The handler counts the misses, and those that find an incomplete register
// frame; with `covers` set it covers the interrupted frame first, as a handler does that goes on to call functions.

	.explicit
	.set HYPERCALL, 0x5ede
	.set EXIT, 0
	.set IC, 1 << 13
	.set TRANSLATION, 1 << 17 | 1 << 27 | 1 << 36	// dt, rt, it
	.set BN, 1 << 44
	.set INCOMPLETE, 38				// isr.ir
	.set PAGE_LOG2, 14

	.macro unexpected number
	mov r15 = EXIT
	mov r8 = 100 + \number
	;;
	break.m HYPERCALL
	;;
	.endm

	.section .text.vectors, "ax"
	.balign 32768
	.global state_vectors
state_vectors:
	.set vector, 0
	.rept 4
	.org state_vectors + vector * 0x400
	unexpected vector
	.set vector, vector + 1
	.endr
	.org state_vectors + 0x1000
	mov r22 = pr
	mov r16 = cr.ifa
	movl r18 = page_table
	;;
	extr.u r17 = r16, PAGE_LOG2, 8
	mov r23 = cr.isr
	movl r24 = misses
	;;
	shladd r17 = r17, 3, r18
	tbit.nz p6, p0 = r23, INCOMPLETE
	ld8 r25 = [r24], 8			// misses
	;;
	ld8 r19 = [r17]
	add r25 = 1, r25
	ld8 r26 = [r24], 8			// incomplete_frames
	;;
	ld8 r27 = [r24], -16			// covers
	;;
	st8 [r24] = r25, 8
(p6)	add r26 = 1, r26
	cmp.ne p7, p0 = r0, r27
	;;
	st8 [r24] = r26
	itc.d r19
(p7)	br.cond.dpnt.few 1f
	;;
	mov pr = r22, -1
	rfi
	;;
1:	cover
	;;
	srlz.d
	;;
	mov r28 = cr.ifs
	;;
	tbit.z p6, p0 = r28, 63			// cover has made it valid
(p6)	br.cond.spnt.few 2f
	;;
	mov pr = r22, -1
	rfi
	;;
2:	unexpected 4
	.set vector, 5
	.rept 15
	.org state_vectors + vector * 0x400
	unexpected vector
	.set vector, vector + 1
	.endr
	.set vector, 20
	.rept 48
	.org state_vectors + 0x5000 + (vector - 20) * 0x100
	unexpected vector
	.set vector, vector + 1
	.endr
	.org state_vectors + 32768

	.data
	.balign 16
	.global misses, incomplete_frames, covers
misses:			.quad 0
incomplete_frames:	.quad 0
covers:			.quad 0

	.text

// Goes on at the next instruction with PSR = \status; r21 and r22 are destroyed.
	.macro go_on_with status
	rsm IC
	movl r22 = .Lthere\@
	;;
	srlz.i
	;;
	mov cr.ipsr = \status
	mov cr.iip = r22
	mov cr.ifs = r0
	;;
	srlz.d
	;;
	rfi
	;;
.Lthere\@:
	.endm

// word in_mode(word mode, word address, word backing_store): what a load of `address` finds where PSR.dt, rt and it are as
// in `mode`. Meanwhile eleven registers go to the register stack at `backing_store`: the three arguments and 1 to 8.
	.global in_mode
	.proc in_mode
in_mode:
	alloc r31 = ar.pfs, 3, 0, 0, 0
	mov r30 = rp
	mov r29 = ar.rsc
	movl r25 = TRANSLATION
	movl r23 = BN
	;;
	flushrs
	mov ar.rsc = 0
	;;
	mov r28 = ar.bspstore
	mov r27 = ar.rnat
	mov r26 = psr
	;;
	andcm r24 = r26, r25
	or r26 = r26, r23
	or r20 = r32, r23
	;;
	or r24 = r24, r20
	;;
	go_on_with r24
	mov ar.bspstore = r34
	;;
	mov ar.rnat = r0
	ld8 r8 = [r33]
	;;
	br.call.sptk.many rp = push_eight
	;;
	go_on_with r26
	mov ar.bspstore = r28
	;;
	mov ar.rnat = r27
	;;
	mov ar.rsc = r29
	mov ar.pfs = r31
	mov rp = r30
	;;
	br.ret.sptk.many rp
	;;
	.endp in_mode

	.proc push_eight
push_eight:
	alloc r18 = ar.pfs, 0, 8, 0, 0
	mov r19 = rp
	mov r32 = 1
	mov r33 = 2
	mov r34 = 3
	mov r35 = 4
	mov r36 = 5
	mov r37 = 6
	mov r38 = 7
	mov r39 = 8
	;;
	br.call.sptk.many rp = flush
	;;
	mov ar.pfs = r18
	mov rp = r19
	;;
	br.ret.sptk.many rp
	;;
	.endp push_eight

	.proc flush
flush:
	flushrs
	;;
	br.ret.sptk.many rp
	;;
	.endp flush

// word on_backing_store(word (*entry)(word), word argument, word backing_store): the function's result, its register stack
// at `backing_store`.
	.global on_backing_store
	.proc on_backing_store
on_backing_store:
	alloc r35 = ar.pfs, 3, 5, 1, 0
	mov r36 = rp
	mov r37 = ar.rsc
	;;
	flushrs
	mov ar.rsc = 0
	ld8 r14 = [r32], 8
	;;
	mov r38 = ar.bspstore
	mov r39 = ar.rnat
	mov b6 = r14
	;;
	mov ar.bspstore = r34
	mov out0 = r33
	;;
	mov ar.rnat = r0
	br.call.sptk.many rp = b6
	;;
	mov ar.bspstore = r38
	;;
	mov ar.rnat = r39
	;;
	mov ar.rsc = r37
	mov ar.pfs = r35
	mov rp = r36
	;;
	br.ret.sptk.many rp
	;;
	.endp on_backing_store

// word covered(void): what `cover` leaves in IFS while collection is off, for a frame of four locals; the frame comes back
// by `rfi`, if IFS holds it.
	.global covered
	.proc covered
covered:
	alloc r2 = ar.pfs, 0, 4, 0, 0
	mov r9 = psr
	movl r10 = 1f
	movl r11 = BN
	;;
	rsm IC
	or r9 = r9, r11
	;;
	srlz.i
	;;
	mov cr.ifs = r0
	mov cr.iip = r10
	mov cr.ipsr = r9
	;;
	srlz.d
	;;
	cover
	;;
	srlz.d
	;;
	mov r8 = cr.ifs
	;;
	rfi
	;;
1:	mov ar.pfs = r2
	br.ret.sptk.many rp
	;;
	.endp covered
