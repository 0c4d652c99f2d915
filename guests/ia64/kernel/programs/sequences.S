// Pairs of instructions whose latency is measured, and the code that measures them: on gate pages, so that a program
// can execute privileged instructions and read the performance monitor around them.
//
// void measure(struct counts *counts, void (*sequence)(void), long event)
//     programs counter 4 to count cycles and counter 5 to count `event`, prepares what the sequences need, runs the
//     sequence and stores the differences of both counters
// sequences: for each pair its name, the code with the two in groups that follow each other, and with 13 groups between
//     them, and what stands for nothing: two nops, which is what reading the counters counts by itself
//
// A sequence may use r2 as a result and finds in
//   r3  an address of the program's     r14  ar.rsc       r15  ar.bspstore    r17  the region register of r3
//   r18 ar.unat    r19 ar.rnat          r20  the user mask                    r21  the rest of PSR
//   r22 a protection key register's value; r16 its index
// r8 to r11 hold the counters. It ends at b6.

#include "layout.h"

#define PSR_PP (1 << 21)
#define COUNTER_CYCLES 0x12
// All levels, under PSR.pp.
#define COUNTER_CONTROL (0xf | 1 << 6 | 1 << 23)

	.macro	groups count
	.rept	\count
	nop.m	0
	;;
	.endr
	.endm

	.macro	sequence label, before, from, between, to, after
\label:
	\before
	groups	6
	mov	r8 = pmd[r40]
	;;
	mov	r9 = pmd[r41]
	;;
	groups	2
	\from
	;;
	groups	\between
	\to
	;;
	groups	2
	mov	r11 = pmd[r41]
	;;
	mov	r10 = pmd[r40]
	;;
	\after
	br.cond.sptk.many b6
	;;
	.endm

	// What stands for nothing is a pair of nops, or what is given.
	.macro	pair name, from, to, before, after, none
	sequence .Lnear\@, "\before", "\from", 0, "\to", "\after"
	sequence .Lapart\@, "\before", "\from", 13, "\to", "\after"
	.pushsection .rodata.sequences.names, "a"
.Lname\@: stringz "\name"
	.popsection
	.ifnb	\none
	sequence .Lnone\@, "\before", "\none", 0, "nop.m 0", "\after"
	.else
	.set	.Lnone\@, .Lnothing
	.endif
	.pushsection .data.sequences, "aw"
	data8	.Lname\@, .Lnear\@, .Lapart\@, .Lnone\@
	.popsection
	.endm

	.section .data.sequences, "aw"
	.align	16
	.global	sequences
sequences:

	.section .text.gate_sequences, "ax"
	.align	16384
	.global	gate_start
gate_start:

	sequence .Lnothing, "", "nop.m 0", 0, "nop.m 0", ""

	// Table 4
	pair	to-rsc/from-rsc, "mov ar.rsc = r14", "mov r2 = ar.rsc"
	pair	to-rsc/from-bsp, "mov ar.rsc = r14", "mov r2 = ar.bsp"
	pair	to-rsc/from-bspstore, "mov ar.rsc = r14", "mov r2 = ar.bspstore"
	pair	to-rsc/from-rnat, "mov ar.rsc = r14", "mov r2 = ar.rnat"
	pair	to-rsc/to-bspstore, "mov ar.rsc = r14", "mov ar.bspstore = r15"
	pair	to-rsc/to-rnat, "mov ar.rsc = r14", "mov ar.rnat = r19"
	pair	to-bspstore/from-rsc, "mov ar.bspstore = r15", "mov r2 = ar.rsc"
	pair	to-bspstore/from-bsp, "mov ar.bspstore = r15", "mov r2 = ar.bsp"
	pair	to-bspstore/to-rnat, "mov ar.bspstore = r15", "mov ar.rnat = r19"
	pair	from-bspstore/to-rnat, "mov r2 = ar.bspstore", "mov ar.rnat = r19"
	pair	from-bsp/to-rnat, "mov r2 = ar.bsp", "mov ar.rnat = r19"
	pair	from-rnat/to-unat, "mov r2 = ar.rnat", "mov ar.unat = r18"
	pair	from-unat/to-rnat, "mov r2 = ar.unat", "mov ar.rnat = r19"
	pair	to-unat/from-unat, "mov ar.unat = r18", "mov r2 = ar.unat"
	pair	to-rnat/from-rnat, "mov ar.rnat = r19", "mov r2 = ar.rnat"
	pair	from-unat/float, "mov r2 = ar.unat", "fmerge.s f6 = f6, f6"
	pair	to-bspstore/flushrs, "mov ar.bspstore = r15", "flushrs"
	pair	to-rsc/loadrs, "mov ar.rsc = r14", "loadrs"
	pair	to-bspstore/loadrs, "mov ar.bspstore = r15", "loadrs"
	pair	from-bspstore/loadrs, "mov r2 = ar.bspstore", "loadrs"
	pair	loadrs/loadrs, "loadrs", "loadrs", "", "", "loadrs" // less the cycle in front of the first

	// Table 5
	pair	epc/any, "{ .mib; nop.m 0; nop.i 0; epc; ;; }", "nop.m 0"
	pair	bsw/any, "{ .mib; nop.m 0; nop.i 0; bsw.0; ;; }", "nop.m 0", "nop.m 0", "bsw.1; ;;"
	pair	srlz.d/any, "srlz.d", "nop.m 0"
	pair	srlz.i/any, "srlz.i", "nop.m 0"
	pair	sum/any, "sum 0", "nop.m 0"
	pair	rum/any, "rum 0", "nop.m 0"
	pair	to-psr.um/any, "mov psr.um = r20", "nop.m 0"
	pair	sum/srlz.d, "sum 0", "srlz.d"
	pair	rum/srlz.d, "rum 0", "srlz.d"
	pair	to-psr.um/srlz.i, "mov psr.um = r20", "srlz.i"
	pair	ssm/srlz.d, "ssm 0", "srlz.d"
	pair	rsm/srlz.i, "rsm 0", "srlz.i"
	pair	to-psr.l/srlz.d, "mov psr.l = r21", "srlz.d"
	pair	from-psr/srlz.d, "mov r2 = psr", "srlz.d"
	pair	from-psr.um/srlz.d, "mov r2 = psr.um", "srlz.d"
	pair	to-rr/srlz.d, "mov rr[r3] = r17", "srlz.d"
	pair	to-rr/sync, "mov rr[r3] = r17", "sync.i"
	pair	to-rr/fwb, "mov rr[r3] = r17", "fwb"
	pair	to-rr/mf, "mov rr[r3] = r17", "mf"
	pair	to-rr/invala, "mov rr[r3] = r17", "invala"
	pair	to-pkr/srlz.d, "mov pkr[r16] = r22", "srlz.d"
	pair	to-pkr/mf, "mov pkr[r16] = r22", "mf"
	pair	probe/use, "probe.r r2 = r3, 3", "add r27 = r2, r2"
	pair	tpa/use, "tpa r2 = r3", "add r27 = r2, r2"
	pair	tak/use, "tak r2 = r3", "add r27 = r2, r2"
	pair	thash/use, "thash r2 = r3", "add r27 = r2, r2"
	pair	ttag/use, "ttag r2 = r3", "add r27 = r2, r2"

	// rfi goes on at the next bundle; both of its sequences are the same but for the groups behind it.
	.macro	return label, between
\label:
	mov	r2 = ip
	mov	r23 = psr
	;;
	adds	r2 = .Lbehind\@ - \label, r2
	rsm	PSR_IC
	;;
	srlz.i
	;;
	mov	cr.iip = r2
	mov	cr.ipsr = r23
	mov	cr.ifs = r0
	;;
	groups	16
	mov	r8 = pmd[r40]
	;;
	mov	r9 = pmd[r41]
	;;
	groups	2
	{ .mib; nop.m 0; nop.i 0; rfi; ;; }
.Lbehind\@:
	groups	\between
	nop.m	0
	;;
	groups	2
	mov	r11 = pmd[r41]
	;;
	mov	r10 = pmd[r40]
	;;
	br.cond.sptk.many b6
	;;
	.endm
	return	.Lreturn_near, 0
	return	.Lreturn_apart, 13
	.section .rodata.sequences.names, "a"
.Lname_return: stringz "rfi/any"
	.section .data.sequences, "aw"
	data8	.Lname_return, .Lreturn_near, .Lreturn_apart, .Lnothing
	data8	0, 0, 0, 0

	.section .text.gate_sequences, "ax"
	.global	measure_on_gate
	.proc	measure_on_gate
measure_on_gate:
{ .mib
	nop.m	0
	nop.i	0
	epc
	;;
}
	alloc	r35 = ar.pfs, 3, 7, 0, 0
	mov	r36 = ar.rsc
	mov	r37 = psr
	mov	b7 = r33
	;;
	rsm	PSR_I
	flushrs
	;;
	srlz.d
	mov	ar.rsc = 0xc				// level 3, lazy
	mov	r38 = ar.unat
	mov	r28 = 4
	mov	r29 = 5
	;;
	mov	r39 = ar.rnat
	mov	r15 = ar.bspstore
	mov	r40 = 4
	mov	r41 = 5
	dep.z	r26 = r34, 8, 8				// the event
	extr.u	r27 = r34, 16, 4			// its unit mask
	;;
	dep	r26 = r27, r26, 16, 4
	movl	r25 = COUNTER_CYCLES << 8 | COUNTER_CONTROL
	movl	r27 = COUNTER_CONTROL
	;;
	or	r26 = r26, r27
	mov	pmc[r28] = r25
	;;
	mov	pmc[r29] = r26
	mov	pmc[r0] = r0
	;;
	mov	pmd[r40] = r0
	mov	pmd[r41] = r0
	ssm	PSR_PP
	;;
	srlz.d
	mov	r3 = r32
	mov	r14 = 0xc
	mov	r18 = r38
	mov	r19 = r39
	mov	r20 = psr.um
	mov	r16 = 15
	;;
	mov	r17 = rr[r3]
	mov	r21 = psr
	mov	r22 = 0
	mov	r27 = ip
	;;
.Lhere:
	adds	r27 = .Lback - .Lhere + 16, r27
	;;
	mov	b6 = r27
	groups	20
	br.cond.sptk.many b7
	;;
	.align	16
.Lback:
	mov	psr.l = r37
	;;
	srlz.i
	sub	r10 = r10, r8
	sub	r11 = r11, r9
	adds	r14 = 8, r32
	;;
	st8	[r32] = r10
	st8	[r14] = r11
	mov	ar.unat = r38
	mov	ar.bspstore = r15
	;;
	mov	ar.rnat = r39
	;;
	mov	ar.rsc = r36
	mov	ar.pfs = r35
	br.ret.sptk.many rp
	.endp	measure_on_gate
	.align	16384
	.global	gate_end
gate_end:
