/* Where everything is: memory, translation registers, kernel registers, and the structures that assembly shares with C.
   Only constants, so that .S files can include it; structure.c checks the offsets against the C types. */

#ifndef LAYOUT_H
#define LAYOUT_H

#ifdef __ASSEMBLER__
#define WORD(number) number
#else
#define WORD(number) ((unsigned long)(number))
#endif

/* ---- Regions of the virtual address space (bits 63 to 61) ----

   0        unused, so that a null pointer faults
   1        mapped memory (mmap), objects that processes share
   2        text of the program
   3        data of the program
   4        register backing store (low) and memory stack (high)
   5        the kernel's pinned pages: gate page, a page for each CPU, the long-format page table
   6        physical memory and devices, uncacheable
   7        physical memory, cacheable: the kernel itself lives here */
#define REGION_SHIFT 61
#define REGION_MAPPED 1
#define REGION_TEXT 2
#define REGION_DATA 3
#define REGION_STACK 4
#define REGION_PINNED 5
#define REGION_UNCACHED 6
#define REGION_KERNEL 7
#define USER_REGIONS 5
#define REGION_BASE(region) (WORD(region) << REGION_SHIFT)
#define KERNEL_BASE WORD(0xe000000000000000)
#define UNCACHED_BASE WORD(0xc000000000000000)
#define PINNED_BASE WORD(0xa000000000000000)

#define MAPPED_BASE WORD(0x2000000000000000)
#define SHARED_BASE WORD(0x2000000100000000)
#define PRIVATE_BASE WORD(0x6000000100000000)
#define BACKING_STORE_BASE WORD(0x8000000000000000)
#define BACKING_STORE_SIZE WORD(0x0000000000400000)
#define STACK_TOP WORD(0x8000000080000000)
#define STACK_SIZE WORD(0x0000000000400000)

/* ---- Pages ---- */
#define PAGE_SHIFT 14
#define PAGE_SIZE (WORD(1) << PAGE_SHIFT)
#define SUPERPAGE_SHIFT 16
#define SUPERPAGE_SIZE (WORD(1) << SUPERPAGE_SHIFT)
/* Region 7 and 6 are mapped in granules by the alternate TLB handlers. */
#define GRANULE_SHIFT 24

/* A process's page table has two levels: one page of pointers, 256 for each region, to pages of 2048 entries. It is the
   reference for all three ways of refilling the TLB. */
#define DIRECTORY_ENTRIES_SHIFT 8
#define TABLE_ENTRIES_SHIFT (PAGE_SHIFT - 3)
#define TABLE_REACH_SHIFT (PAGE_SHIFT + TABLE_ENTRIES_SHIFT)
#define REGION_REACH_SHIFT (TABLE_REACH_SHIFT + DIRECTORY_ENTRIES_SHIFT)

/* ---- Page table entries (manual volume 2, figure 4-5), and the bits that are left to software ---- */
#define PTE_PRESENT WORD(0x1)
#define PTE_UNCACHED WORD(0x10)
#define PTE_ACCESSED WORD(0x20)
#define PTE_DIRTY WORD(0x40)
#define PTE_LEVEL_USER WORD(0x180)
#define PTE_READ WORD(0x000)
#define PTE_READ_EXECUTE WORD(0x200)
#define PTE_READ_WRITE WORD(0x400)
#define PTE_READ_WRITE_EXECUTE WORD(0x600)
#define PTE_GATE WORD(0xe00)
#define PTE_RIGHTS WORD(0xe00)
#define PTE_FRAME WORD(0x0003fffffffff000)
/* The page is present, but only software may load it: a superpage in a short-format table. */
#define PTE_SOFTWARE_BIT 53
#define PTE_SOFTWARE (WORD(1) << PTE_SOFTWARE_BIT)
/* The page is part of a superpage. */
#define PTE_SUPERPAGE_BIT 54
#define PTE_SUPERPAGE (WORD(1) << PTE_SUPERPAGE_BIT)
/* The page is writable, but its frame is shared until it is written. */
#define PTE_COPY_ON_WRITE (WORD(1) << 55)
/* The page belongs to an object that processes share, not to the process. */
#define PTE_SHARED (WORD(1) << 56)
/* The protection key: four bits are enough for this kernel. */
#define PTE_KEY_SHIFT 58
#define PTE_KEY_BITS 4
/* A pinned page of the kernel: accessed, dirty, write-back, level 0. */
#define PTE_KERNEL (PTE_PRESENT | PTE_ACCESSED | PTE_DIRTY | PTE_READ_WRITE_EXECUTE)

/* ---- Physical memory ----

   0          .. 64 MB    the kernel's granule: image, parameters, stacks, page tables (one pinned translation)
   64 MB      .. 96 MB    the long-format page tables, one for each CPU
   96 MB      .. end      frames for processes */
#define KERNEL_SIZE_SHIFT 26
#define PARAMETERS_SIZE 512
#define HASHED_TABLE_PHYSICAL WORD(0x4000000)
#define HASHED_TABLE_SHIFT_MAX 24
#define FRAMES_PHYSICAL WORD(0x6000000)
#define INTERRUPT_BLOCK_PHYSICAL WORD(0xfee00000)

/* ---- Translation registers and what they pin in region 5 ---- */
#define ITR_KERNEL 0
#define ITR_GATE 1
#define DTR_KERNEL 0
#define DTR_PER_CPU 1
#define DTR_HASHED_TABLE 2
#define GATE_ADDRESS PINNED_BASE
#define PER_CPU_ADDRESS WORD(0xa000000000010000)
#define PER_CPU_SHIFT 14
#define HASHED_TABLE_ADDRESS WORD(0xa000000010000000)

/* ---- PTA: the short format's linear table ends each region (51 bits of address, 8 bytes a page) ---- */
#define PTA_LONG 0x100
#define LINEAR_TABLE_SHIFT (51 - PAGE_SHIFT + 3)
#define LINEAR_TABLE_BASE ((WORD(1) << 61) - (WORD(1) << LINEAR_TABLE_SHIFT))

/* ---- Region identifiers: 8 for each address space, and fixed ones ---- */
#define RID_SHIFT 8
#define RID_SHARED_TEXT WORD(8)
#define RID_SHARED_MAPPED WORD(9)
#define RID_FIRST_PROCESS WORD(16)

/* ---- Application registers that the kernel keeps ---- */
#define KR_CURRENT ar.k6
#define KR_PAGE_TABLE ar.k7

/* ---- PSR ---- */
#define PSR_BE (1 << 1)
#define PSR_UP (1 << 2)
#define PSR_AC (1 << 3)
#define PSR_MFL (1 << 4)
#define PSR_MFH (1 << 5)
#define PSR_IC (1 << 13)
#define PSR_I (1 << 14)
#define PSR_PK (1 << 15)
#define PSR_DT (1 << 17)
#define PSR_DFL (1 << 18)
#define PSR_DFH (1 << 19)
#define PSR_RT (1 << 27)
#define PSR_CPL_SHIFT 32
#define PSR_RI_SHIFT 41
#define PSR_IT_BIT 36
#define PSR_BN_BIT 44
#define PSR_ED_BIT 43

/* ---- A task: the structure, its kernel backing store growing up, its kernel stack growing down ---- */
#define TASK_SHIFT 15
#define TASK_SIZE (1 << TASK_SHIFT)
#define TASK_BACKING_STORE 6144

#define TASK_ON_USER_STACK 0
#define TASK_WORK 4
#define TASK_IDENTITY 8
#define TASK_PARENT 16
#define TASK_CONTEXT 24
#define TASK_BLOCKED_SIGNALS 32
#define TASK_FLOATING_LOW 64
#define TASK_FLOATING_HIGH 448
#define TASK_ASSEMBLY_END 1984

/* Bits of a task's work word: what to do before it returns to its program. */
#define WORK_RESCHEDULE 1
#define WORK_SIGNAL 2
#define WORK_SIGNAL_RETURN 4
#define WORK_RESTART 8
#define WORK_BEFORE_RETURN 15
/* And one that concerns system calls. */
#define WORK_TRACE_BIT 4
#define WORK_TRACE (1 << WORK_TRACE_BIT)

/* ---- The frame of an interruption: the scratch state of what was interrupted ---- */
#define FRAME_IPSR 0
#define FRAME_IIP 8
#define FRAME_IFS 16
#define FRAME_UNAT 24
#define FRAME_PFS 32
#define FRAME_RSC 40
#define FRAME_RNAT 48
#define FRAME_BSPSTORE 56
#define FRAME_PR 64
#define FRAME_B0 72
#define FRAME_B6 80
#define FRAME_B7 88
#define FRAME_CCV 96
#define FRAME_FPSR 104
#define FRAME_SPILL_UNAT 112
#define FRAME_CSD 120
#define FRAME_R1 128
#define FRAME_R2 136
#define FRAME_R3 144
#define FRAME_R8 152
#define FRAME_R11 176
#define FRAME_R12 184
#define FRAME_R16 216
#define FRAME_VECTOR 344
#define FRAME_F6 352
#define FRAME_ISR 448
#define FRAME_IFA 456
#define FRAME_IIM 464
#define FRAME_IIPA 472
#define FRAME_LOADED 480
#define FRAME_SIZE 496
/* The frame of an entry from a program is always here. */
#define TASK_FRAME (TASK_SIZE - 16 - FRAME_SIZE)

/* ---- What switch.S saves of a task that is not running: the preserved state of the kernel's own call ---- */
#define CONTEXT_SP 0
#define CONTEXT_UNAT 8
#define CONTEXT_SPILL_UNAT 16
#define CONTEXT_RNAT 24
#define CONTEXT_BSPSTORE 32
#define CONTEXT_PFS 40
#define CONTEXT_LC 48
#define CONTEXT_PR 56
#define CONTEXT_FPSR 64
#define CONTEXT_B0 72
#define CONTEXT_R4 112
#define CONTEXT_SIZE 160

#define REGISTERS_STACKED 96

/* ---- A signal's frame on the program's stack, 16 bytes above its sp (signal_frame.h) ---- */
#define SIGNAL_FRAME_ARGUMENTS 0
#define SIGNAL_FRAME_HANDLER 24
#define SIGNAL_FRAME_CONTEXT 160
#define SIGNAL_CONTEXT_BSP 72
#define SIGNAL_CONTEXT_RNAT 80
#define SIGNAL_CONTEXT_BACKING_STORE 2512
#define SIGNAL_CONTEXT_LOADED 2520
#define SIGNAL_CONTEXT_BSPSTORE 2544
#define SIGNAL_CONTEXT_F6 560
#define SIGNAL_FRAME_SIZE 2816

/* ---- How the kernel was entered: the contexts of its .unwabi directives, whose first operand is this ABI ---- */
#define UNWIND_ABI 0x53
#define ENTERED_BY_INTERRUPTION 'i'
#define ENTERED_BY_SYSTEM_CALL 's'

/* ---- The time data (time.c) ---- */
#define TIME_SOURCE 4
#define TIME_LAST 8
#define TIME_MULTIPLIER 16
#define TIME_SECONDS 24
#define TIME_NANOSECONDS 32
#define TIME_LATEST 40
#define TIME_SHIFT 24
/* Sources of time: the interval time counter, or its ticks alone. */
#define CLOCK_COUNTER 0
#define CLOCK_TICKS 1

/* ---- The preserved registers that signal-state=full moves about, as a structure of their own ---- */
#define PRESERVED_SPILL_UNAT 0
#define PRESERVED_LC 8
#define PRESERVED_R4 16
#define PRESERVED_B1 48
#define PRESERVED_END 88
#define PRESERVED_F2 96
#define PRESERVED_SIZE 480

/* ---- System calls and hypercalls ---- */
#define BREAK_SYSTEM_CALL 0x100000
#define BREAK_HYPERCALL 0x5ede
#define SYSTEM_CALL_FIRST 1024
#define SYSTEM_CALLS 512

/* ---- Interrupt vectors ---- */
#define VECTOR_TIMER 0xef
#define VECTOR_DISK 0xd1
#define VECTOR_INTERFACE 0xd2
#define VECTOR_RESCHEDULE 0xfd
#define VECTOR_SPURIOUS 15

#endif
