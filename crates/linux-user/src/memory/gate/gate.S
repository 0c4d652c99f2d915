// The gate page: the code that every Linux/ia64 process finds in region 5.
//
// __kernel_syscall_via_break and __kernel_syscall_via_epc enter the kernel; r15 holds the number, and the
// caller arrived by `br.call b6`. A real kernel's epc entry promotes the privilege level in place; here both
// break, and the results in r8 and r10 are the same.
//
// __kernel_sigtramp is where a signal handler returns to. The frame at sp + 16 holds three arguments, the
// handler's descriptor, the siginfo and the sigcontext; the unwind descriptors tell an unwinder where the
// interrupted context's registers are in it; the backing store they find through the context itself, by the ABI
// marker. Delivery itself (leaving the interrupted frame, switching the
// backing store, calling the handler) is done before the first instruction of the handler, so this code only
// asks to go back.
//
// Rebuild: see README.md in this folder.

SIGCONTEXT	= 16 + 160		// from sp
CONTEXT_IP	= SIGCONTEXT + 40
CONTEXT_CFM	= SIGCONTEXT + 48
CONTEXT_UNAT	= SIGCONTEXT + 96
CONTEXT_FPSR	= SIGCONTEXT + 104
CONTEXT_PR	= SIGCONTEXT + 128
CONTEXT_SP	= SIGCONTEXT + 200 + 8 * 12

RT_SIGRETURN	= 1181

	.text

	.align 32
	.global __kernel_syscall_via_break
	.proc __kernel_syscall_via_break
__kernel_syscall_via_break:
	.prologue
	.altrp b6
	.body
	break.m 0x100000
	nop.i 0
	br.ret.sptk.many b6
	;;
	.endp __kernel_syscall_via_break

	.align 32
	.global __kernel_syscall_via_epc
	.proc __kernel_syscall_via_epc
__kernel_syscall_via_epc:
	.prologue
	.altrp b6
	.body
	break.m 0x100000
	nop.i 0
	br.ret.sptk.many b6
	;;
	.endp __kernel_syscall_via_epc

	.align 32
	.global __kernel_sigtramp
	.proc __kernel_sigtramp
__kernel_sigtramp:
	.prologue
	.unwabi 3, 's'
	.unwabi @svr4, 's'
	.savesp ar.unat, CONTEXT_UNAT
	.savesp ar.fpsr, CONTEXT_FPSR
	.savesp pr, CONTEXT_PR
	.savesp rp, CONTEXT_IP
	.savesp ar.pfs, CONTEXT_CFM
	.vframesp CONTEXT_SP
	.body
	nop.m 0			// stands for the call: a return address points behind one
	nop.i 0
	nop.i 0
	;;
	.global __kernel_sigtramp_return
	.hidden __kernel_sigtramp_return
__kernel_sigtramp_return:
	nop.m 0
	movl r15 = RT_SIGRETURN
	;;
	break.m 0x100000
	nop.i 0
	nop.i 0
	;;
	.endp __kernel_sigtramp
