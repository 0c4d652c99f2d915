/* What messages must do besides being fast: programs that try one case each, by whichever path the machine's parameters
   name. Every thread of a case runs its function; the first one ends the machine, with 0 if all was right and with the
   number of the line in this file behind 1000 if not. Programs see no data of the image: only text, stacks and control
   blocks are theirs. */

#include "cases.h"

#define PROGRAM __attribute__((section(".text.program")))
#define TRY(condition) try(self, condition, __LINE__)
/* For ever to the receiver, and this for the answer; or the other way round. */
#define RECEIVE(timeout) (timeout)
#define SEND(timeout) ((uint64_t)(timeout) << TIMEOUT_BITS)
#define MICROSECONDS(number) (number)
#define ERROR(kind, phase) ((kind) << ERROR_SHIFT | (phase))
#define PAGES(address, rights) ((address) | PAGE_SHIFT << PAGES_SIZE_SHIFT | (rights))
#define FLAGS (TAG_RECEIVED | TAG_PROPAGATED)

struct control_block {
    uint64_t identity, error, virtual_sender, acceptor, own[4], message[1 + WORDS_MAX];
};

static inline struct control_block *block_of(uint64_t number)
{
    return (struct control_block *)(UTCBS_ADDRESS + number * UTCB_SIZE);
}

static inline uint64_t local(uint64_t number)
{
    return (uint64_t)block_of(number);
}

PROGRAM static void end(const struct arguments *self, uint64_t code)
{
    kernel_call(HYPERCALL_EXIT, code, self->hypercall);
}

static inline void try(const struct arguments *self, int holds, uint64_t line)
{
    if (!holds)
        end(self, 1000 + line);
}

/* Passes a message of one word, or of none if there is nobody to send to. */
PROGRAM static struct call passed(const struct arguments *self, uint64_t to, uint64_t from, uint64_t timeouts, uint64_t tag, uint64_t word)
{
    struct call call = {to, from, tag, timeouts, {word, 0, 0, 0, 0, 0, 0, 0}, self->number};
    pass(&call, self->ipc, 0);
    TRY(call.thread_pointer == self->number);
    return call;
}

PROGRAM static struct call call(const struct arguments *self, uint64_t to, uint64_t word)
{
    return passed(self, to, to, 0, 1, word);
}

PROGRAM static struct call reply_and_wait(const struct arguments *self, uint64_t to, uint64_t from, uint64_t word)
{
    return passed(self, to, from, 0, 1, word);
}

PROGRAM static struct call wait(const struct arguments *self, uint64_t from)
{
    return passed(self, NOBODY, from, 0, 0, 0);
}

PROGRAM static void send(const struct arguments *self, uint64_t to, uint64_t word)
{
    passed(self, to, NOBODY, 0, 1, word);
}

/* Waits for what will never come: its own message. */
PROGRAM static void sleep_for_ever(const struct arguments *self)
{
    for (;;)
        wait(self, self->names[self->number]);
}

/* Until nobody else can run. */
PROGRAM static void let_others_run(const struct arguments *self)
{
    passed(self, NOBODY, self->names[self->number], RECEIVE(MICROSECONDS(100)), 0, 0);
}

PROGRAM static uint64_t error_of(const struct arguments *self, struct call call)
{
    TRY(call.from == NOBODY && call.tag == TAG_ERROR);
    return block_of(self->number)->error;
}

PROGRAM static uint64_t microseconds(void)
{
    uint64_t cycles;
    __asm__ volatile("mov %0 = ar.itc" : "=r"(cycles));
    return cycles / CYCLES_PER_MICROSECOND;
}

/* Answers everybody who asks, with one more. */
PROGRAM static void serve(const struct arguments *self)
{
    struct call asked = wait(self, ANYBODY);
    for (;;)
        asked = reply_and_wait(self, asked.from, ANYBODY, asked.words[0] + 1);
}

/* A message to a thread that waits for another one's waits until it is asked for. */
PROGRAM void case_queue(struct arguments *self)
{
    const uint64_t *names = self->names;
    if (self->number == FIRST) {
        struct call answer = call(self, names[SECOND], 1);
        TRY(answer.from == names[SECOND] && answer.tag == 1 && answer.words[0] == 2);
        end(self, 0);
    } else if (self->number == WITH_FIRST) {
        send(self, names[SECOND], 7);
    } else if (self->number == SECOND) {
        struct call sent = wait(self, names[WITH_FIRST]);
        TRY(sent.from == names[WITH_FIRST] && sent.words[0] == 7);
        sent = wait(self, ANYBODY);
        TRY(sent.from == names[FIRST] && sent.words[0] == 1);
        send(self, sent.from, 2);
    }
    sleep_for_ever(self);
}

/* Three clients of a server that waits for anybody: while it answers one, others have called. */
PROGRAM void case_open_wait(struct arguments *self)
{
    const uint64_t *names = self->names;
    if (self->number == SECOND)
        serve(self);
    if (self->number != FIRST && self->number != WITH_FIRST && self->number != FLOATING)
        sleep_for_ever(self);
    for (uint64_t i = 0; i < 5; i++) {
        struct call answer = call(self, names[SECOND], 100 * self->number + i);
        TRY(answer.from == names[SECOND] && answer.words[0] == 100 * self->number + i + 1);
    }
    if (self->number != FIRST) {
        send(self, names[FIRST], self->number);
        sleep_for_ever(self);
    }
    uint64_t done = wait(self, names[FLOATING]).words[0] + wait(self, names[WITH_FIRST]).words[0];
    TRY(done == FLOATING + WITH_FIRST);
    end(self, 0);
}

/* Who answers one and waits for anybody takes the message of another one who has queued. */
PROGRAM void case_queued(struct arguments *self)
{
    const uint64_t *names = self->names;
    if (self->number == FIRST) {
        TRY(call(self, names[SECOND], 1).words[0] == 2);
        TRY(wait(self, names[FLOATING]).words[0] == 7);
        end(self, 0);
    } else if (self->number == SECOND) {
        struct call asked = wait(self, names[FIRST]);
        let_others_run(self);
        asked = reply_and_wait(self, asked.from, ANYBODY, 2);
        TRY(asked.from == names[FLOATING] && asked.words[0] == 5);
        send(self, asked.from, 6);
    } else if (self->number == FLOATING) {
        TRY(call(self, names[SECOND], 5).words[0] == 6);
        send(self, names[FIRST], 7);
    }
    sleep_for_ever(self);
}

/* Who waits to send to a thread does not wait for its message. */
PROGRAM void case_sending(struct arguments *self)
{
    const uint64_t *names = self->names;
    if (self->number == FIRST) {
        let_others_run(self);
        TRY(error_of(self, passed(self, names[SECOND], names[SECOND], SEND(MICROSECONDS(50)), 1, 1)) == ERROR(ERROR_TIMEOUT, PHASE_SEND));
        struct call sent = wait(self, names[SECOND]);
        TRY(sent.from == names[SECOND] && sent.words[0] == 9);
        TRY(call(self, names[SECOND], 1).words[0] == 2);
        end(self, 0);
    } else if (self->number == SECOND) {
        send(self, names[FIRST], 9);
        serve(self);
    }
    sleep_for_ever(self);
}

/* The receiver waits, but for somebody else, who comes later. */
PROGRAM void case_other_sender(struct arguments *self)
{
    const uint64_t *names = self->names;
    if (self->number == FIRST) {
        let_others_run(self);
        TRY(call(self, names[SECOND], 1).words[0] == 2);
        end(self, 0);
    } else if (self->number == SECOND) {
        TRY(wait(self, names[FLOATING]).words[0] == 5);
        serve(self);
    } else if (self->number == FLOATING) {
        let_others_run(self);
        let_others_run(self);
        send(self, names[SECOND], 5);
    }
    sleep_for_ever(self);
}

/* The receiver waits, but for somebody else; the sender waits for the answer of somebody else than the receiver. */
PROGRAM void case_other_partner(struct arguments *self)
{
    const uint64_t *names = self->names;
    if (self->number == FIRST) {
        let_others_run(self);
        struct call answer = passed(self, names[SECOND], names[WITH_SECOND], 0, 1, 11);
        TRY(answer.from == names[WITH_SECOND] && answer.words[0] == 12);
        end(self, 0);
    } else if (self->number == SECOND) {
        struct call sent = wait(self, names[FLOATING]);
        TRY(sent.from == names[FLOATING] && sent.words[0] == 5);
        sent = wait(self, names[FIRST]);
        TRY(sent.from == names[FIRST] && sent.words[0] == 11);
        send(self, names[WITH_SECOND], 11);
    } else if (self->number == WITH_SECOND) {
        struct call sent = wait(self, ANYBODY);
        TRY(sent.from == local(SECOND));
        send(self, names[FIRST], sent.words[0] + 1);
    } else if (self->number == FLOATING) {
        let_others_run(self);
        send(self, names[SECOND], 5);
    }
    sleep_for_ever(self);
}

/* A message without an answer, to one who waits and to one who does not yet. */
PROGRAM void case_one_way(struct arguments *self)
{
    const uint64_t *names = self->names;
    if (self->number == FIRST) {
        let_others_run(self);
        for (uint64_t i = 0; i < 3; i++) {
            struct call sent = passed(self, names[SECOND], NOBODY, 0, 1, i);
            TRY(sent.from == NOBODY && !(sent.tag & TAG_ERROR));
        }
        TRY(wait(self, ANYBODY).words[0] == 3);
        end(self, 0);
    } else if (self->number == SECOND) {
        for (uint64_t i = 0; i < 3; i++)
            TRY(wait(self, ANYBODY).words[0] == i);
        send(self, names[FIRST], 3);
    }
    sleep_for_ever(self);
}

/* In one space threads are also called by their control blocks, and that is how their messages name them. */
PROGRAM void case_local_names(struct arguments *self)
{
    const uint64_t *names = self->names;
    if (self->number == FIRST) {
        let_others_run(self);
        struct call answer = call(self, local(WITH_FIRST), 1);
        TRY(answer.from == local(WITH_FIRST) && answer.words[0] == 2);
        answer = call(self, names[WITH_FIRST], 3);
        TRY(answer.from == local(WITH_FIRST) && answer.words[0] == 4);
        TRY(error_of(self, call(self, local(SECOND), 5)) == ERROR(ERROR_NO_PARTNER, PHASE_SEND));
        TRY(error_of(self, call(self, local(WITH_FIRST) + 64, 5)) == ERROR(ERROR_NO_PARTNER, PHASE_SEND));
        TRY(block_of(FIRST)->identity == names[FIRST]);
        end(self, 0);
    } else if (self->number == WITH_FIRST) {
        serve(self);
    }
    sleep_for_ever(self);
}

/* Who waits for anybody of its space does not hear others before. */
PROGRAM void case_any_local(struct arguments *self)
{
    const uint64_t *names = self->names;
    if (self->number == FIRST) {
        let_others_run(self);
        send(self, names[WITH_FIRST], 1);
        TRY(wait(self, ANYBODY).words[0] == 3);
        end(self, 0);
    } else if (self->number == SECOND) {
        let_others_run(self);
        call(self, names[WITH_FIRST], 2);
    } else if (self->number == WITH_FIRST) {
        struct call sent = wait(self, ANY_LOCAL);
        TRY(sent.from == local(FIRST) && sent.words[0] == 1);
        let_others_run(self);
        sent = wait(self, ANYBODY);
        TRY(sent.from == names[SECOND] && sent.words[0] == 2);
        send(self, local(FIRST), 3);
    }
    sleep_for_ever(self);
}

/* Words beyond those in registers are in the control blocks. */
PROGRAM void case_long_message(struct arguments *self)
{
    uint64_t *words = block_of(self->number)->message;
    if (self->number == FIRST) {
        let_others_run(self);
        for (uint64_t size = WORDS_IN_REGISTERS + 1; size <= WORDS_MAX; size += 18) {
            for (uint64_t i = WORDS_IN_REGISTERS + 1; i <= WORDS_MAX; i++)
                words[i] = 1000 * size + i;
            struct call answer = passed(self, self->names[SECOND], self->names[SECOND], 0, size, size);
            TRY(answer.tag == size && answer.words[0] == size + 1);
            for (uint64_t i = WORDS_IN_REGISTERS + 1; i <= WORDS_MAX; i++)
                TRY(words[i] == 1000 * size + i + (i <= size));
        }
        end(self, 0);
    } else if (self->number == SECOND) {
        struct call sent = wait(self, ANYBODY);
        for (;;) {
            for (uint64_t i = WORDS_IN_REGISTERS + 1; i <= sent.tag; i++)
                words[i]++;
            sent = passed(self, sent.from, ANYBODY, 0, sent.tag, sent.words[0] + 1);
        }
    }
    sleep_for_ever(self);
}

/* A message of one word and one item. */
PROGRAM static struct call item(const struct arguments *self, uint64_t to, uint64_t from, uint64_t first, uint64_t second)
{
    struct call call = {to, from, 1 | 2 << TAG_TYPED_SHIFT, 0, {42, first, second, 0, 0, 0, 0, 0}, self->number};
    pass(&call, self->ipc, 0);
    return call;
}

#define FREE_PAGE 0x8000
#define STACK_OF(number) ((uint64_t)STACKS_ADDRESS + (number) * PAGE_SIZE)
/* Between a thread's two stacks. */
#define WORD_IN(page) ((volatile uint64_t *)((page) + PAGE_SIZE / 2))

/* A page of the sender, seen by the receiver where it wants it; what one writes the other reads. */
PROGRAM void case_map(struct arguments *self)
{
    if (self->number == FIRST) {
        *WORD_IN(STACK_OF(FIRST)) = 77;
        const uint64_t pages = PAGES(STACK_OF(FIRST), PAGES_READ | PAGES_WRITE);
        struct call answer = item(self, self->names[SECOND], self->names[SECOND], FREE_PAGE | ITEM_MAP, pages);
        TRY(answer.words[0] == 77 && *WORD_IN(STACK_OF(FIRST)) == 78);
        end(self, 0);
    } else if (self->number == SECOND) {
        volatile uint64_t *seen = WORD_IN(FREE_PAGE);
        block_of(SECOND)->acceptor = PAGES_ALL;
        struct call sent = wait(self, ANYBODY);
        TRY(sent.tag == (1 | 2 << TAG_TYPED_SHIFT) && sent.words[0] == 42 && sent.words[1] == (FREE_PAGE | ITEM_MAP));
        uint64_t first = *seen;
        *seen = first + 1;
        send(self, sent.from, first);
    }
    sleep_for_ever(self);
}

/* More than there is to map: nothing is, and the message arrives. */
PROGRAM void case_map_beyond(struct arguments *self)
{
    const uint64_t everything = (uint64_t)63 << PAGES_SIZE_SHIFT | PAGES_READ | PAGES_WRITE;
    if (self->number == FIRST) {
        let_others_run(self);
        TRY(item(self, self->names[SECOND], self->names[SECOND], ITEM_MAP, everything).words[0] == 1);
        TRY(item(self, self->names[SECOND], self->names[SECOND], ITEM_MAP, PAGES(UTCBS_ADDRESS, PAGES_READ)).words[0] == 2);
        TRY(item(self, self->names[SECOND], self->names[SECOND], ITEM_MAP, PAGES(-PAGE_SIZE, PAGES_READ)).words[0] == 3);
        end(self, 0);
    } else if (self->number == SECOND) {
        block_of(SECOND)->acceptor = everything;
        struct call sent = wait(self, ANYBODY);
        for (uint64_t i = 1;; i++) {
            TRY(sent.words[0] == 42 && !(sent.tag & FLAGS));
            block_of(SECOND)->acceptor = PAGES_ALL;
            sent = reply_and_wait(self, sent.from, ANYBODY, i);
        }
    }
    sleep_for_ever(self);
}

/* What was granted is gone: the sender's access ends as nobody handles it. And what is mapped without a right to write is
   tried before. */
PROGRAM void case_grant(struct arguments *self)
{
    if (self->number == FIRST) {
        volatile uint64_t *page = WORD_IN(FREE_PAGE);
        let_others_run(self);
        block_of(FIRST)->acceptor = PAGES(FREE_PAGE, 0);
        TRY(wait(self, self->names[SECOND]).words[0] == 42); /* SECOND's stack */
        TRY(*page == 5);
        item(self, self->names[FLOATING], self->names[FLOATING], ITEM_GRANT, PAGES(FREE_PAGE, PAGES_READ));
        end(self, *page ? 0 : 1);
    } else if (self->number == SECOND) {
        *WORD_IN(STACK_OF(SECOND)) = 5;
        item(self, self->names[FIRST], NOBODY, ITEM_MAP, PAGES(STACK_OF(SECOND), PAGES_READ | PAGES_WRITE));
    } else if (self->number == FLOATING) {
        block_of(FLOATING)->acceptor = PAGES(FREE_PAGE, 0);
        struct call sent = wait(self, ANYBODY);
        TRY(*WORD_IN(FREE_PAGE) == 5);
        send(self, sent.from, 0);
    }
    sleep_for_ever(self);
}

/* A string is refused: both learn of it. */
PROGRAM void case_string(struct arguments *self)
{
    if (self->number == FIRST) {
        let_others_run(self);
        TRY(error_of(self, item(self, self->names[SECOND], self->names[SECOND], 64 << ITEM_BASE_SHIFT, STACK_OF(FIRST)))
            == ERROR(ERROR_OVERFLOW, PHASE_SEND));
        TRY(wait(self, ANYBODY).words[0] == 1);
        end(self, 0);
    } else if (self->number == SECOND) {
        struct call sent = wait(self, ANYBODY);
        TRY(sent.from == self->names[FIRST] && sent.tag & TAG_ERROR && sent.words[0] == 42);
        TRY(block_of(SECOND)->error == ERROR(ERROR_OVERFLOW, PHASE_RECEIVE));
        send(self, sent.from, 1);
    }
    sleep_for_ever(self);
}

/* A thread passes a question on to another one, which answers who asked. */
PROGRAM void case_propagation(struct arguments *self)
{
    const uint64_t *names = self->names;
    if (self->number == FIRST) {
        struct call answer = call(self, names[WITH_FIRST], 20);
        TRY(answer.from == names[SECOND] && answer.words[0] == 22 && !(answer.tag & FLAGS));
        end(self, 0);
    } else if (self->number == WITH_FIRST) {
        struct call asked = wait(self, ANYBODY);
        TRY(asked.from == local(FIRST));
        block_of(WITH_FIRST)->virtual_sender = names[FIRST];
        passed(self, names[SECOND], NOBODY, 0, 1 | TAG_PROPAGATED, asked.words[0] + 1);
    } else if (self->number == SECOND) {
        struct call asked = wait(self, names[FIRST]);
        TRY(asked.from == names[FIRST] && (asked.tag & FLAGS) == TAG_PROPAGATED);
        TRY(block_of(SECOND)->virtual_sender == names[WITH_FIRST]);
        send(self, asked.from, asked.words[0] + 1);
    }
    sleep_for_ever(self);
}

/* Nobody speaks for a thread of another space to a third. */
PROGRAM void case_refused_propagation(struct arguments *self)
{
    const uint64_t *names = self->names;
    if (self->number == FIRST) {
        let_others_run(self);
        block_of(FIRST)->virtual_sender = names[SECOND];
        struct call answer = passed(self, names[FLOATING], names[FLOATING], 0, 1 | TAG_PROPAGATED, 1);
        TRY(answer.words[0] == 2);
        end(self, 0);
    } else if (self->number == FLOATING) {
        struct call asked = wait(self, ANYBODY);
        TRY(asked.from == names[FIRST] && !(asked.tag & FLAGS));
        send(self, asked.from, 2);
    }
    sleep_for_ever(self);
}

/* Threads that do not exist, or no more, or are oneself. */
PROGRAM void case_no_partner(struct arguments *self)
{
    const uint64_t *names = self->names;
    const uint64_t send_error = ERROR(ERROR_NO_PARTNER, PHASE_SEND), receive_error = ERROR(ERROR_NO_PARTNER, PHASE_RECEIVE);
    if (self->number != FIRST) {
        wait(self, ANYBODY);
        sleep_for_ever(self);
    }
    let_others_run(self);
    TRY(error_of(self, call(self, names[SECOND] + 1, 0)) == send_error);
    TRY(error_of(self, call(self, names[SECOND] + ((uint64_t)TCBS << NUMBER_SHIFT), 0)) == send_error);
    TRY(error_of(self, call(self, names[FIRST], 0)) == send_error);
    TRY(error_of(self, call(self, 1, 0)) == send_error);
    TRY(error_of(self, passed(self, NOBODY, names[SECOND] + 1, 0, 0, 0)) == receive_error);
    TRY(error_of(self, passed(self, names[SECOND], names[WITH_SECOND] + 1, 0, 1, 0)) == receive_error);
    end(self, 0);
}

/* Who does not want to wait does not. */
PROGRAM void case_no_time(struct arguments *self)
{
    const uint64_t *names = self->names;
    if (self->number != FIRST) {
        if (self->number == SECOND)
            wait(self, names[FIRST]);
        sleep_for_ever(self);
    }
    let_others_run(self);
    TRY(error_of(self, passed(self, names[WITH_SECOND], names[WITH_SECOND], SEND(TIMEOUT_ZERO), 1, 0))
        == ERROR(ERROR_TIMEOUT, PHASE_SEND));
    TRY(error_of(self, passed(self, NOBODY, ANYBODY, RECEIVE(TIMEOUT_ZERO), 0, 0)) == ERROR(ERROR_TIMEOUT, PHASE_RECEIVE));
    TRY(error_of(self, passed(self, names[SECOND], names[SECOND], SEND(TIMEOUT_ZERO) | RECEIVE(TIMEOUT_ZERO), 1, 0))
        == ERROR(ERROR_TIMEOUT, PHASE_RECEIVE));
    end(self, 0);
}

/* Waiting ends after a period: 100, and 50 doubled three times. */
PROGRAM void case_period(struct arguments *self)
{
    const uint64_t *names = self->names;
    if (self->number != FIRST)
        sleep_for_ever(self);
    let_others_run(self);
    uint64_t begun = microseconds();
    TRY(error_of(self, passed(self, names[SECOND], names[SECOND], SEND(MICROSECONDS(100)), 1, 0)) == ERROR(ERROR_TIMEOUT, PHASE_SEND));
    TRY(microseconds() - begun - 99 < 50);
    begun = microseconds();
    TRY(error_of(self, passed(self, NOBODY, names[SECOND], RECEIVE(3 << TIMEOUT_MANTISSA_BITS | 50), 0, 0))
        == ERROR(ERROR_TIMEOUT, PHASE_RECEIVE));
    TRY(microseconds() - begun - 399 < 50);
    end(self, 0);
}

/* Waiting ends at a point in time, given by the clock's low bits: 300 microseconds from now. */
PROGRAM void case_point_in_time(struct arguments *self)
{
    if (self->number != FIRST)
        sleep_for_ever(self);
    for (int i = 0; i < 5; i++) {
        uint64_t at = microseconds() + 300, bit = at >> TIMEOUT_MANTISSA_BITS & 1;
        uint64_t timeout = TIMEOUT_POINT | bit << TIMEOUT_MANTISSA_BITS | (at & ((1 << TIMEOUT_MANTISSA_BITS) - 1));
        TRY(error_of(self, passed(self, NOBODY, ANYBODY, RECEIVE(timeout), 0, 0)) == ERROR(ERROR_TIMEOUT, PHASE_RECEIVE));
        TRY(microseconds() - at < 50);
    }
    end(self, 0);
}

/* What comes in time is no error, then or later. */
PROGRAM void case_in_time(struct arguments *self)
{
    const uint64_t *names = self->names;
    if (self->number == FIRST) {
        let_others_run(self);
        struct call answer = passed(self, names[SECOND], names[SECOND], RECEIVE(MICROSECONDS(500)), 1, 1);
        TRY(answer.from == names[SECOND] && answer.words[0] == 2);
        answer = call(self, names[SECOND], 3);
        TRY(answer.from == names[SECOND] && answer.words[0] == 4);
        end(self, 0);
    } else if (self->number == SECOND) {
        struct call asked = passed(self, NOBODY, ANYBODY, RECEIVE(MICROSECONDS(1020) | 4 << TIMEOUT_MANTISSA_BITS), 0, 0);
        TRY(asked.from == names[FIRST] && asked.words[0] == 1);
        asked = reply_and_wait(self, asked.from, ANYBODY, 2);
        let_others_run(self);
        passed(self, asked.from, NOBODY, 0, 1, asked.words[0] + 1);
    }
    sleep_for_ever(self);
}

/* What was in time ends the wait for good: when its time would have been over, nothing happens. */
PROGRAM void case_until(struct arguments *self)
{
    const uint64_t *names = self->names;
    if (self->number == FIRST) {
        TRY(call(self, names[SECOND], 0).words[0] == 1);
        TRY(call(self, names[SECOND], 3).words[0] == 4);
        let_others_run(self);
        let_others_run(self);
        TRY(call(self, names[SECOND], 5).words[0] == 6);
        end(self, 0);
    } else if (self->number == SECOND) {
        struct call asked = wait(self, ANYBODY);
        asked = passed(self, asked.from, ANYBODY, RECEIVE(MICROSECONDS(150)), 1, 1);
        TRY(asked.from == names[FIRST] && asked.words[0] == 3);
        asked = reply_and_wait(self, asked.from, names[FIRST], 4);
        TRY(asked.from == names[FIRST] && asked.words[0] == 5);
        send(self, asked.from, 6);
    }
    sleep_for_ever(self);
}

/* Time is over for one thread while two others pass messages as fast as they can. */
PROGRAM void case_alarm(struct arguments *self)
{
    const uint64_t *names = self->names;
    volatile uint64_t *seen = block_of(FIRST)->own;
    if (self->number == URGENT_WITH_FIRST) {
        uint64_t begun = microseconds();
        for (int i = 0; i < 3; i++) {
            TRY(error_of(self, passed(self, NOBODY, ANYBODY, RECEIVE(MICROSECONDS(60)), 0, 0)) == ERROR(ERROR_TIMEOUT, PHASE_RECEIVE));
            *seen = microseconds() - begun;
        }
    } else if (self->number == SECOND) {
        serve(self);
    } else if (self->number == WITH_SECOND) {
        struct call asked = wait(self, names[FIRST]);
        TRY(passed(self, asked.from, asked.from, RECEIVE(MICROSECONDS(30)), 1, 2).words[0] == 3);
    } else if (self->number == FIRST) {
        uint64_t begun = microseconds(), last = 0;
        call(self, names[WITH_SECOND], 1);
        send(self, names[WITH_SECOND], 3); /* in time: the next deadline is another thread's */
        for (uint64_t times = 0; times < 3;) {
            TRY(call(self, names[SECOND], 5).words[0] == 6);
            TRY(microseconds() - begun < 1000);
            if (*seen != last) {
                times++;
                last = *seen;
                TRY(last + 1 >= 60 * times && last < 60 * times + 30);
            }
        }
        end(self, 0);
    }
    sleep_for_ever(self);
}

/* Who is more urgent runs before the sender goes on; who is not, later. */
PROGRAM void case_urgent(struct arguments *self)
{
    const uint64_t *names = self->names;
    volatile uint64_t *seen = block_of(FIRST)->own;
    if (self->number == URGENT_WITH_FIRST || self->number == WITH_FIRST) {
        for (;;)
            *seen = wait(self, ANYBODY).words[0];
    }
    if (self->number != FIRST)
        sleep_for_ever(self);
    let_others_run(self);
    *seen = 0;
    send(self, names[URGENT_WITH_FIRST], 9);
    TRY(*seen == 9);
    send(self, names[WITH_FIRST], 8);
    TRY(*seen == 9);
    let_others_run(self);
    TRY(*seen == 8);
    end(self, 0);
}

/* Preserved floating-point registers are each thread's own. */
PROGRAM void case_floating_point(struct arguments *self)
{
    const uint64_t *names = self->names;
    if (self->number == FLOATING || self->number == FLOATING_TOO) {
        uint64_t other = self->number == FLOATING ? FLOATING_TOO : FLOATING, value = 0x1234 * self->number;
        set_floating_point(value);
        for (int i = 0; i < 4; i++) {
            struct call answer = self->number == FLOATING ? call(self, names[other], 1)
                : i                                       ? reply_and_wait(self, names[other], ANYBODY, 1)
                                                          : wait(self, ANYBODY);
            TRY(answer.from == names[other] && floating_point() == value);
            set_floating_point(++value);
        }
        if (self->number == FLOATING_TOO)
            send(self, names[FLOATING], 1);
        else
            TRY(call(self, names[FIRST], 1).from == names[FIRST] && floating_point() == value);
        send(self, names[FIRST], 2);
    } else if (self->number == FIRST) {
        /* The registers are another thread's when the first one's answer is passed on. */
        wait(self, names[FLOATING]);
        TRY(wait(self, names[FLOATING_TOO]).words[0] == 2);
        TRY(call(self, names[FLOATING], 3).words[0] == 2);
        end(self, 0);
    }
    sleep_for_ever(self);
}

/* The programs' part of a tag, and that no words need to be sent. */
PROGRAM void case_label(struct arguments *self)
{
    const uint64_t *names = self->names;
    const uint64_t tag = (uint64_t)0xabcdef << TAG_LABEL_SHIFT;
    if (self->number == FIRST) {
        let_others_run(self);
        struct call answer = passed(self, names[SECOND], names[SECOND], 0, tag | 8, 1);
        TRY(answer.tag == tag + ((uint64_t)1 << TAG_LABEL_SHIFT));
        end(self, 0);
    } else if (self->number == SECOND) {
        struct call asked = wait(self, ANYBODY);
        TRY(asked.tag == (tag | 8));
        passed(self, asked.from, ANYBODY, 0, tag + ((uint64_t)1 << TAG_LABEL_SHIFT), 0);
    }
    sleep_for_ever(self);
}

/* An argument that is not a thing is the program's exception. */
PROGRAM static void not_a_thing(const struct arguments *self, uint64_t index)
{
    struct call call = {self->names[SECOND], self->names[SECOND], 1, 0, {0, 0, 0, 0, 0, 0, 0, 0}, self->number};
    if (self->number == FIRST) {
        let_others_run(self);
        pass(&call, self->ipc, (uint64_t)1 << (((uint64_t)&call / 8 + index) & 63));
        end(self, END_WRONG);
    } else if (self->number == SECOND) {
        serve(self);
    }
    sleep_for_ever(self);
}

PROGRAM void case_nat_to(struct arguments *self)
{
    not_a_thing(self, 0);
}

PROGRAM void case_nat_from(struct arguments *self)
{
    not_a_thing(self, 1);
}

PROGRAM void case_nat_tag(struct arguments *self)
{
    not_a_thing(self, 2);
}

PROGRAM void case_nat_timeouts(struct arguments *self)
{
    not_a_thing(self, 3);
}

PROGRAM void case_nat_word(struct arguments *self)
{
    not_a_thing(self, 11);
}

PROGRAM void case_nat_thread_pointer(struct arguments *self)
{
    not_a_thing(self, 12);
}
