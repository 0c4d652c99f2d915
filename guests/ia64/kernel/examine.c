/* A look at all registers of a process, for who debugs it: what a core dump would say of it, while it goes on. */

#include "core.h"
#include "text.h"

#define EXAMINE_DEPTH 0xff        /* through so many functions that have other values in the preserved registers */
#define EXAMINE_UNDESCRIBED 0x100 /* and through one without unwind information, which ends the walk */
#define EXAMINE_ABORT 0x200       /* ends the process there, with a core file */

/* examine_entry.S: calls program_registers(current, 0, registers), and has no unwind information. */
void examine_undescribed(struct program_registers *registers);

static __attribute__((noinline)) void descend(unsigned how, struct program_registers *registers)
{
    __asm__ volatile("mov r4 = -4 ; mov r5 = -5 ; mov r6 = -6 ; mov r7 = -7 ; mov b1 = r0 ; mov b2 = r0 ;;"
                     "mov b3 = r0 ; mov b4 = r0 ;; mov b5 = r0 ; mov ar.lc = 3 ;;" ::
                         : "r4", "r5", "r6", "r7", "b1", "b2", "b3", "b4", "b5", "ar.lc");
    if (how & EXAMINE_DEPTH)
        descend(how - 1, registers);
    else if (how & EXAMINE_UNDESCRIBED)
        examine_undescribed(registers);
    else if (how & EXAMINE_ABORT)
        process_abort(0, &(struct signal_information){.signal = SIGABRT, .code = SIGNAL_BY_KERNEL});
    else
        program_registers(current, 0, registers);
    __asm__ volatile("" ::: "memory"); /* no sibling call */
}

static long examine(struct task *task, unsigned how, struct program_registers *registers)
{
    if (task == current && how)
        descend(how - !(how & EXAMINE_UNDESCRIBED), registers);
    else
        program_registers(task, 0, registers);
    int is_known = registers->unwound == UNWIND_INTERRUPTION || registers->unwound == UNWIND_SYSTEM_CALL;
    return is_known ? (long)registers->frames : -ENODATA;
}

__attribute__((syscall_linkage)) long call_examine(uint64_t identity, uint64_t to, unsigned how)
{
    struct program_registers *registers = kernel_pages(0);
    long answer = -ESRCH;
    if (identity == current->identity) {
        answer = examine(current, how, registers);
    } else {
        uint64_t saved = acquire(&scheduler); /* so that it goes on sleeping */
        struct task *task = process_find(identity);
        if (task && task->state == TASK_SLEEPING && task->parent == current)
            answer = examine(task, 0, registers);
        release(&scheduler, saved);
    }
    if (answer >= 0 && copy_to_user(to, registers, offsetof(struct program_registers, unwound)))
        answer = -EFAULT;
    kernel_pages_free(registers, 0);
    return answer;
}
