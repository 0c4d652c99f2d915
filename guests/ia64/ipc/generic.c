/* Messages in general: any thread to any thread, which may be waiting or not.

   A call is a send phase, a receive phase, or both; assembly (generic.S) has put the tag and the first words into the caller's
   user thread control block, and takes them from there when the caller goes on. A thread that has to wait does so here,
   on its own kernel stack: `switch_to` returns when it runs again. The fast paths may answer a thread that waits for ever for
   a message: they return to its program, and what is on its kernel stack is forgotten. */

#include "kernel.h"

/* Ends `thread`'s call with an error: of what kind, and in which phase. */
void fail(struct tcb *thread, uint64_t error, uint64_t phase)
{
    thread->utcb->error = error << ERROR_SHIFT | phase;
    thread->utcb->message[0] = TAG_ERROR;
    thread->from = thread->partner = NOBODY;
    thread->state = STATE_RUNNING;
}

/* `thread`, by the name that it has for `asker`. */
static uint64_t name_for(const struct tcb *asker, const struct tcb *thread)
{
    return asker->space == thread->space ? thread->local : thread->identity;
}

/* Whether `receiver` waits for a message that `sender` sends as `name`, its own or another's. */
static int waits_for(const struct tcb *receiver, const struct tcb *sender, uint64_t name)
{
    if (receiver->state != STATE_WAITING && receiver->state != STATE_WAITING_UNTIL)
        return 0;
    return receiver->partner == name || receiver->partner == (uint64_t)ANYBODY
        || (receiver->partner == (uint64_t)ANY_LOCAL && receiver->space == sender->space)
        || receiver->partner == sender->identity;
}

/* The thread for which `sender` may send a message to `receiver`: one of its own space, or any if the message stays in the
   space. Nobody if it may not, or does not want to. */
static struct tcb *propagates_for(const struct tcb *sender, const struct tcb *receiver)
{
    struct tcb *other;
    if (LIKELY(!(sender->utcb->message[0] & TAG_PROPAGATED)))
        return 0;
    other = thread_of(sender, sender->utcb->virtual_sender);
    return other && (sender->space == other->space || sender->space == receiver->space) ? other : 0;
}

static void wait_to_send(struct tcb *thread, struct tcb *receiver, uint64_t name)
{
    struct tcb **end = &receiver->senders;
    while (*end)
        end = &(*end)->next;
    thread->state = STATE_SENDING;
    thread->partner = receiver->identity;
    thread->sends_as = name;
    thread->next = 0;
    *end = thread;
}

/* Out of the queue of senders in which it is. */
void stop_sending(struct tcb *thread)
{
    struct tcb **place = &thread_of(thread, thread->partner)->senders;
    while (*place != thread)
        place = &(*place)->next;
    *place = thread->next;
}

/* The first of those who wait to send to `thread` from whom it takes a message. */
static struct tcb *sender_for(const struct tcb *thread, uint64_t from)
{
    for (struct tcb *sender = thread->senders; sender; sender = sender->next)
        if (from == (uint64_t)ANYBODY || sender->identity == from || sender->sends_as == from
            || (from == (uint64_t)ANY_LOCAL && sender->space == thread->space))
            return sender;
    return 0;
}

/* Gives `to` the message of `from`. Whether all of it arrived: if not, both have an error. */
static int transfer(struct tcb *from, struct tcb *to)
{
    const uint64_t *source = from->utcb->message;
    uint64_t *target = to->utcb->message;
    uint64_t tag = source[0] & ~(uint64_t)TAG_RECEIVED, untyped = tag & TAG_UNTYPED;
    struct tcb *other = propagates_for(from, to);
    int whole = 1;
    for (uint64_t i = 1; i <= untyped; i++)
        target[i] = source[i];
    to->from = name_for(to, from);
    if (UNLIKELY(tag >> TAG_TYPED_SHIFT & TAG_UNTYPED))
        whole = transfer_items(from, to, tag);
    if (UNLIKELY(tag & TAG_PROPAGATED)) {
        if (other) {
            to->from = name_for(to, other);
            to->utcb->virtual_sender = name_for(to, from);
            /* Who waits for the sender's answer now waits for the receiver's. */
            if ((other->state == STATE_WAITING || other->state == STATE_WAITING_UNTIL) && other->partner == from->identity)
                other->partner = to->identity;
        } else {
            tag &= ~(uint64_t)TAG_PROPAGATED;
        }
    }
    if (UNLIKELY(!whole)) {
        to->utcb->error = ERROR_OVERFLOW << ERROR_SHIFT | PHASE_RECEIVE;
        tag |= TAG_ERROR;
        fail(from, ERROR_OVERFLOW, PHASE_SEND);
    }
    target[0] = tag;
    return whole;
}

/* `current` does not wait; `receiver`, if there is one, has a message. */
static void go_on(struct tcb *current, struct tcb *receiver)
{
    if (receiver) {
        make_ready(receiver);
        yield(current);
    }
}

/* Sends to `receiver`, which has the message afterwards and can run; nobody if it has none. Whether that went well. */
static int send(struct tcb *current, struct tcb **receiver, uint64_t timeout)
{
    struct tcb *to = *receiver;
    struct tcb *other = propagates_for(current, to);
    uint64_t name = other ? other->identity : current->identity;
    if (UNLIKELY(!waits_for(to, current, name))) {
        *receiver = 0;
        if (UNLIKELY(timeout != 0)) {
            if (timeout == TIMEOUT_ZERO) {
                fail(current, ERROR_TIMEOUT, PHASE_SEND);
                return 0;
            }
            set_deadline(current, timeout);
        }
        wait_to_send(current, to, name);
        switch_to(current, next_ready()); /* until the receiver asks for it, or time is over */
        if (current->partner == NOBODY)
            return 0;
        *receiver = to;
    }
    cancel_deadline(to);
    to->state = STATE_RUNNING;
    return transfer(current, to);
}

/* Waits for a message; `receiver` is who got one just now, and runs next. Who waits to send goes on with that at once, so that
   it waits for the answer before there can be one. */
static void receive(struct tcb *current, uint64_t from, uint64_t timeout, struct tcb *receiver)
{
    struct tcb *sender = current->senders ? sender_for(current, from) : 0;
    current->state = STATE_WAITING;
    current->partner = from;
    if (UNLIKELY(sender)) {
        stop_sending(sender);
        cancel_deadline(sender);
        sender->state = STATE_RUNNING;
        if (receiver)
            make_ready(receiver);
        return switch_to(current, sender);
    }
    if (UNLIKELY(timeout != 0)) {
        if (timeout == TIMEOUT_ZERO) {
            fail(current, ERROR_TIMEOUT, PHASE_RECEIVE);
            return go_on(current, receiver);
        }
        set_deadline(current, timeout);
        current->state = STATE_WAITING_UNTIL;
    }
    switch_to(current, receiver ? receiver : next_ready()); /* until somebody has sent it something, or time is over */
}

/* The system call: sends what is in the control block to `to`, then waits for a message from `from`; either may be nobody. */
void ipc(struct tcb *current, uint64_t to, uint64_t from, uint64_t timeouts)
{
    struct tcb *receiver = 0;
    current->utcb->message[0] &= ~(uint64_t)TAG_RECEIVED;
    if (UNLIKELY(current->resources & RESOURCE_ALARM)) {
        current->resources &= ~(uint64_t)RESOURCE_ALARM;
        expire_deadlines();
        yield(current);
    }
    if (LIKELY(to != NOBODY)) {
        receiver = thread_of(current, to);
        if (UNLIKELY(!receiver || receiver == current))
            return fail(current, ERROR_NO_PARTNER, PHASE_SEND);
        if (UNLIKELY(!send(current, &receiver, timeouts >> TIMEOUT_BITS & TIMEOUT_MASK)))
            return go_on(current, receiver);
    }
    if (UNLIKELY(from == NOBODY)) {
        current->from = NOBODY;
        return go_on(current, receiver);
    }
    if (LIKELY(from != (uint64_t)ANYBODY && from != (uint64_t)ANY_LOCAL)) {
        const struct tcb *partner = thread_of(current, from);
        if (UNLIKELY(!partner)) {
            fail(current, ERROR_NO_PARTNER, PHASE_RECEIVE);
            return go_on(current, receiver);
        }
        from = partner->identity;
        /* A call: who has the message now cannot be waiting to send one. */
        if (LIKELY(partner == receiver && !(timeouts & TIMEOUT_MASK))) {
            current->state = STATE_WAITING;
            current->partner = from;
            return switch_to(current, receiver);
        }
    }
    receive(current, from, timeouts & TIMEOUT_MASK, receiver);
}
