/* What the assembly files share: the number of CPUs, and the way in and out of the interruption handlers. */

#ifndef ASSEMBLY_H
#define ASSEMBLY_H

#ifndef PROCESSORS
#error "PROCESSORS is 1 or 2; see guests/ia64/build"
#endif

#define ENTRY(name) \
	.global name; \
	.proc	name; \
name:

#define END(name) .endp name

/* For unwinding: below this there is no caller but the program, whose frame is at sp + 16 (unwind.c). The places are for
   debuggers that know no more than the conventions. */
#define ENTERED_BY(how) \
	.prologue; \
	.unwabi	UNWIND_ABI, how; \
	.spillsp rp, 16 + FRAME_IIP; \
	.spillsp ar.pfs, 16 + FRAME_IFS; \
	.spillsp ar.unat, 16 + FRAME_UNAT; \
	.spillsp pr, 16 + FRAME_PR; \
	.spillsp ar.fpsr, 16 + FRAME_FPSR; \
	.body

/* Two spills in one instruction group: the assembler is told that they fill different bits of ar.unat. */
#define SPILL .mem.offset 0, 0; st8.spill
#define SPILL_NEXT .mem.offset 8, 0; st8.spill

/* Tables of code addresses by number of system call: `entry` in rising order, from `next` = 0; `otherwise` fills the gaps. */
	.macro	entry number, function
	.rept	\number - SYSTEM_CALL_FIRST - next
	data8	otherwise
	.endr
	data8	\function
	.set	next, \number - SYSTEM_CALL_FIRST + 1
	.endm

#endif
