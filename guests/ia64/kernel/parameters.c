/* The boot parameters: words `key=value` that the machine hands over (hypercall PARAMETERS; in `sidestep run`, the
   description's `parameters`). README.md lists them. A word that is wrong ends the machine. */

#include "kernel.h"
#include "sidecalls.h"
#include "text.h"

struct parameters parameters = {
    .format = FORMAT_SHORT,
    .walker = 1,
    .hashed_table_shift = HASHED_TABLE_SHIFT_MAX,
    .memory = 256,
    .tick = 900000,
    .program = "tests",
};

static char words[PARAMETERS_SIZE];

static uint64_t number(const char *key, const char *value, uint64_t least, uint64_t most)
{
    uint64_t result = 0;
    const char *digit = value;
    for (; *digit >= '0' && *digit <= '9' && result <= most; digit++)
        result = result * 10 + (*digit - '0');
    if (digit == value || *digit || result < least || result > most)
        panic("parameter `%s=%s`: expected a number from %lu to %lu", key, value, least, most);
    return result;
}

/* The position of `value` among `choices`, which a null pointer ends. */
static int choice(const char *key, const char *value, const char *const *choices)
{
    for (int i = 0; choices[i]; i++)
        if (text_equal(value, choices[i]))
            return i;
    panic("parameter `%s=%s`: expected %s or %s", key, value, choices[0], choices[1]);
}

static void set(const char *key, const char *value)
{
    static const char *const formats[] = {"short", "long", 0}, *const switches[] = {"off", "on", 0};
    static const char *const sharing[] = {"off", "region", "key", 0}, *const states[] = {"minimal", "full", 0};
    static const char *const clocks[] = {"counter", "ticks", 0};
    if (text_equal(key, "format"))
        parameters.format = choice(key, value, formats);
    else if (text_equal(key, "walker"))
        parameters.walker = choice(key, value, switches);
    else if (text_equal(key, "superpages"))
        parameters.superpages = choice(key, value, switches);
    else if (text_equal(key, "sharing"))
        parameters.sharing = choice(key, value, sharing);
    else if (text_equal(key, "signal-state"))
        parameters.signal_state = choice(key, value, states);
    else if (text_equal(key, "hashed-table"))
        parameters.hashed_table_shift = number(key, value, 15, HASHED_TABLE_SHIFT_MAX);
    else if (text_equal(key, "memory"))
        parameters.memory = number(key, value, 112, 4096);
    else if (text_equal(key, "tick"))
        parameters.tick = number(key, value, 10000, 1000000000);
    else if (text_equal(key, "clock"))
        parameters.clock = choice(key, value, clocks);
    else if (SIDECALLS && text_equal(key, "sidecalls")) {
        if (!sidecalls_choose(value))
            panic("parameter `%s=%s`: expected off, or a list of updates, purges, disk", key, value);
    } else
        panic("unknown parameter `%s`: expected format, walker, superpages, sharing, signal-state, hashed-table, memory, "
              "tick, clock, " SIDECALLS_PARAMETER "program", key);
}

void read_parameters(void)
{
    uint64_t length = hypercall(HYPERCALL_PARAMETERS, physical(words), sizeof words, 0);
    if (length >= sizeof words)
        panic("the parameters are longer than %lu bytes", sizeof words - 1);
    parameters.arguments[0] = (char *)parameters.program;
    parameters.argument_count = 1;
    int is_argument = 0;
    for (char *word = words; *word;) {
        char *end = word;
        while (*end && *end != ' ' && *end != '\n')
            end++;
        char *next = *end ? end + 1 : end;
        *end = 0;
        char *equals = word;
        while (*equals && *equals != '=')
            equals++;
        if (word == end) {
            /* two spaces */
        } else if (is_argument) {
            /* Everything behind `program=NAME` is the program's. */
            if (parameters.argument_count == 16)
                panic("the program has more than 15 arguments");
            parameters.arguments[parameters.argument_count++] = word;
        } else if (!*equals) {
            panic("parameter `%s`: expected key=value", word);
        } else {
            *equals = 0;
            if (text_equal(word, "program")) {
                parameters.program = parameters.arguments[0] = equals + 1;
                is_argument = 1;
            } else {
                set(word, equals + 1);
            }
        }
        word = next;
    }
    if (parameters.sharing == SHARING_KEY && parameters.format == FORMAT_SHORT)
        panic("sharing=key needs format=long: the short format has one protection key for a whole region");
}
