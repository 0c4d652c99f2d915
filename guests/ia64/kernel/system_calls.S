// Which function answers which system call: numbers, registers and errors are those of Linux/ia64, so that a program for
// one runs on the other as far as this kernel goes. This is the table for `break`; the one for `epc` is in gate.S.

#include "layout.h"
#include "assembly.h"

#include <asm/unistd.h>

// Calls of this kernel's own.
#define CALL_MARK (SYSTEM_CALL_FIRST + 500)
#define CALL_SHARE (SYSTEM_CALL_FIRST + 501)
#define CALL_STATISTIC (SYSTEM_CALL_FIRST + 502)
#define CALL_GATE (SYSTEM_CALL_FIRST + 503)
#define CALL_EXAMINE (SYSTEM_CALL_FIRST + 504)
#define CALL_TRACE (SYSTEM_CALL_FIRST + 505)
// And those of images with sidecalls.
#define CALL_DISK (SYSTEM_CALL_FIRST + 506)
#define CALL_FRAME_ADDRESS (SYSTEM_CALL_FIRST + 507)
#define CALL_FRAME_SEND (SYSTEM_CALL_FIRST + 508)
#define CALL_FRAME_RECEIVE (SYSTEM_CALL_FIRST + 509)

	.section .rodata
	.align	16
	.global	system_calls
	.set	next, 0
	.set	otherwise, call_unknown
system_calls:
	entry	__NR_exit, call_exit
	entry	__NR_read, call_read
	entry	__NR_write, call_write
	entry	__NR_close, call_close
	entry	__NR_getpid, call_getpid
	entry	__NR_getppid, call_getppid
	entry	__NR_setuid, call_setuid
	entry	__NR_getuid, call_getuid
	entry	__NR_geteuid, call_geteuid
	entry	__NR_kill, call_kill
	entry	__NR_pipe, call_pipe
	entry	__NR_gettimeofday, call_gettimeofday
	entry	__NR_wait4, call_wait4
	entry	__NR_mmap, call_mmap
	entry	__NR_munmap, call_munmap
	entry	__NR_sched_yield, call_sched_yield
	entry	__NR_sigaltstack, call_sigaltstack
	entry	__NR_rt_sigaction, call_rt_sigaction
	entry	__NR_rt_sigprocmask, call_rt_sigprocmask
	entry	__NR_rt_sigqueueinfo, call_rt_sigqueueinfo
	entry	__NR_exit_group, call_exit
	entry	CALL_MARK, call_mark
	entry	CALL_SHARE, call_share
	entry	CALL_STATISTIC, call_statistic
	entry	CALL_GATE, call_gate
	entry	CALL_EXAMINE, call_examine
	entry	CALL_TRACE, call_trace
#ifdef SIDECALLS
	entry	CALL_DISK, call_disk
	entry	CALL_FRAME_ADDRESS, call_frame_address
	entry	CALL_FRAME_SEND, call_frame_send
	entry	CALL_FRAME_RECEIVE, call_frame_receive
#endif
	entry	(SYSTEM_CALL_FIRST + SYSTEM_CALLS), otherwise
