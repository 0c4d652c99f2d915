/* A program's registers while its task is in the kernel.

   What an entry saves is in the frame at the top of the kernel stack. The preserved registers are wherever the functions that
   were called since have put them, if any of them needed to: `program_registers` goes through those by unwind.c. The program's stacked
   registers are at the beginning of the kernel's backing store, and go where they would have been spilled on its own. */

#include "core.h"
#include "text.h"

/* Bits of PSR that are the program's own: the user mask. */
#define PSR_USER_MASK (PSR_BE | PSR_UP | PSR_AC | PSR_MFL | PSR_MFH)

static void floating_of(struct task *task, struct floating *low, struct floating *high)
{
    struct per_cpu *here = this_cpu;
    memcpy(low, task->floating_low, sizeof task->floating_low);
    memcpy(high, task->floating_high, sizeof task->floating_high);
    if (here->floating_low_owner == task)
        save_floating_low(low);
    if (here->floating_high_owner == task)
        save_floating_high(high);
}

/* Writes the registers from `from` to `end` of the kernel's backing store to that of the program, as far as it can be written.
   Answers its end there, and the NaT bits of the collection that is not full. */
static uint64_t write_backing_store(const struct unwind *state, uint64_t from, uint64_t end, uint64_t to, uint64_t *rnat)
{
    int failed = 0;
    for (; from < end; from += 8) {
        if (is_nat_collection(from))
            continue;
        if (is_nat_collection(to)) {
            failed |= copy_to_user(to, rnat, 8);
            *rnat = 0;
            to += 8;
        }
        uint64_t collection = from | 0x1f8, bits = collection < state->bspstore ? *(uint64_t *)collection : state->rnat;
        uint64_t bit = 1UL << (to >> 3 & 63);
        *rnat = bits >> (from >> 3 & 63) & 1 ? *rnat | bit : *rnat & ~bit;
        failed |= copy_to_user(to, (void *)from, 8);
        to += 8;
    }
    if (failed)
        print("kernel: the backing store of process %lu cannot be written\n", state->task->identity);
    return to;
}

/* The preserved registers where nothing was saved but what functions needed to. */
static void unwind_program(struct unwind *state, struct task *task, const struct floating *low)
{
    struct context here, *context = task->context; /* where it is: NaT bits are by address */
    if (task == current)
        save_context(context = &here);
    unwind_begin(state, task, context, low);
    unwind_to_entry(state);
}

/* As unwinding would say it, with signal-state=full. */
static void from_copy(struct unwind *state, const struct task *task, const struct preserved *preserved)
{
    struct context context;
    save_context(&context); /* for the backing store: all of it is in memory then */
    memset(state, 0, sizeof *state);
    state->task = task;
    state->end = UNWIND_INTERRUPTION;
    state->bsp = preserved->end;
    state->bspstore = context.bspstore;
    state->rnat = context.rnat;
    state->frame_marker = context.pfs;
    state->lc = preserved->lc;
    memcpy(state->r4, preserved->r4, sizeof state->r4);
    memcpy(state->b1, preserved->b1, sizeof state->b1);
    memcpy(state->f2, preserved->f2, 4 * sizeof *state->f2);
    memcpy(state->f2 + 4, preserved->f2 + 8, 16 * sizeof *state->f2);
    state->nats = rotate_right(preserved->spill_unat, (uint64_t)preserved->r4 >> 3) & 0xf;
}

/* A system call saves nothing of what a call destroys: the frame has an earlier entry's. */
static void forget_scratch(struct program_registers *registers)
{
    const uint64_t destroyed = 0xffff4f0c; /* r2, r3, r8 to r11, r14, r16 to r31 */
    for (unsigned i = 0; i < 32; i++)
        if (destroyed >> i & 1)
            registers->general[i] = 0;
    registers->general[CORE_NATS] &= ~destroyed;
    registers->general[CORE_B0 + 7] = registers->general[CORE_CCV] = registers->general[CORE_CSD] = 0;
    memset(&registers->floating[6], 0, 6 * sizeof *registers->floating);
}

void program_registers(struct task *task, const struct preserved *preserved, struct program_registers *registers)
{
    struct frame *frame = user_frame(task);
    struct floating low[24];
    memset(registers, 0, sizeof *registers);
    floating_of(task, low, &registers->floating[32]);
    struct unwind state;
    if (preserved)
        from_copy(&state, task, preserved);
    else
        unwind_program(&state, task, low);
    registers->unwound = state.end;
    registers->frames = state.frames;
    registers->stuck = state.ip;

    uint64_t *general = registers->general;
    memcpy(&general[1], &frame->r1, 3 * 8);
    memcpy(&general[4], state.r4, sizeof state.r4);
    memcpy(&general[8], &frame->r8, 8 * 8);
    memcpy(&general[16], frame->r16, sizeof frame->r16);
    general[CORE_NATS] = frame_nats(frame) | state.nats << 4;
    general[CORE_PR] = frame->pr;
    general[CORE_B0] = frame->b0;
    memcpy(&general[CORE_B0 + 1], state.b1, sizeof state.b1);
    general[CORE_B0 + 6] = frame->b6;
    general[CORE_B0 + 7] = frame->b7;
    general[CORE_IP] = frame->iip + (frame->ipsr >> PSR_RI_SHIFT & 3);
    general[CORE_CFM] = frame->ifs & 0x3fffffffff;
    general[CORE_PSR] = frame->ipsr & PSR_USER_MASK;
    general[CORE_RSC] = frame->rsc;
    general[CORE_BSPSTORE] = frame->bspstore;
    general[CORE_RNAT] = frame->rnat;
    general[CORE_CCV] = frame->ccv;
    general[CORE_UNAT] = frame->unat;
    general[CORE_FPSR] = frame->fpsr;
    general[CORE_PFS] = frame->pfs;
    general[CORE_LC] = state.lc;
    general[CORE_EC] = state.frame_marker >> 52 & 0x3f; /* as the kernel's first call saved it */
    general[CORE_CSD] = frame->csd;

    struct floating *floating = registers->floating;
    floating[1] = (struct floating){{1UL << 63, 0xffff}};
    memcpy(&floating[2], &state.f2[0], 4 * sizeof *floating);
    memcpy(&floating[6], frame->f6, sizeof frame->f6);
    memcpy(&floating[12], &low[4], 4 * sizeof *floating);
    memcpy(&floating[16], &state.f2[4], 16 * sizeof *floating);

    if (registers->unwound == UNWIND_SYSTEM_CALL)
        forget_scratch(registers);
    if (registers->unwound != UNWIND_INTERRUPTION && registers->unwound != UNWIND_SYSTEM_CALL)
        return;
    uint64_t end = state.bsp;
    if (registers->unwound == UNWIND_SYSTEM_CALL)
        end = backing_store_above(end, general[CORE_CFM] & 0x7f);
    if (task == current)
        general[CORE_BSP] = write_backing_store(&state, (uint64_t)task + TASK_BACKING_STORE, end, frame->bspstore, &general[CORE_RNAT]);
    else
        general[CORE_BSP] = frame->bspstore;
}
