/* Unwinding the kernel's own stack by the tables that compiler and assembler made (sections .IA_64.unwind and
   .IA_64.unwind_info; Itanium Software Conventions and Runtime Architecture Guide, chapter 11 and appendix B).

   A procedure's descriptors are a row of regions, prologues and bodies, each a header and records. `formats` has a row for
   every format of them. The records up to the call are applied in order (`struct rules`); then each preserved register is read
   from where they say that it is.

   Whatever is on the stack a walk ends: after FRAMES_MAX frames, at a procedure that the tables do not have, and where they
   point outside the task. What is saved under a predicate is not followed; no compiler that made this kernel does so. */

#include "unwind.h"
#include "text.h"

#define FRAMES_MAX 64
#define NESTED_MAX 4
#define LABELS_MAX 4

/* kernel.lds: the tables are in the segment of the text, and their addresses count from its beginning. */
extern const char unwind_segment[];
struct unwind_entry {
    uint64_t start, end, descriptors;
};
extern const struct unwind_entry unwind_table[], unwind_table_end[];

/* What a procedure saves, as far as anybody here asks. */
enum saved {
    SAVED_RP, SAVED_PFS, SAVED_PSP, SAVED_PR, SAVED_UNAT, SAVED_LC, SAVED_FPSR, SAVED_PRIMARY_UNAT, SAVED_OTHER,
    SAVED_R4, SAVED_B1 = SAVED_R4 + 4, SAVED_F2 = SAVED_B1 + 5, SAVED_F16 = SAVED_F2 + 4, SAVED_COUNT = SAVED_F16 + 16,
};

enum place_kind { PLACE_NONE, PLACE_GENERAL, PLACE_BRANCH, PLACE_CALLER_STACK, PLACE_STACK, PLACE_ITSELF, PLACE_UNREADABLE };

/* Where a register is, from slot `from` of the procedure on. */
struct place {
    uint8_t kind, is_told; /* is_told: a record named `from` before the place was known */
    uint16_t number;
    uint32_t from;
    int64_t offset;
};

struct rules {
    struct place places[SAVED_COUNT];
    uint64_t frame_bytes;
    uint32_t frame_from;
    uint32_t entry; /* the context of an .unwabi directive: how the kernel was entered */
};

struct nest {
    unsigned depth;
    struct rules now, outer[NESTED_MAX]; /* of these `depth` */
};

struct reader {
    const uint8_t *at, *end;
    uint32_t target;        /* the slot of the call */
    uint32_t start, slots;  /* of the region */
    int is_body, is_over;
    int64_t spill_base;
    const uint8_t *spill_mask;
    uint64_t spilled;       /* bit n: `enum saved` n is in the spill area */
    uint32_t epilogue_from, epilogue_count;
    unsigned label_count;
    struct nest nest;
    struct {
        uint64_t label;
        struct nest nest;
    } labels[LABELS_MAX]; /* of these `label_count` */
};

_Static_assert(sizeof(struct reader) <= PAGE_SIZE, "a reader fits a page");

static uint8_t byte(struct reader *reader)
{
    if (reader->at == reader->end) {
        reader->is_over = 1;
        return 0;
    }
    return *reader->at++;
}

/* Seven bits a byte, the lowest first. */
static uint64_t number(struct reader *reader)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t part = byte(reader);
        value |= (uint64_t)(part & 0x7f) << shift;
        if (!(part & 0x80))
            return value;
    }
    reader->is_over = 1;
    return 0;
}

/* From 16 bytes above the caller's stack pointer downwards, in words of 4 bytes. */
static int64_t below_caller(uint64_t offset)
{
    return 16 - (int64_t)(offset * 4);
}

/* The slot behind `slot` of the region, where what it does holds. */
static uint32_t behind(const struct reader *reader, uint64_t slot)
{
    return reader->start + (slot < reader->slots ? slot + 1 : reader->slots);
}

static void when(struct reader *reader, unsigned saved, uint64_t slot)
{
    struct place *place = &reader->nest.now.places[saved];
    place->from = behind(reader, slot);
    place->is_told = place->kind == PLACE_NONE;
}

#define AT_END_OF_REGION (~0UL)

static void put(struct reader *reader, unsigned saved, enum place_kind kind, uint64_t where, uint64_t slot)
{
    struct place *place = &reader->nest.now.places[saved];
    if (!place->is_told || slot != AT_END_OF_REGION)
        place->from = behind(reader, slot);
    place->kind = kind;
    place->is_told = 0;
    place->number = where;
    place->offset = where;
}

/* ---- What the prologue has spilled gets its places: floating-point registers first, from the base of the area down ---- */

static void place_kind_of_spills(struct reader *reader, unsigned first, unsigned count, unsigned bytes, unsigned kind)
{
    uint32_t slot = 0;
    uint64_t times[SAVED_COUNT];
    for (unsigned saved = first; saved < first + count; saved++) {
        times[saved] = AT_END_OF_REGION;
        if (!(reader->spilled >> saved & 1) || !reader->spill_mask)
            continue;
        while (slot < reader->slots && (reader->spill_mask[slot / 4] >> (6 - slot % 4 * 2) & 3) != kind)
            slot++;
        if (slot < reader->slots)
            times[saved] = slot++;
    }
    for (unsigned saved = first + count; saved-- > first;)
        if (reader->spilled >> saved & 1) {
            reader->spill_base -= bytes;
            put(reader, saved, PLACE_CALLER_STACK, reader->spill_base, times[saved]);
        }
}

static void place_spills(struct reader *reader)
{
    place_kind_of_spills(reader, SAVED_F2, 20, 16, 1);
    place_kind_of_spills(reader, SAVED_B1, 5, 8, 3);
    place_kind_of_spills(reader, SAVED_R4, 4, 8, 2);
    reader->spilled = 0;
    reader->spill_mask = 0;
}

/* ---- The formats ---- */

static void region(struct reader *reader, int is_body, uint64_t slots)
{
    place_spills(reader);
    struct nest *nest = &reader->nest;
    uint64_t start = (uint64_t)reader->start + reader->slots;
    if (start > reader->target || slots > 1UL << 30) {
        reader->is_over = 1; /* the call is in front of this region */
        return;
    }
    for (; reader->epilogue_count && nest->depth; reader->epilogue_count--)
        nest->now = nest->outer[--nest->depth];
    reader->start = start;
    reader->slots = slots;
    reader->is_body = is_body;
    reader->epilogue_count = 0;
    reader->epilogue_from = ~0u;
    if (is_body)
        return;
    if (nest->depth == NESTED_MAX)
        reader->is_over = 1;
    else
        nest->outer[nest->depth++] = nest->now;
    reader->spill_base = 16;
}

static void format_r1(struct reader *reader, uint8_t first)
{
    region(reader, first >> 5 & 1, first & 0x1f);
}

static void format_r2(struct reader *reader, uint8_t first)
{
    static const uint8_t order[] = {SAVED_RP, SAVED_PFS, SAVED_PSP, SAVED_PR};
    uint8_t second = byte(reader);
    unsigned mask = (first & 7) << 1 | second >> 7, next = second & 0x7f;
    region(reader, 0, number(reader));
    for (unsigned i = 0; i < 4 && !reader->is_over; i++)
        if (mask >> (3 - i) & 1)
            put(reader, order[i], PLACE_GENERAL, next++, AT_END_OF_REGION);
}

static void format_r3(struct reader *reader, uint8_t first)
{
    region(reader, first & 1, number(reader));
}

/* Branch registers in the spill area. */
static void format_p1(struct reader *reader, uint8_t first)
{
    reader->spilled |= (uint64_t)(first & 0x1f) << SAVED_B1;
}

static void in_general_registers(struct reader *reader, unsigned mask, unsigned saved, unsigned next)
{
    for (; mask; mask >>= 1, saved++)
        if (mask & 1)
            put(reader, saved, PLACE_GENERAL, next++, AT_END_OF_REGION);
}

static void format_p2(struct reader *reader, uint8_t first)
{
    uint8_t second = byte(reader);
    in_general_registers(reader, (first & 0xf) << 1 | second >> 7, SAVED_B1, second & 0x7f);
}

/* One register in another. */
static void format_p3(struct reader *reader, uint8_t first)
{
    static const uint8_t order[16] = {SAVED_PSP, SAVED_RP, SAVED_PFS, SAVED_PR, SAVED_UNAT, SAVED_LC, SAVED_RP, SAVED_OTHER,
                                      SAVED_OTHER, SAVED_OTHER, SAVED_FPSR, SAVED_PRIMARY_UNAT, SAVED_OTHER, SAVED_OTHER,
                                      SAVED_OTHER, SAVED_OTHER};
    uint8_t second = byte(reader);
    unsigned kind = (first & 7) << 1 | second >> 7;
    put(reader, order[kind], kind == 6 ? PLACE_BRANCH : PLACE_GENERAL, second & 0x7f, AT_END_OF_REGION);
}

/* Which slot of the prologue spills what kind of register: two bits a slot. */
static void format_p4(struct reader *reader, uint8_t first)
{
    (void)first;
    uint64_t bytes = (reader->slots + 3) / 4;
    if ((uint64_t)(reader->end - reader->at) < bytes) {
        reader->is_over = 1;
        return;
    }
    reader->spill_mask = reader->at;
    reader->at += bytes;
}

static void format_p5(struct reader *reader, uint8_t first)
{
    (void)first;
    uint64_t high = byte(reader), middle = byte(reader), low = byte(reader);
    reader->spilled |= high >> 4 << SAVED_R4 | ((high & 0xf) << 16 | middle << 8 | low) << SAVED_F2;
}

static void format_p6(struct reader *reader, uint8_t first)
{
    reader->spilled |= (uint64_t)(first & 0xf) << (first & 0x10 ? SAVED_R4 : SAVED_F2);
}

/* A time or a place on the stack of one register. */
static void format_p7(struct reader *reader, uint8_t first)
{
    static const uint8_t order[] = {SAVED_OTHER, SAVED_PSP, SAVED_RP, SAVED_PFS, SAVED_PR, SAVED_LC, SAVED_UNAT, SAVED_FPSR};
    unsigned kind = first & 0xf, saved = order[kind >> 1];
    uint64_t value = number(reader);
    if (kind == 0) {
        reader->nest.now.frame_from = behind(reader, value);
        reader->nest.now.frame_bytes = number(reader) * 16;
    } else if (kind == 1) {
        when(reader, SAVED_PSP, value);
    } else if (kind == 2) {
        reader->spill_base = below_caller(value);
    } else if (kind == 3) {
        put(reader, SAVED_PSP, PLACE_STACK, value * 4, AT_END_OF_REGION);
    } else if (kind & 1) {
        put(reader, saved, PLACE_CALLER_STACK, below_caller(value), AT_END_OF_REGION);
    } else {
        when(reader, saved, value);
    }
}

/* Places from the stack pointer, and what belongs to the register stack or to primary NaT bits. */
static void format_p8(struct reader *reader, uint8_t first)
{
    (void)first;
    static const uint8_t order[] = {SAVED_OTHER, SAVED_RP, SAVED_PFS, SAVED_PR, SAVED_LC, SAVED_UNAT, SAVED_FPSR};
    unsigned kind = byte(reader);
    uint64_t value = number(reader);
    if (kind < sizeof order)
        put(reader, order[kind], PLACE_STACK, value * 4, AT_END_OF_REGION);
    else if (kind == 19)
        when(reader, SAVED_PRIMARY_UNAT, value);
    else if (kind == 17)
        put(reader, SAVED_PRIMARY_UNAT, PLACE_CALLER_STACK, below_caller(value), AT_END_OF_REGION);
    else if (kind == 18)
        put(reader, SAVED_PRIMARY_UNAT, PLACE_STACK, value * 4, AT_END_OF_REGION);
}

static void format_p9(struct reader *reader, uint8_t first)
{
    (void)first;
    unsigned mask = byte(reader) & 0xf;
    in_general_registers(reader, mask, SAVED_R4, byte(reader) & 0x7f);
}

static void format_p10(struct reader *reader, uint8_t first)
{
    (void)first;
    byte(reader);
    reader->nest.now.entry = byte(reader);
}

/* A register as the general formats number it. */
static unsigned any_register(uint8_t bits)
{
    static const uint8_t special[] = {SAVED_PR, SAVED_PSP, SAVED_PRIMARY_UNAT, SAVED_RP, SAVED_OTHER, SAVED_OTHER, SAVED_OTHER,
                                      SAVED_UNAT, SAVED_FPSR, SAVED_PFS, SAVED_LC};
    unsigned index = bits & 0x1f;
    switch (bits >> 5 & 3) {
    case 0:
        return index >= 4 && index <= 7 ? SAVED_R4 + index - 4 : SAVED_OTHER;
    case 1:
        return index >= 2 && index <= 5 ? SAVED_F2 + index - 2 : index >= 16 ? SAVED_F16 + index - 16 : SAVED_OTHER;
    case 2:
        return index == 0 ? SAVED_RP : index <= 5 ? SAVED_B1 + index - 1 : SAVED_OTHER;
    default:
        return index < sizeof special ? special[index] : SAVED_OTHER;
    }
}

static void format_x1(struct reader *reader, uint8_t first)
{
    (void)first;
    uint8_t bits = byte(reader);
    uint64_t slot = number(reader), offset = number(reader);
    if (bits & 0x80)
        put(reader, any_register(bits), PLACE_STACK, offset * 4, slot);
    else
        put(reader, any_register(bits), PLACE_CALLER_STACK, below_caller(offset), slot);
}

static void format_x2(struct reader *reader, uint8_t first)
{
    (void)first;
    uint8_t bits = byte(reader), to = byte(reader);
    uint64_t slot = number(reader);
    enum place_kind kind = bits & 0x80 ? PLACE_BRANCH : to & 0x80 ? PLACE_UNREADABLE : to ? PLACE_GENERAL : PLACE_ITSELF;
    put(reader, any_register(bits), kind, to & 0x7f, slot);
}

/* X3 and X4, under a predicate: nobody knows whether the register is there. */
static void format_predicated(struct reader *reader, uint8_t first)
{
    byte(reader);
    unsigned saved = any_register(byte(reader));
    if (first & 4)
        byte(reader);
    else
        number(reader);
    put(reader, saved, PLACE_UNREADABLE, 0, number(reader));
}

static void copy_nest(struct nest *to, const struct nest *from)
{
    memcpy(to, from, offsetof(struct nest, outer) + from->depth * sizeof *from->outer);
}

/* Gives the state a number, or goes back to the one of a number. */
static void label(struct reader *reader, int is_copy, uint64_t value)
{
    unsigned index = 0;
    while (index < reader->label_count && reader->labels[index].label != value)
        index++;
    if (is_copy ? index == reader->label_count : index == LABELS_MAX) {
        reader->is_over = 1;
    } else if (is_copy) {
        copy_nest(&reader->nest, &reader->labels[index].nest);
    } else {
        reader->labels[index].label = value;
        copy_nest(&reader->labels[index].nest, &reader->nest);
        reader->label_count += index == reader->label_count;
    }
}

static void format_b1(struct reader *reader, uint8_t first)
{
    label(reader, first >> 5 & 1, first & 0x1f);
}

static void epilogue(struct reader *reader, uint64_t slots, uint64_t count)
{
    reader->epilogue_from = reader->start + reader->slots - (slots < reader->slots ? slots : reader->slots);
    reader->epilogue_count = count + 1;
}

static void format_b2(struct reader *reader, uint8_t first)
{
    epilogue(reader, number(reader), first & 0x1f);
}

static void format_b3(struct reader *reader, uint8_t first)
{
    (void)first;
    uint64_t slots = number(reader);
    epilogue(reader, slots, number(reader));
}

static void format_b4(struct reader *reader, uint8_t first)
{
    label(reader, first >> 3 & 1, number(reader));
}

enum { IN_PROLOGUE = 1, IN_BODY = 2, IN_BOTH = 3 };

/* Which function reads a record that begins with a byte from `first` to `last` in a region of this kind. */
static const struct {
    uint8_t first, last, where;
    void (*apply)(struct reader *reader, uint8_t first);
} formats[] = {
    {0x00, 0x3f, IN_BOTH, format_r1},     {0x40, 0x47, IN_BOTH, format_r2},     {0x60, 0x61, IN_BOTH, format_r3},
    {0x80, 0x9f, IN_PROLOGUE, format_p1}, {0xa0, 0xaf, IN_PROLOGUE, format_p2}, {0xb0, 0xb7, IN_PROLOGUE, format_p3},
    {0xb8, 0xb8, IN_PROLOGUE, format_p4}, {0xb9, 0xb9, IN_PROLOGUE, format_p5}, {0xc0, 0xdf, IN_PROLOGUE, format_p6},
    {0xe0, 0xef, IN_PROLOGUE, format_p7}, {0xf0, 0xf0, IN_PROLOGUE, format_p8}, {0xf1, 0xf1, IN_PROLOGUE, format_p9},
    {0xff, 0xff, IN_PROLOGUE, format_p10}, {0x80, 0xbf, IN_BODY, format_b1},    {0xc0, 0xdf, IN_BODY, format_b2},
    {0xe0, 0xe0, IN_BODY, format_b3},     {0xf0, 0xf0, IN_BODY, format_b4},     {0xf8, 0xf8, IN_BODY, format_b4},
    {0xf9, 0xf9, IN_BOTH, format_x1},     {0xfa, 0xfa, IN_BOTH, format_x2},     {0xfb, 0xfc, IN_BOTH, format_predicated},
};

static void read_descriptors(struct reader *reader)
{
    while (reader->at < reader->end && !reader->is_over) {
        uint8_t first = byte(reader);
        unsigned where = reader->is_body ? IN_BODY : IN_PROLOGUE, i = 0;
        while (i < sizeof formats / sizeof *formats
               && !(first >= formats[i].first && first <= formats[i].last && formats[i].where & where))
            i++;
        if (i == sizeof formats / sizeof *formats)
            return;
        formats[i].apply(reader, first);
    }
    place_spills(reader);
}

/* ---- From a frame to its caller's ---- */

static const struct unwind_entry *find(uint64_t address)
{
    uint64_t offset = address - (uint64_t)unwind_segment;
    const struct unwind_entry *low = unwind_table, *high = unwind_table_end;
    while (low < high) {
        const struct unwind_entry *middle = low + (high - low) / 2;
        if (offset < middle->start)
            high = middle;
        else if (offset >= middle->end)
            low = middle + 1;
        else
            return middle;
    }
    return 0;
}

static int is_in_task(const struct task *task, uint64_t address, size_t bytes)
{
    return address - (uint64_t)task <= TASK_SIZE - bytes;
}

/* The place of a register if it is not where it was at the procedure's entry. */
static const struct place *place_of(const struct reader *reader, unsigned saved)
{
    const struct place *place = &reader->nest.now.places[saved];
    int is_moved = place->kind != PLACE_NONE && place->kind != PLACE_ITSELF && place->from <= reader->target;
    return is_moved ? place : 0;
}

/* Where in memory a place is; 0 if it is in none of the task's. */
static uint64_t address_of(const struct unwind *state, const struct place *place, uint64_t caller_sp, size_t bytes)
{
    uint64_t address = 0;
    if (place->kind == PLACE_CALLER_STACK)
        address = caller_sp + place->offset;
    else if (place->kind == PLACE_STACK)
        address = state->sp + place->offset;
    else if (place->kind == PLACE_GENERAL && place->number >= 32 && place->number - 32u < (state->frame_marker & 0x7f))
        address = backing_store_above(state->bsp, place->number - 32);
    return is_in_task(state->task, address, bytes) && !(address & 7) ? address : 0;
}

/* Reads a register of the caller; a negative answer says that nobody knows it. */
static int read_register(const struct unwind *state, const struct place *place, uint64_t caller_sp, uint64_t *value)
{
    uint64_t address = address_of(state, place, caller_sp, 8);
    if (address)
        *value = *(const uint64_t *)address;
    else if (place->kind == PLACE_GENERAL && place->number >= 4 && place->number <= 7)
        *value = state->r4[place->number - 4];
    else if (place->kind == PLACE_BRANCH && place->number >= 1 && place->number <= 5)
        *value = state->b1[place->number - 1];
    else
        return -1;
    return 0;
}

/* The NaT bit of a general register in a place. Those on the stack have theirs in ar.unat as the procedure had it, or where
   it put that. */
static int nat_of(const struct unwind *state, const struct reader *reader, const struct place *place, uint64_t caller_sp)
{
    uint64_t address = address_of(state, place, caller_sp, 8);
    if (place->kind == PLACE_GENERAL && place->number < 32)
        return state->nats >> (place->number - 4) & 1;
    if (place->kind == PLACE_GENERAL) {
        uint64_t collection = address | 0x1f8;
        return (collection < state->bspstore ? *(const uint64_t *)collection : state->rnat) >> (address >> 3 & 63) & 1;
    }
    uint64_t bits = state->unat;
    const struct place *primary = place_of(reader, SAVED_PRIMARY_UNAT);
    if (primary)
        read_register(state, primary, caller_sp, &bits);
    return bits >> (address >> 3 & 63) & 1;
}

static enum unwind_end to_caller(struct unwind *state, const struct reader *reader)
{
    const struct rules *rules = &reader->nest.now;
    if (rules->entry == ENTERED_BY_INTERRUPTION || rules->entry == ENTERED_BY_SYSTEM_CALL)
        return rules->entry == ENTERED_BY_SYSTEM_CALL ? UNWIND_SYSTEM_CALL : UNWIND_INTERRUPTION;
    int has_frame = reader->target < reader->epilogue_from;
    uint64_t caller_sp = state->sp;
    if (has_frame && rules->frame_from <= reader->target)
        caller_sp += rules->frame_bytes;
    const struct place *place = place_of(reader, SAVED_PSP);
    if (place && has_frame && read_register(state, place, 0, &caller_sp))
        return UNWIND_BROKEN;

    /* All of them are read before any is changed: one may be in another. */
    struct unwind caller = *state;
    uint64_t *const words[] = {
        [SAVED_RP] = &caller.ip, [SAVED_PFS] = &caller.frame_marker, [SAVED_PR] = &caller.predicates,
        [SAVED_UNAT] = &caller.unat, [SAVED_LC] = &caller.lc, [SAVED_FPSR] = &caller.fpsr,
    };
    /* A call has overwritten these two: a procedure that made one has saved them. */
    if (!place_of(reader, SAVED_RP) || !place_of(reader, SAVED_PFS))
        return UNWIND_BROKEN;
    for (unsigned saved = 0; saved < SAVED_COUNT; saved++) {
        uint64_t *word = saved < sizeof words / sizeof *words ? words[saved] : 0;
        if (saved >= SAVED_R4 && saved < SAVED_B1)
            word = &caller.r4[saved - SAVED_R4];
        else if (saved >= SAVED_B1 && saved < SAVED_F2)
            word = &caller.b1[saved - SAVED_B1];
        place = place_of(reader, saved);
        if (!place)
            continue;
        if (word && read_register(state, place, caller_sp, word))
            return UNWIND_BROKEN;
        if (saved >= SAVED_R4 && saved < SAVED_B1) {
            uint64_t bit = 1UL << (saved - SAVED_R4);
            caller.nats = nat_of(state, reader, place, caller_sp) ? caller.nats | bit : caller.nats & ~bit;
        } else if (saved >= SAVED_F2) {
            uint64_t address = address_of(state, place, caller_sp, sizeof(struct floating));
            if (!address)
                return UNWIND_BROKEN;
            caller.f2[saved - SAVED_F2] = *(const struct floating *)address;
        }
    }
    caller.sp = caller_sp;
    caller.bsp = backing_store_below(state->bsp, caller.frame_marker >> 7 & 0x7f);
    caller.frames++;
    if (!is_in_task(state->task, caller.sp, 0) || !is_in_task(state->task, caller.bsp, 0))
        return UNWIND_BROKEN;
    *state = caller;
    return UNWIND_CALLER;
}

/* With a page to read descriptors in. */
static enum unwind_end step(struct unwind *state, struct reader *reader)
{
    uint64_t call = state->ip - 16;
    const struct unwind_entry *entry = find(call);
    if (!entry || !entry->descriptors)
        return UNWIND_UNKNOWN;
    memset(reader, 0, offsetof(struct reader, nest.outer));
    const uint64_t *header = (const uint64_t *)(unwind_segment + entry->descriptors);
    reader->at = (const uint8_t *)(header + 1);
    reader->end = reader->at + (*header & 0xffffffff) * 8;
    reader->target = (call - (uint64_t)unwind_segment - entry->start) / 16 * 3 + 2;
    reader->epilogue_from = ~0u;
    read_descriptors(reader);
    return to_caller(state, reader);
}

void unwind_to_entry(struct unwind *state)
{
    struct reader *reader = kernel_pages(0);
    do
        state->end = state->frames < FRAMES_MAX ? step(state, reader) : UNWIND_BROKEN;
    while (state->end == UNWIND_CALLER);
    kernel_pages_free(reader, 0);
}

void unwind_begin(struct unwind *state, const struct task *task, const struct context *context, const struct floating *floating)
{
    memset(state, 0, sizeof *state);
    state->task = task;
    state->ip = context->b[0];
    state->sp = context->sp;
    state->frame_marker = context->pfs;
    state->bsp = backing_store_below(context->bspstore, context->pfs >> 7 & 0x7f);
    state->unat = context->unat;
    state->lc = context->lc;
    state->predicates = context->pr;
    state->fpsr = context->fpsr;
    memcpy(state->r4, context->r4, sizeof state->r4);
    state->nats = rotate_right(context->spill_unat, (uint64_t)context->r4 >> 3) & 0xf;
    for (unsigned i = 0; i < 5; i++)
        state->b1[i] = i < 4 ? context->b[i + 1] : context->b5;
    for (unsigned i = 0; i < 20; i++)
        state->f2[i] = floating[i < 4 ? i : i + 4];
    state->bspstore = context->bspstore;
    state->rnat = context->rnat;
}
