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

#define PSR_IC (1 << 13)
/* Programs: level 3, eager. */
#define RSC_PROGRAM 15

/* ---- Kernel registers ---- */
#define KR_CURRENT ar.k6
#define KR_SPACE ar.k7

/* ---- A thread control block: 4 kB, the kernel's stack in its upper part; its address follows from the thread's
   identifier, which is number << 12 | version ---- */
#define TCB_SHIFT 12
#define TCB_SIZE 0x1000
#define TCBS 4
#define VERSION 1

/* What the fast path looks at of a receiver. */
#define TCB_IDENTITY 0
#define TCB_STATE 8
#define TCB_PARTNER 16
#define TCB_PENDING 24
#define TCB_SPACE 32
#define TCB_REGION 40
/* What it saves and restores of a thread. */
#define TCB_SP 64
#define TCB_RP 72
#define TCB_PFS 80
#define TCB_BSPSTORE 88
#define TCB_RNAT 96
#define TCB_GP 104
/* Message words, for the generic path. */
#define TCB_TAG 128
#define TCB_WORDS 136
#define TCB_BACKING_STORE 1024

#define STATE_WAITING 1
#define STATE_READY 0
#define STATE_SENDING 2
#define ANYBODY (-1)

#define WORDS_MAX 8
#define ERROR_NO_PARTNER 1

#define HYPERCALL 0x5ede
#define HYPERCALL_EXIT 0
#define HYPERCALL_PUT_BYTES 4
#define HYPERCALL_PARAMETERS 6
#define HYPERCALL_MARK 0x100

#endif
