/* Where everything is in the message-passing guest, and what assembly, the kernel's C and programs share. */

#ifndef LAYOUT_H
#define LAYOUT_H

/* ---- Memory: the kernel in region 7, the gate page in region 5, a program's space in region 0 ---- */
#define PAGE_SHIFT 14
#define PAGE_SIZE 0x4000
#define KERNEL_BASE 0xe000000000000000
#define KERNEL_SIZE_SHIFT 24
#define GATE_ADDRESS 0xa000000000000000
/* In each space: the programs' text, the same pages in all; a stack for each thread; the threads' control blocks. */
#define SPACE_SHIFT 5
#define SPACE_PAGES (1 << SPACE_SHIFT)
#define TEXT_ADDRESS 0x10000
#define TEXT_PAGES 4
#define STACKS_ADDRESS 0x20000
#define UTCBS_ADDRESS 0x40000
#define REGION_FIRST 16

#define PTE_KERNEL 0x661 /* present, accessed, dirty, level 0, read, write, execute */
#define PTE_GATE 0xe61   /* present, accessed, dirty; epc raises to level 0 */
#define PTE_TEXT 0x3e1   /* present, accessed, dirty, level 3, read, execute */
#define PTE_DATA 0x5e1   /* present, accessed, dirty, level 3, read, write */
#define PTE_RIGHTS_SHIFT 9
#define PTE_RIGHTS 7

#define PSR_AC_BIT 3
#define PSR_AC (1 << PSR_AC_BIT)
#define PSR_IC (1 << 13)
#define PSR_I (1 << 14)
#define PSR_CPL_SHIFT 32
/* Programs: level 3, eager. */
#define RSC_PROGRAM 15

/* ---- Kernel registers. Programs may read them, and find their own control block by the first ---- */
#define KR_UTCB ar.k5
#define KR_CURRENT ar.k6
#define KR_SPACE ar.k7

/* ---- Who a thread is. Globally: its number, and a version that is not 0 in its low bits. In its own space also: the
   address of its user thread control block, which is 0 there ---- */
#define NUMBER_SHIFT 32
#define LOCAL_BITS 0x3f
#define NOBODY 0
#define ANYBODY (-1)
#define ANY_LOCAL (-64)

/* ---- A thread control block: 4 kB, the kernel's stacks in its upper part; its address follows from the number ---- */
#define TCB_SHIFT 12
#define TCB_SIZE 0x1000
#define TCBS_SHIFT 3
#define TCBS (1 << TCBS_SHIFT)

/* What a message needs to know of its sender and its receiver. */
#define TCB_IDENTITY 0
#define TCB_RESOURCES 8
#define TCB_SENDERS 16
#define TCB_SPACE 24
#define TCB_STATE 32
#define TCB_PARTNER 40
#define TCB_REGION 48
#define TCB_LOCAL 56
/* The program's state while another one runs, in the order in which two pointers walk over it. */
#define TCB_RSC 64
#define TCB_GP 72
#define TCB_PFS 80
#define TCB_BSPSTORE 88
#define TCB_RNAT 96
#define TCB_UNAT 104
#define TCB_PREDICATES 112
#define TCB_PSR 120
#define TCB_SP 128
#define TCB_RP 136
#define TCB_TP 144
/* Where the kernel goes on with this thread, and its stack there. */
#define TCB_CONTINUATION 152
#define TCB_KERNEL_SP 160
/* For the generic path: the user thread control block as the kernel sees it, and from whom the message is. */
#define TCB_UTCB 168
#define TCB_FROM 176
#define TCB_FLOATING_POINT 512
#define TCB_BACKING_STORE 1024

/* What a thread may do with a thread: nothing, go on, be waited for. Only one that waits for ever can be sent to the fast way. */
#define STATE_RUNNING 0
#define STATE_WAITING 1
#define STATE_WAITING_UNTIL 2
#define STATE_SENDING 3
#define STATE_INACTIVE 4

/* Why a thread has to go the generic way: it uses the preserved floating-point registers; time was over while it ran. */
#define RESOURCE_FLOATING_POINT 1
#define RESOURCE_ALARM 2
#define ALARM_VECTOR 0xef

/* What the kernel keeps of a thread that waits in the middle of C code, on its kernel stack. */
#define CONTEXT_BSPSTORE 0
#define CONTEXT_RNAT 8
#define CONTEXT_PFS 16
#define CONTEXT_RP 24
#define CONTEXT_UNAT 32
#define CONTEXT_SPILL_UNAT 40
#define CONTEXT_PREDICATES 48
#define CONTEXT_LC 56
#define CONTEXT_B1 64
#define CONTEXT_R4 104
#define CONTEXT_SIZE 144

/* ---- A user thread control block: the program's own. Its message registers are the tag and 63 words ---- */
#define UTCB_SHIFT 10
#define UTCB_SIZE 1024
#define UTCBS (PAGE_SIZE / UTCB_SIZE)
#define UTCB_IDENTITY 0
#define UTCB_ERROR 8
#define UTCB_VIRTUAL_SENDER 16 /* for whom a propagated message is sent; the receiver finds here who really sent it */
#define UTCB_ACCEPTOR 24       /* the window for pages that are mapped to this thread */
#define UTCB_MESSAGE 64

/* The tag of a message: the number of words without a type, the number of words of typed items, flags; the rest is the
   programs'. What arrives with nothing but up to 8 words and a label may go the fast way. */
#define TAG_UNTYPED 0x3f
#define TAG_TYPED_SHIFT 6
#define TAG_PROPAGATED 0x1000
#define TAG_ERROR 0x8000
#define TAG_RECEIVED 0xe000 /* flags that only the kernel sets */
#define TAG_LABEL_SHIFT 16
#define WORDS_MAX 63
#define WORDS_IN_REGISTERS 8

/* Timeouts, 16 bits each: for the answer, and above it for the receiver. 0 is for ever; a period is a mantissa of 10 bits
   and an exponent of 5, in microseconds; a point in time has the highest bit set, then an exponent of 4, one bit of the
   clock, and a mantissa of 10. */
#define TIMEOUT_BITS 16
#define TIMEOUT_MASK 0xffff
#define TIMEOUT_POINT 0x8000
#define TIMEOUT_MANTISSA_BITS 10
#define TIMEOUT_ZERO 0x400
#define CYCLES_PER_MICROSECOND 1000

/* Errors, with the phase in the lowest bit: 0 for sending, 1 for receiving. */
#define ERROR_TIMEOUT 1
#define ERROR_NO_PARTNER 2
#define ERROR_OVERFLOW 4
#define ERROR_SHIFT 1
#define PHASE_SEND 0
#define PHASE_RECEIVE 1

/* Typed items: pages to map or to grant, two words each: the base in the receiver's window with the type in its low bits, and
   the pages, whose size is a power of 2, with rights in their low bits. */
#define ITEM_TYPE 0xe
#define ITEM_MAP 0x8
#define ITEM_GRANT 0xa
#define ITEM_BASE_SHIFT 10
#define PAGES_RIGHTS 7
#define PAGES_READ 4
#define PAGES_WRITE 2
#define PAGES_EXECUTE 1
#define PAGES_SIZE_SHIFT 4
#define PAGES_SIZE 0x3f
#define PAGES_ALL (1 << PAGES_SIZE_SHIFT)

/* ---- What a program finds above its stack pointer, behind the two words that a callee may use ---- */
#define ARGUMENTS 16
#define ARGUMENT_IPC 0       /* the way into the kernel that is tried */
#define ARGUMENT_HYPERCALL 8 /* and the one to the host */
#define ARGUMENT_FUNCTION 16
#define ARGUMENT_NUMBER 24
#define ARGUMENT_ROUNDS 32
#define ARGUMENT_LEFT 40
#define ARGUMENT_NAMES 48

/* How the machine ends: a program was wrong, nobody is left who could run, a program's exception that nobody handles, a
   wrong parameter; what the kernel does not expect is 100 and the vector's number. */
#define END_WRONG 1
#define END_NOBODY 2
#define END_EXCEPTION 3
#define END_PARAMETER 64
#define END_UNEXPECTED 100

#define HYPERCALL 0x5ede
#define HYPERCALL_EXIT 0
#define HYPERCALL_PUT_BYTES 4
#define HYPERCALL_PARAMETERS 6
#define HYPERCALL_MARK 0x100

#endif
