// A guest of the monitor: its beginning, its page faults, its interrupts.
//
// It begins as machine/start.S does: the first 16 MB are mapped one to one, and main(number, processors) runs in virtual
// mode. Region 1 is paged: the hardware walks a long-format VHPT, and a page that is not there is mapped on demand by a
// request to the monitor, by sidecall or by exit as the request page's mode says. Kernel register 0 holds the
// processor's number and kernel register 1 the address of its request page.

	.explicit
	.set HYPERCALL, 0x5ede
	.set EXIT, 0
	.set IDENTIFY, 5
	.set REQUEST, 0x41
	.set MAP, 2
	.set DONE, 2
	.set STACK_LOG2, 16
	.set IDENTITY_PAGE_LOG2, 24
	// present, write-back, accessed, dirty, privilege level 0, read, write and execute
	.set IDENTITY_ENTRY, 0x661
	.set DEVICES, 0xfe000000
	.set UNCACHEABLE, 4 << 2
	// psr: ic, dt, rt, it, bn
	.set STATUS, 1 << 13 | 1 << 17 | 1 << 27 | 1 << 36 | 1 << 44
	// The hashed page table: at 12 MB, behind the image.
	.set TABLE, 12 << 20
	.set TABLE_LOG2, 20
	// The slot of the request page that page faults use, and fields of it.
	.set FAULT_SLOT, 63 * 64
	.set MODE, 16
	// The bit of a page table entry that says: a page of a file.
	.set FILE_BIT, 53

	.section .text.start, "ax"
	.global _start
	.proc _start
_start:
	mov r15 = IDENTIFY
	;;
	break.m HYPERCALL	// r8: number, r9: processors
	;;
	mov r10 = ((1 << 8) | (14 << 2))
	movl r11 = 1 << 61
	mov r14 = (IDENTITY_PAGE_LOG2 << 2)
	movl r15 = IDENTITY_ENTRY
	;;
	mov rr[r0] = r10
	add r10 = (1 << 8) + 1, r10	// identifier 2, walked
	;;
	mov rr[r11] = r10
	mov cr.itir = r14
	mov cr.ifa = r0
	;;
	srlz.d
	;;
	itr.i itr[r0] = r15
	;;
	itr.d dtr[r0] = r15
	movl r10 = DEVICES
	movl r11 = DEVICES | IDENTITY_ENTRY | UNCACHEABLE
	mov r14 = 1
	;;
	mov cr.ifa = r10
	;;
	itr.d dtr[r14] = r11
	movl r10 = TABLE | ((TABLE_LOG2 << 2) | (1 << 8) | 1)
	;;
	mov cr.pta = r10
	;;
	srlz.i
	movl r2 = interruption_vectors
	;;
	mov cr.iva = r2
	movl r2 = STATUS
	movl r3 = virtual
	;;
	mov cr.ipsr = r2
	mov cr.iip = r3
	mov cr.ifs = r0
	mov ar.k0 = r8
	;;
	rfi
	;;
virtual:
	alloc r2 = ar.pfs, 0, 0, 2, 0
	mov ar.rsc = 0
	shl r3 = r8, STACK_LOG2
	movl gp = __gp
	movl r10 = stacks
	;;
	add r10 = r3, r10
	movl r11 = (1 << STACK_LOG2) - 16
	;;
	mov ar.bspstore = r10
	add sp = r11, r10
	;;
	mov ar.rnat = r0
	mov ar.rsc = 3
	mov out0 = r8
	mov out1 = r9
	br.call.sptk.many rp = main
	;;
	mov r15 = EXIT
	;;
	break.m HYPERCALL
	;;
	.endp _start

// long hypercall(function, first, second, third): r8
	.text
	.global hypercall
	.proc hypercall
hypercall:
	alloc r2 = ar.pfs, 4, 0, 0, 0
	mov r15 = in0
	mov r8 = in1
	mov r9 = in2
	mov r10 = in3
	;;
	break.m HYPERCALL
	;;
	br.ret.sptk.many rp
	;;
	.endp hypercall

// long request_by_exit(kind, first, second, third, status *): the result
	.global request_by_exit
	.proc request_by_exit
request_by_exit:
	alloc r2 = ar.pfs, 5, 0, 0, 0
	mov r15 = REQUEST
	mov r8 = in0
	mov r9 = in1
	mov r10 = in2
	mov r11 = in3
	;;
	break.m HYPERCALL
	;;
	st8 [in4] = r9
	br.ret.sptk.many rp
	;;
	.endp request_by_exit

// word covered(void): what `cover` leaves in IFS while collection is off, for a frame of four locals; the frame comes
// back by `rfi`, if IFS holds it.
	.global covered
	.proc covered
covered:
	alloc r2 = ar.pfs, 0, 4, 0, 0
	mov r9 = psr
	movl r10 = 1f
	;;
	rsm 1 << 13		// PSR.ic
	;;
	srlz.i
	;;
	mov cr.ifs = r0
	mov cr.iip = r10
	movl r11 = 1 << 44	// PSR.bn
	;;
	or r9 = r9, r11
	;;
	mov cr.ipsr = r9
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

// word hashed(word address): thash
	.global hashed
	.proc hashed
hashed:
	thash r8 = r32
	br.ret.sptk.many rp
	;;
	.endp hashed

	.macro unexpected number
	mov r15 = EXIT
	mov r8 = 100 + \number
	;;
	break.m HYPERCALL
	;;
	.endm

	.section .text.vectors, "ax"
	.balign 32768
	.global interruption_vectors
interruption_vectors:
	br.cond.sptk.many page_fault
	;;
	.org interruption_vectors + 0x400
	unexpected 1
	.org interruption_vectors + 0x800
	br.cond.sptk.many page_fault
	;;
	.set vector, 3
	.rept 9
	.org interruption_vectors + vector * 0x400
	unexpected vector
	.set vector, vector + 1
	.endr

	.org interruption_vectors + 0x3000
// External interrupts: counts them for this processor.
	mov r16 = cr.ivr
	mov r17 = ar.k0
	movl r18 = interrupts
	;;
	shladd r17 = r17, 3, r18
	;;
	srlz.d
	ld8 r19 = [r17]
	;;
	mov cr.eoi = r0
	add r19 = 1, r19
	;;
	srlz.d
	st8.rel [r17] = r19
	rfi
	;;

	.set vector, 13
	.rept 7
	.org interruption_vectors + vector * 0x400
	unexpected vector
	.set vector, vector + 1
	.endr
	.set vector, 20
	.rept 48
	.org interruption_vectors + 0x5000 + (vector - 20) * 0x100
	unexpected vector
	.set vector, vector + 1
	.endr
	.org interruption_vectors + 32768

// A page of region 1 is not there: asks the monitor to map it as `page_entries` says, and goes back. On register bank 0,
// so that r16 to r31 need not be saved.
	.text
page_fault:
	mov r16 = cr.ifa
	mov r31 = pr
	mov r20 = ar.k1
	movl r18 = page_entries
	;;
	shr.u r19 = r16, 61
	extr.u r17 = r16, 14, 12
	add r21 = MODE, r20
	;;
	cmp.ne p6, p0 = 1, r19
	shladd r17 = r17, 3, r18
	movl r22 = faults
(p6)	br.cond.spnt.few 9f
	;;
	ld8 r19 = [r17]			// the page table entry
	ld8 r21 = [r21]			// how requests are made now
	ld8 r23 = [r22]
	;;
	cmp.eq p6, p0 = r0, r19
	add r23 = 1, r23
	tbit.nz p8, p0 = r19, FILE_BIT
(p6)	br.cond.spnt.few 9f
	;;
	st8 [r22] = r23
	movl r22 = files_by_exit
	;;
	ld8 r22 = [r22]
	;;
	// A page of a file goes by exit where that is asked for, whatever the mode says.
(p8)	cmp.ne.unc p8, p0 = r0, r22
	dep r19 = 0, r19, FILE_BIT, 1
	dep r16 = 0, r16, 0, 14
	cmp.eq p6, p0 = r0, r21
	;;
(p8)	br.cond.spnt.few 2f
(p6)	br.cond.spnt.few 2f
	;;
	// By sidecall.
	movl r21 = FAULT_SLOT
	mov r22 = MAP
	;;
	add r21 = r21, r20
	;;
	add r23 = 8, r21
	add r24 = 16, r21
	add r25 = 24, r21
	add r26 = 32, r21
	add r27 = 48, r21
	;;
	st8 [r23] = r22
	st8 [r24] = r16
	st8 [r25] = r19
	st8 [r26] = r0
	st8 [r27] = r0
	mov r22 = 1
	;;
	st8.rel [r21] = r22
	;;
1:	ld8.acq r22 = [r21]
	;;
	cmp.leu p6, p7 = DONE, r22
(p7)	hint @pause
(p7)	br.cond.sptk.few 1b
	;;
	cmp.ne p6, p0 = DONE, r22
	st8 [r21] = r0
(p6)	br.cond.spnt.few 9f
	;;
	mov pr = r31, -1
	rfi
	;;
2:	// By exit.
	mov r24 = r8
	mov r25 = r9
	mov r26 = r10
	mov r27 = r11
	mov r28 = r15
	;;
	mov r8 = MAP
	mov r9 = r16
	mov r10 = r19
	mov r11 = r0
	mov r15 = REQUEST
	;;
	break.m HYPERCALL
	;;
	cmp.ne p6, p0 = DONE, r9
	mov r8 = r24
	mov r9 = r25
	mov r10 = r26
	mov r11 = r27
	mov r15 = r28
(p6)	br.cond.spnt.few 9f
	;;
	mov pr = r31, -1
	rfi
	;;
9:	unexpected 2
