/* Floating-point state moves lazily, in two parts: low (f2 to f31) and high (f32 to f127).

   A program runs with PSR.dfl and PSR.dfh set for the parts whose registers are another's; touching one faults, and only then
   are registers saved and loaded. PSR.mfl and mfh say whether there is anything to save. With two CPUs a process may move,
   so there the parts it changed are saved when it is switched away. */

#include "kernel.h"
#include "text.h"

static void save_low(struct task *task)
{
    if (user_frame(task)->ipsr & PSR_MFL) {
        save_floating_low(task->floating_low);
        task->floating_low_valid = 1;
        user_frame(task)->ipsr &= ~(uint64_t)PSR_MFL;
    }
}

static void save_high(struct task *task)
{
    if (user_frame(task)->ipsr & PSR_MFH) {
        save_floating_high(task->floating_high);
        task->floating_high_valid = 1;
        user_frame(task)->ipsr &= ~(uint64_t)PSR_MFH;
    }
}

void floating_point_switch(struct task *from, struct task *to)
{
    if (PROCESSORS > 1 && from->directory) {
        if (this_cpu->floating_low_owner == from)
            save_low(from);
        if (this_cpu->floating_high_owner == from)
            save_high(from);
        this_cpu->floating_low_owner = this_cpu->floating_high_owner = 0;
    }
    if (!to->directory)
        return;
    struct frame *frame = user_frame(to);
    frame->ipsr |= PSR_DFL | PSR_DFH;
    if (this_cpu->floating_low_owner == to)
        frame->ipsr &= ~(uint64_t)PSR_DFL;
    if (this_cpu->floating_high_owner == to)
        frame->ipsr &= ~(uint64_t)PSR_DFH;
}

/* A disabled part was touched: ISR bit 0 says low, bit 1 high. */
void floating_point_wanted(struct task *task, struct frame *frame)
{
    struct per_cpu *here = this_cpu;
    here->disabled_floating++;
    if (frame->isr & 1) {
        if (here->floating_low_owner && here->floating_low_owner != task)
            save_low(here->floating_low_owner);
        load_floating_low(task->floating_low);
        here->floating_low_owner = task;
        frame->ipsr &= ~(uint64_t)PSR_DFL;
    }
    if (frame->isr & 2) {
        if (here->floating_high_owner && here->floating_high_owner != task)
            save_high(here->floating_high_owner);
        load_floating_high(task->floating_high);
        here->floating_high_owner = task;
        frame->ipsr &= ~(uint64_t)PSR_DFH;
    }
}

/* What the task has in the high part is in memory from here on. */
void floating_high_flush(struct task *task)
{
    if (this_cpu->floating_high_owner == task)
        save_high(task);
}

/* What is in memory is the task's; what its registers hold is not. */
void floating_high_drop(struct task *task)
{
    struct frame *frame = user_frame(task);
    if (this_cpu->floating_high_owner == task)
        this_cpu->floating_high_owner = 0;
    frame->ipsr = (frame->ipsr | PSR_DFH) & ~(uint64_t)PSR_MFH;
}

void floating_point_copy(struct task *parent, struct task *child)
{
    if (this_cpu->floating_low_owner == parent)
        save_low(parent);
    if (this_cpu->floating_high_owner == parent)
        save_high(parent);
    memcpy(child->floating_low, parent->floating_low, sizeof parent->floating_low);
    memcpy(child->floating_high, parent->floating_high, sizeof parent->floating_high);
}

void floating_point_forget(struct task *task)
{
    for (unsigned number = 0; number < PROCESSORS; number++) {
        if (cpu(number)->floating_low_owner == task)
            cpu(number)->floating_low_owner = 0;
        if (cpu(number)->floating_high_owner == task)
            cpu(number)->floating_high_owner = 0;
    }
}
