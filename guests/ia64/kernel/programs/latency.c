/* How many cycles lie between two instructions: measured on gate pages with the performance monitor, as one would on the
   real machine.

       latency PAIR EVENT...

   PAIR is a name of sequences.S, EVENT the code of an event of the performance monitor, at most eight. For each event a line:

       latency: EVENT near CYCLES COUNT apart CYCLES COUNT none CYCLES COUNT

   `near` with the two in issue groups that follow each other, `apart` with 13 groups between them, `none` with nops in
   their place. */

#include "system.h"

#define CALL_GATE (1024 + 503)

struct counts {
    long cycles, events;
};

extern const struct sequence {
    const char *name;
    char *near, *apart, *none;
} sequences[];
extern char gate_start[], gate_end[];
void measure_on_gate(struct counts *counts, char *sequence, long event);

/* The third time, when the caches and the translation buffers have it. */
static struct counts measure(char *sequence, long event)
{
    static struct counts counts;
    for (int i = 0; i < 3; i++)
        measure_on_gate(&counts, sequence, event);
    return counts;
}

static void show(const char *name, struct counts counts)
{
    print(" %s %ld %ld", name, counts.cycles, counts.events);
}

int main(int count, char **arguments)
{
    if (count < 3) {
        print("usage: latency PAIR EVENT...\n");
        return 2;
    }
    const struct sequence *found = sequences;
    while (found->name && strcmp(found->name, arguments[1]))
        found++;
    if (!found->name) {
        print("latency: no pair %s\n", arguments[1]);
        return 2;
    }
    if (system_call(CALL_GATE, gate_start, (long)(gate_end - gate_start))) {
        print("latency: the kernel gives no gate pages\n");
        return 1;
    }
    /* What floating point there is belongs to this program from now on, so that no sequence is interrupted for it. */
    __asm__ volatile("fmerge.s f6 = f6, f6" ::: "f6");
    for (int i = 2; i < count; i++) {
        long event = number(arguments[i]);
        struct counts near = measure(found->near, event), apart = measure(found->apart, event);
        print("latency: %ld", event);
        show("near", near);
        show("apart", apart);
        show("none", measure(found->none, event));
        print("\n");
    }
    return 0;
}
