/* Where everything is in the message-passing guest, and the thread control block as assembly and C share it. */

#ifndef LAYOUT_H
#define LAYOUT_H

/* ---- Memory: the kernel in region 7, the gate page in region 5, a program's space in region 0 ---- */
#define PAGE_SHIFT 14
#define PAGE_SIZE 0x4000
#define KERNEL_BASE 0xe000000000000000
#define KERNEL_SIZE_SHIFT 24
#define GATE_ADDRESS 0xa000000000000000
/* A program's text, the same page in both spaces, and its stacks, at one address in different memory. */
#define TEXT_ADDRESS 0x10000
#define STACK_ADDRESS 0x20000
#define SPACE_PAGES 16

#define PTE_KERNEL 0x661 /* present, accessed, dirty, level 0, read, write, execute */
#define PTE_GATE 0xe61   /* present, accessed, dirty; epc raises to level 0 */
#define PTE_TEXT 0x3e1   /* present, accessed, dirty, level 3, read, execute */
#define PTE_STACK 0x5e1  /* present, accessed, dirty, level 3, read, write */

#define PSR_AC_BIT 3
#define PSR_AC (1 << PSR_AC_BIT)
#define PSR_IC (1 << 13)
#define PSR_I (1 << 14)
/* Programs: level 3, eager. */
#define RSC_PROGRAM 15

/* ---- Kernel registers: programs may read them, and learn from the first who they are ---- */
#define KR_IDENTITY ar.k5
#define KR_CURRENT ar.k6
#define KR_SPACE ar.k7

/* ---- A thread control block: 4 kB, the kernel's stacks in its upper part; its address follows from the thread's
   identity, which is number << 12 | version ---- */
#define TCB_SHIFT 12
#define TCB_SIZE 0x1000
#define TCBS_SHIFT 2
#define TCBS (1 << TCBS_SHIFT)
#define VERSION 1

/* What a message needs to know of its sender and its receiver. */
#define TCB_IDENTITY 0
#define TCB_STATE 8
#define TCB_PARTNER 16
#define TCB_PENDING 24
#define TCB_SENDERS 32
#define TCB_SPACE 40
#define TCB_REGION 48
/* The program's state while another one runs, in the order in which two pointers walk over it. */
#define TCB_RSC 64
#define TCB_GP 72
#define TCB_PFS 80
#define TCB_BSPSTORE 88
#define TCB_RNAT 96
#define TCB_UNAT 104
#define TCB_PREDICATES 112
#define TCB_USER_MASK 120
#define TCB_SP 128
#define TCB_RP 136
#define TCB_TP 144
/* Where the kernel goes on with this thread, and its stack there. */
#define TCB_CONTINUATION 152
#define TCB_KERNEL_SP 160
/* The message, for the generic path. */
#define TCB_TAG 168
#define TCB_WORDS 176
#define TCB_BACKING_STORE 1024

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

#define STATE_READY 0
#define STATE_WAITING 1
#define STATE_SENDING 2
#define NOBODY 0
#define ANYBODY (-1)

/* The tag of a message: the number of words; the bits above are for messages of other kinds, which only the generic path
   sees. */
#define WORDS_MAX 8
#define WORDS_MASK 0x3f
/* How long to wait, each 16 bits: for the answer, and for the receiver. 0 is for ever; without a clock, all else is over
   at once. */
#define TIMEOUT_BITS 16
#define ERROR_NO_PARTNER 1
#define ERROR_TIMEOUT 2

#define HYPERCALL 0x5ede
#define HYPERCALL_EXIT 0
#define HYPERCALL_PUT_BYTES 4
#define HYPERCALL_PARAMETERS 6
#define HYPERCALL_MARK 0x100

#endif
