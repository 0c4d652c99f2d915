/* The start: the threads that the machine's parameters ask for.

       ipc generic|first|scheduled|measured COUNT|CASE           (the last two words of the machine's parameters)

   With a count, two threads in two spaces send each other eight words, with marks for the host: 1 and 2 around twice COUNT
   rounds of a thread's loop without a message; 3 and 4 around COUNT rounds with one message there and one back. With the name
   of a case, the threads of cases.h try it. */

#include "cases.h"
#include "kernel.h"

extern char gate_page[], text_page[];
extern char ipc_generic[], ipc_first[], ipc_scheduled[], ipc_measured[], gate_hypercall[];
extern char sender[], receiver[], case_program[];

static const struct {
    const char *name, *code;
} versions[] = {{"generic", ipc_generic}, {"first", ipc_first}, {"scheduled", ipc_scheduled}, {"measured", ipc_measured}};

static const struct {
    const char *name;
    void (*function)(struct arguments *);
} cases[] = {
#define ROW(name, function) {name, function},
    CASES(ROW)
#undef ROW
};

#define LENGTH(array) (sizeof(array) / sizeof *(array))
_Static_assert(sizeof(struct arguments) == ARGUMENT_NAMES + TCBS * 8, "as assembly has it");

static uint64_t on_gate(const char *code)
{
    return GATE_ADDRESS + (uint64_t)(code - gate_page);
}

static uint64_t in_program(const void *code)
{
    return TEXT_ADDRESS + (uint64_t)((const char *)code - text_page);
}

/* Where a function's code is: a pointer to it is one to its descriptor. */
static const void *code_of(void (*function)(struct arguments *))
{
    return *(const void *const *)function;
}

/* The word that ends at `end`; moves `end` to the blank in front of it. */
static const char *word_before(const char *start, char **end)
{
    char *at = *end;
    *at = 0;
    while (at > start && at[-1] != ' ')
        at--;
    *end = at > start ? at - 1 : at;
    return at;
}

static int equal(const char *left, const char *right)
{
    while (*left && *left == *right)
        left++, right++;
    return *left == *right;
}

static struct tcb *create(unsigned number, const char *program, struct arguments arguments)
{
    unsigned space = number == WITH_FIRST || number == URGENT_WITH_FIRST ? FIRST : number == WITH_SECOND ? SECOND : number;
    arguments.number = number;
    struct tcb *thread = create_thread(number, space, in_program(program), (const uint64_t *)&arguments, sizeof arguments / 8);
    if (number == URGENT_WITH_FIRST)
        thread->priority = PRIORITY_URGENT;
    if (number == FLOATING || number == FLOATING_TOO)
        thread->resources = RESOURCE_FLOATING_POINT;
    return thread;
}

void start(void)
{
    static char words[512];
    struct arguments arguments = {.hypercall = on_gate(gate_hypercall)};
    char *end = words + hypercall(HYPERCALL_PARAMETERS, (uint64_t)words - KERNEL_BASE, sizeof words - 1);
    const char *what = word_before(words, &end), *version = word_before(words, &end);
    for (unsigned i = 0; i < LENGTH(versions); i++)
        if (equal(version, versions[i].name))
            arguments.ipc = on_gate(versions[i].code);
    for (const char *digit = what; *digit >= '0' && *digit <= '9'; digit++)
        arguments.rounds = arguments.rounds * 10 + (uint64_t)(*digit - '0');
    for (unsigned i = 0; i < LENGTH(cases); i++)
        if (equal(what, cases[i].name))
            arguments.function = in_program(code_of(cases[i].function));
    if (!arguments.ipc || (!arguments.function && !arguments.rounds))
        hypercall(HYPERCALL_EXIT, END_PARAMETER, 0);
    for (unsigned number = FIRST; number < TCBS; number++)
        arguments.names[number] = name_of(number);
    struct tcb *first = create(FIRST, arguments.function ? case_program : sender, arguments);
    if (arguments.function) {
        for (unsigned number = SECOND; number < TCBS; number++)
            make_ready(create(number, case_program, arguments));
    } else {
        struct tcb *second = create(SECOND, receiver, arguments);
        second->state = STATE_WAITING;
        second->partner = ANYBODY;
    }
    begin_with(first);
}
