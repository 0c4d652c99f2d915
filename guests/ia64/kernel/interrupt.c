/* External interrupts: the interval timer of each CPU, and the messages between CPUs through the processor interrupt
   block. A handler takes vectors until there is none, and ends each. */

#include "kernel.h"
#include "sidecalls.h"

/* Answers how many ticks have passed: more than one where interrupts were off for long. */
static uint64_t set_next_tick(void)
{
    struct per_cpu *here = this_cpu;
    uint64_t ticks = 0;
    do {
        here->next_tick += parameters.tick;
        ticks++;
    } while ((int64_t)(here->next_tick - interval_time()) <= 0);
    write_cr_itm(here->next_tick);
    return ticks;
}

void timer_start(void)
{
    this_cpu->next_tick = interval_time();
    write_cr_tpr(0);
    write_cr_itv(VECTOR_TIMER);
    set_next_tick();
}

void external_interrupts(void)
{
    for (;;) {
        uint64_t vector = accept_interrupt();
        if (vector == VECTOR_SPURIOUS)
            return;
        this_cpu->interrupts++;
        if (vector == VECTOR_TIMER) {
            this_cpu->ticks++;
            uint64_t ticks = set_next_tick();
            if (this_cpu->number == 0)
                time_tick(ticks);
            work_add(current, WORK_RESCHEDULE);
        } else if (vector == VECTOR_RESCHEDULE) {
            work_add(current, WORK_RESCHEDULE);
        } else if (SIDECALLS && vector == VECTOR_DISK) {
            disk_interrupt();
        } else if (SIDECALLS && vector == VECTOR_INTERFACE) {
            interface_interrupt();
        } else {
            panic("interrupt vector %lx", vector);
        }
        write_cr_eoi(0);
    }
}

/* The block's address names the CPU by its local identifier, which machines number from zero. */
void interrupt_processor(unsigned number, unsigned vector)
{
    volatile uint64_t *message = (uint64_t *)(UNCACHED_BASE + INTERRUPT_BLOCK_PHYSICAL + ((cpu(number)->local_identifier) << 4));
    *message = vector;
}
