// Loops around one system call, and a C library's way to it.
//
// void loop_CALL_WAY_LINK(long count, long first, long second)
//     CALL  getpid, getppid, gettimeofday
//     WAY   break, epc
//     LINK  static: the loop calls the library's function; dynamic: it goes through an import stub, which takes the
//           function's address and global pointer from a table, as for a function of a shared library
// void loop_empty(long count, long first, long second)
//     the loop itself
//
// The library's function sets the number, enters the kernel, and turns r10 into an error. By `epc` it has to find the
// gate page first (a word in memory says where) and calls it, so it needs a frame of its own.

#include <asm/unistd.h>

	.macro	begin name
	.global	\name
	.proc	\name
\name:
	.endm

	.macro	import function
	.text
	begin	\function\()_import
	addl	r15 = @gprel(imports_\function), gp
	;;
	ld8.acq	r16 = [r15], 8
	mov	r14 = gp
	;;
	ld8	gp = [r15]
	mov	b6 = r16
	br.few	b6
	.endp	\function\()_import

	.section .sdata, "aws"
	.align	16
imports_\function:
	data16.ua @iplt(\function)
	.text
	.endm

	.macro	library call number
	.text
	begin	\call\()_break
	mov	r15 = \number
	break.i	0x100000
	;;
	cmp.eq	p6, p0 = -1, r10
(p6)	br.cond.spnt.few failed
	br.ret.sptk.many rp
	.endp	\call\()_break

	begin	\call\()_epc
	.prologue
	addl	r2 = @gprel(gate), gp
	.save	ar.pfs, r34
	alloc	r34 = ar.pfs, 2, 1, 2, 0
	;;
	.body
	ld8	r2 = [r2]
	mov	r15 = \number
	mov	r35 = r32
	mov	r36 = r33
	;;
	mov	b7 = r2
	br.call.sptk.many b6 = b7
	;;
	cmp.eq	p6, p0 = -1, r10
	mov	ar.pfs = r34
(p6)	br.cond.spnt.few failed
	br.ret.sptk.many rp
	.endp	\call\()_epc

	import	\call\()_break
	import	\call\()_epc

	loop	\call\()_break_static, \call\()_break
	loop	\call\()_epc_static, \call\()_epc
	loop	\call\()_break_dynamic, \call\()_break_import
	loop	\call\()_epc_dynamic, \call\()_epc_import
	.endm

	.macro	loop name target
	.text
	begin	loop_\name
	.prologue
	.save	ar.pfs, r35
	alloc	loc0 = ar.pfs, 3, 4, 2, 0
	.save	ar.lc, r36
	mov	loc1 = ar.lc
	.save	rp, r37
	mov	loc2 = rp
	mov	loc3 = gp
	.body
	adds	in0 = -1, in0
	;;
	mov	ar.lc = in0
	;;
1:	mov	out0 = in1
	mov	out1 = in2
	.ifnb	\target
	br.call.sptk.many rp = \target
	;;
	mov	gp = loc3
	.endif
	br.cloop.sptk.few 1b
	;;
	mov	ar.lc = loc1
	mov	ar.pfs = loc0
	mov	rp = loc2
	br.ret.sptk.many rp
	.endp	loop_\name
	.endm

	library	getpid, __NR_getpid
	library	getppid, __NR_getppid
	library	gettimeofday, __NR_gettimeofday
	loop	empty

	.text
	.proc	failed
failed:	mov	r8 = -1
	br.ret.sptk.many rp
	.endp	failed

	.section .sdata, "aws"
	.align	8
gate:	data8	0xa000000000000000
