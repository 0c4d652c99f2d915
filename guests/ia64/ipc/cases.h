/* What a program of the cases finds on its stack, and how it passes messages. */

#ifndef CASES_H
#define CASES_H

#include <stdint.h>

#include "layout.h"

/* The threads, by number, and the spaces, which have those of the first two. The third and the fourth share them; the
   fifth and the sixth use floating-point registers; the last one is more urgent than the others. */
enum { FIRST = 1, SECOND, WITH_FIRST, WITH_SECOND, FLOATING, FLOATING_TOO, URGENT_WITH_FIRST };

struct arguments {
    uint64_t ipc, hypercall, function, number, rounds, left;
    uint64_t names[TCBS];
};

/* A call: what goes in, and what comes out in the same places, with the sender as `from`. */
struct call {
    uint64_t to, from, tag, timeouts, words[WORDS_IN_REGISTERS], thread_pointer;
};

/* program.S */
void pass(struct call *call, uint64_t gate, uint64_t unat);
void kernel_call(uint64_t function, uint64_t argument, uint64_t gate);
void set_floating_point(uint64_t number);
uint64_t floating_point(void);

/* cases.c: by name, for the kernel that starts them. */
#define CASES(row) \
    row("queue", case_queue) \
    row("open-wait", case_open_wait) \
    row("queued", case_queued) \
    row("sending", case_sending) \
    row("other-sender", case_other_sender) \
    row("other-partner", case_other_partner) \
    row("one-way", case_one_way) \
    row("local-names", case_local_names) \
    row("any-local", case_any_local) \
    row("long-message", case_long_message) \
    row("map", case_map) \
    row("map-beyond", case_map_beyond) \
    row("grant", case_grant) \
    row("string", case_string) \
    row("propagation", case_propagation) \
    row("refused-propagation", case_refused_propagation) \
    row("no-partner", case_no_partner) \
    row("no-time", case_no_time) \
    row("period", case_period) \
    row("point-in-time", case_point_in_time) \
    row("in-time", case_in_time) \
    row("until", case_until) \
    row("alarm", case_alarm) \
    row("urgent", case_urgent) \
    row("floating-point", case_floating_point) \
    row("label", case_label) \
    row("nat-to", case_nat_to) \
    row("nat-from", case_nat_from) \
    row("nat-tag", case_nat_tag) \
    row("nat-timeouts", case_nat_timeouts) \
    row("nat-word", case_nat_word) \
    row("nat-thread-pointer", case_nat_thread_pointer)
#define DECLARE(name, function) void function(struct arguments *arguments);
CASES(DECLARE)
#undef DECLARE

#endif
