/* A shell enough to look around and to write a test in: words, quotes, |, <, >, >>, &&, ||, ;, &, $?, $$; the commands
   cd and exit in itself. */

#include "userland.h"

enum { STAGES_MAX = 16 };

static int last_code;

/* One command of a pipeline. */
struct stage {
    char *words[WORDS_MAX + 1];
    int count;
    char *input, *output;
    int appends;
};

/* A line being cut into words; `mark` is set where the word was an unquoted operator. */
struct scanner {
    char *at;
    char *room, *end; /* where the words' characters go */
    int is_operator;
    int is_broken; /* a quote is open, or there is no room */
};

static int is_operator_character(char character)
{
    return character == '|' || character == '<' || character == '>' || character == '&' || character == ';';
}

static void keep(struct scanner *scanner, char character)
{
    if (scanner->room + 1 < scanner->end)
        *scanner->room++ = character;
    else
        scanner->is_broken = 1;
}

static void keep_number(struct scanner *scanner, long number)
{
    if (number >= 10)
        keep_number(scanner, number / 10);
    keep(scanner, (char)('0' + number % 10));
}

/* `$?` and `$$`; any other dollar sign stands for itself. */
static void keep_variable(struct scanner *scanner)
{
    if (scanner->at[1] == '?' || scanner->at[1] == '$') {
        keep_number(scanner, scanner->at[1] == '?' ? last_code : system_call(__NR_getpid));
        scanner->at += 2;
    } else {
        keep(scanner, *scanner->at++);
    }
}

/* The next word, or 0 at the end. */
static char *next_word(struct scanner *scanner)
{
    while (*scanner->at == ' ' || *scanner->at == '\t')
        scanner->at++;
    scanner->is_operator = 0;
    if (!*scanner->at || *scanner->at == '#')
        return 0;
    char *word = scanner->room;
    if (is_operator_character(*scanner->at)) {
        char first = *scanner->at;
        scanner->is_operator = 1;
        keep(scanner, *scanner->at++);
        if (*scanner->at == first && first != '<' && first != ';')
            keep(scanner, *scanner->at++);
    } else {
        char quote = 0;
        for (; *scanner->at && (quote || (*scanner->at != ' ' && *scanner->at != '\t' && !is_operator_character(*scanner->at)));) {
            if (quote ? *scanner->at == quote : (*scanner->at == '\'' || *scanner->at == '"')) {
                quote = quote ? 0 : *scanner->at;
                scanner->at++;
            } else if (*scanner->at == '$' && quote != '\'') {
                keep_variable(scanner);
            } else {
                keep(scanner, *scanner->at++);
            }
        }
        scanner->is_broken |= quote != 0;
    }
    keep(scanner, 0);
    return word;
}

static int complain(const char *about)
{
    print("sh: %s\n", about);
    return 2;
}

static int redirect(const char *path, long flags, long file)
{
    long opened = system_call(__NR_openat, (long)AT_CURRENT_FOLDER, path, flags, 0644L);
    if (opened < 0)
        return failure("sh", path, opened);
    system_call(__NR_dup3, opened, file, 0L);
    system_call(__NR_close, opened);
    return 0;
}

/* In the child: never returns. */
static void run_stage(struct stage *stage)
{
    if (stage->input && redirect(stage->input, O_RDONLY, 0))
        leave(1);
    long flags = O_WRONLY | O_CREAT | (stage->appends ? O_APPEND : O_TRUNC);
    if (stage->output && redirect(stage->output, flags, 1))
        leave(1);
    long error = become(stage->count, stage->words);
    print("sh: %s: %s\n", stage->words[0], error == -2 ? "not found" : "cannot be executed");
    leave(error == -2 ? 127 : 126);
}

/* What the shell must do itself; answers whether it was such a command. */
static int run_inside(struct stage *stage)
{
    const char *name = stage->words[0];
    if (strcmp(name, "cd") == 0) {
        const char *to = stage->count > 1 ? stage->words[1] : "/";
        long error = system_call(__NR_chdir, to);
        last_code = error < 0 ? failure("cd", to, error) : 0;
    } else if (strcmp(name, "exit") == 0) {
        leave(stage->count > 1 ? (int)number_of(stage->words[1], 2) : last_code);
    } else {
        return 0;
    }
    return 1;
}

static int run_pipeline(struct stage *stages, int count, int in_background)
{
    if (count == 1 && !in_background && run_inside(&stages[0]))
        return last_code;
    long children[STAGES_MAX];
    int input = -1;
    for (int i = 0; i < count; i++) {
        int ends[2] = { -1, -1 };
        if (i + 1 < count && system_call(__NR_pipe2, ends, 0L) < 0)
            return complain("no pipe");
        children[i] = fork_process();
        if (children[i] == 0) {
            if (input >= 0)
                system_call(__NR_dup3, (long)input, 0L, 0L);
            if (ends[1] >= 0)
                system_call(__NR_dup3, (long)ends[1], 1L, 0L);
            for (int end = 0; end < 2; end++)
                if (ends[end] >= 0)
                    system_call(__NR_close, (long)ends[end]);
            if (input >= 0)
                system_call(__NR_close, (long)input);
            run_stage(&stages[i]);
        }
        if (input >= 0)
            system_call(__NR_close, (long)input);
        if (ends[1] >= 0)
            system_call(__NR_close, (long)ends[1]);
        input = ends[0];
        if (children[i] < 0)
            return complain("no process");
    }
    if (in_background)
        return 0;
    int code = 0;
    for (int i = 0; i < count; i++)
        code = exit_code_of(children[i]);
    return code;
}

/* Reads one pipeline; answers the operator behind it (`;` at the end of the line), or 0 if it is malformed. */
static const char *read_pipeline(struct scanner *scanner, struct stage *stages, int *count)
{
    *count = 0;
    struct stage *stage = stages;
    *stage = (struct stage) { .count = 0 };
    for (;;) {
        char *word = next_word(scanner);
        if (scanner->is_broken)
            return 0;
        if (word && !scanner->is_operator) {
            if (stage->count == WORDS_MAX)
                return 0;
            stage->words[stage->count++] = word;
            continue;
        }
        if (word && (*word == '<' || *word == '>')) {
            char *path = next_word(scanner);
            if (!path || scanner->is_operator)
                return 0;
            if (*word == '<')
                stage->input = path;
            else
                stage->output = path, stage->appends = word[1] == '>';
            continue;
        }
        int is_empty = stage->count == 0;
        stage->words[stage->count] = 0;
        if (!is_empty)
            ++*count;
        if (word && strcmp(word, "|") == 0) {
            if (is_empty || *count == STAGES_MAX)
                return 0;
            *++stage = (struct stage) { .count = 0 };
            continue;
        }
        if (is_empty && *count > 0)
            return 0;
        return word ? word : ";";
    }
}

int run_line(char *line)
{
    char room[2 * LINE_BYTES];
    struct scanner scanner = { .at = line, .room = room, .end = room + sizeof room };
    static struct stage stages[STAGES_MAX];
    int is_wanted = 1;
    while (*scanner.at) {
        int count;
        const char *behind = read_pipeline(&scanner, stages, &count);
        if (!behind)
            return last_code = complain("malformed line");
        if (count > 0 && is_wanted)
            last_code = run_pipeline(stages, count, strcmp(behind, "&") == 0);
        is_wanted = strcmp(behind, "&&") == 0 ? last_code == 0 : strcmp(behind, "||") == 0 ? last_code != 0 : 1;
    }
    return last_code;
}

/* The next line of the input, without its end; 0 at the end of the file. */
static int read_line(char *line, size_t bytes)
{
    size_t length = 0;
    char character;
    long got;
    while ((got = system_call(__NR_read, 0L, &character, 1L)) == 1 || got == -4) {
        if (got == 1 && character == '\n')
            break;
        if (got == 1 && length + 1 < bytes)
            line[length++] = character;
    }
    line[length] = 0;
    return got == 1 || length > 0;
}

int shell(int count, char **words)
{
    if (count == 3 && strcmp(words[1], "-c") == 0)
        return run_line(words[2]);
    if (count != 1)
        return misuse("sh");
    char line[LINE_BYTES];
    for (;;) {
        print("# ");
        if (!read_line(line, sizeof line))
            return last_code;
        run_line(line);
    }
}
