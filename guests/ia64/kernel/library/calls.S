// A C library's ways to three system calls, as a library of 2004 goes them: CALL_break and CALL_epc for getpid, getppid and
// gettimeofday, and for each an import stub, CALL_WAY_import, through which a program reaches the function of a shared library.
//
// A function sets the number, enters the kernel, and turns an error into -1 and `errno`. By `epc` it takes the gate page's
// address from the thread control block below r13 (library.h); ar.pfs waits in r11 meanwhile, which the kernel keeps, so the function needs
// no frame of its own: the kernel finds the caller's output registers as its arguments.
// The stubs are a linker's: address and global pointer of the function from a table, the caller's pointer in r14.

#include "layout.h"
#include "library.h"

#include <asm/unistd.h>

	.macro	begin name
	.text
	.align	32
	.global	\name
	.proc	\name
\name:
	.endm

	.macro	import function
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
	.endm

	.macro	library call number
	begin	\call\()_break
	mov	r15 = \number
	break.i	BREAK_SYSTEM_CALL
	;;
	cmp.eq	p6, p0 = -1, r10
(p6)	br.cond.spnt.few failed
	br.ret.sptk.many rp
	.endp	\call\()_break

	begin	\call\()_epc
	.prologue
	adds	r2 = THREAD_GATE - THREAD_SIZE, r13
	;;
	ld8	r2 = [r2]
	.save	ar.pfs, r11
	mov	r11 = ar.pfs
	.body
	;;
	mov	r15 = \number
	mov	b7 = r2
	br.call.sptk.many b6 = b7
	;;
	mov	ar.pfs = r11
	cmp.eq	p6, p0 = -1, r10
(p6)	br.cond.spnt.few failed
	br.ret.sptk.many rp
	.endp	\call\()_epc

	import	\call\()_break
	import	\call\()_epc
	.endm

	library	getpid, __NR_getpid
	library	getppid, __NR_getppid
	library	gettimeofday, __NR_gettimeofday
	import	getpid_kept

	begin	failed
	adds	r2 = THREAD_ERROR - THREAD_SIZE, r13
	;;
	st4	[r2] = r8
	mov	r8 = -1
	br.ret.sptk.many rp
	.endp	failed
