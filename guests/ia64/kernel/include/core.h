/* A program's registers in one piece, and the core file that they go to (registers.c, core_dump.c). The layouts are those of
   Linux/ia64: elf_gregset_t and elf_fpregset_t. */

#ifndef CORE_H
#define CORE_H

#include "kernel.h"
#include "unwind.h"

#define CORE_REGISTERS 128

/* Words of elf_gregset_t; r0 to r31 come first. */
enum core_register {
    CORE_NATS = 32, CORE_PR, CORE_B0, CORE_IP = CORE_B0 + 8, CORE_CFM, CORE_PSR, CORE_RSC, CORE_BSP, CORE_BSPSTORE, CORE_RNAT,
    CORE_CCV, CORE_UNAT, CORE_FPSR, CORE_PFS, CORE_LC, CORE_EC, CORE_CSD,
};

struct program_registers {
    uint64_t general[CORE_REGISTERS];
    struct floating floating[CORE_REGISTERS];
    enum unwind_end unwound; /* UNWIND_INTERRUPTION or UNWIND_SYSTEM_CALL, or the preserved registers are not known */
    unsigned frames;         /* of the kernel that were unwound */
    uint64_t stuck;          /* where that ended, if it failed */
};

/* All registers of a task that runs here, or that sleeps. If there is a copy of the preserved registers, they are from there. */
void program_registers(struct task *task, const struct preserved *preserved, struct program_registers *registers);

/* Writes a core file of the current task, as this signal ends it; 0 if the host keeps none. */
int core_dump(struct task *task, const struct signal_information *information, const struct preserved *preserved);

#endif
