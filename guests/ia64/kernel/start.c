/* Where each CPU comes from boot.S: CPU 0 sets up what is shared and the first process; once all CPUs are there every one
   idles, which is how it finds work. No process runs before: a CPU that still clears its hashed table takes none. */

#include "kernel.h"
#include "sidecalls.h"
#include "text.h"

struct per_cpu_page {
    _Alignas(1 << PER_CPU_SHIFT) struct per_cpu data;
    char rest[(1 << PER_CPU_SHIFT) - sizeof(struct per_cpu)];
};
struct per_cpu_page per_cpu_pages[PROCESSORS];

static volatile int is_set_up;
static unsigned others_ready;

extern char boot[];

struct per_cpu *cpu(unsigned number)
{
    return &per_cpu_pages[number].data;
}

void start(unsigned number)
{
    if (number == 0)
        read_parameters();
    else
        while (!is_set_up)
            relax();
    this_cpu->number = number;
    this_cpu->local_identifier = read_cr_lid() >> 16 & 0xffff;
    this_cpu->idle = (struct task *)((char *)idle_tasks + number * TASK_SIZE);
    this_cpu->idle->processor = number;
    translation_start();
    sidecalls_start();
    time_start();
    if (number == 0) {
        save_preserved_state = parameters.signal_state == SIGNAL_FULL;
        memory_start();
        process_start_first();
        print("kernel: %u CPU%s, %s format, walker %s, %lu MB\n", PROCESSORS, PROCESSORS == 1 ? "" : "s",
              parameters.format == FORMAT_LONG ? "long" : "short", parameters.walker ? "on" : "off", parameters.memory);
        is_set_up = 1;
        for (unsigned other = 1; other < PROCESSORS; other++)
            if (hypercall(HYPERCALL_START, other, physical(boot), 0))
                panic("CPU %u does not start", other);
        while (__atomic_load_n(&others_ready, __ATOMIC_ACQUIRE) != PROCESSORS - 1)
            relax();
    } else {
        __atomic_fetch_add(&others_ready, 1, __ATOMIC_RELEASE);
    }
    timer_start();
    idle();
}
