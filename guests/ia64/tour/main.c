#include "tour.h"

static const struct part {
    const char *name, *content;
    void (*visit)(void);
} parts[] = {
    {"integer", "multiply and divide, bit fields, shifts, compare chains", integer_part},
    {"floating point", "fused rounding, division, square root, modes, flags, denormals", floating_point_part},
    {"parallel integer", "saturating bytes, averages, differences, packs, shuffles", parallel_part},
    {"speculation", "loads ahead of their checks and of stores, NaT through memory", speculation_part},
    {"register stack", "1000 frames of 91 registers, spilled and filled, with their NaT bits", register_stack_part},
    {"register rotation", "software-pipelined loops on integers, floating point and a while", rotation_part},
    {"semaphores", "exchange, compare and exchange, fetch and add, 16 bytes at once", semaphore_part},
    {"signals", "sent, faulted, repaired, stepped over, on an alternate stack", signal_part},
    {"threads", "four threads on a mutex, a barrier and atomic adds", thread_part},
    {"processes", "a child, its exit code, a pipe, its death by a signal", process_part},
    {"files", "create, write, seek, read, stat, rename, list, remove", file_part},
};

static const char *current;
static int checks, wrong;

void check(int holds, const char *what)
{
    checks++;
    if (!holds) {
        wrong++;
        print("%s: wrong: %s\n", current, what);
    }
}

int main(void)
{
    int count = sizeof parts / sizeof *parts, total = 0;
    for (int i = 0; i < count; i++) {
        current = parts[i].name;
        checks = 0;
        parts[i].visit();
        print("%-18s%4d checks   %s\n", current, checks, parts[i].content);
        total += checks;
    }
    if (wrong)
        print("tour: %d of %d checks in %d parts went wrong\n", wrong, total, count);
    else
        print("tour: %d checks in %d parts, all right\n", total, count);
    return wrong != 0;
}
