/* Core dumps: an ELF core file of a process, as Linux/ia64 writes them and debuggers read them.

   The host takes it in pieces by the hypercall DUMP, straight from memory: the headers and notes that are put together here, then
   each page that the process has. Pages that it never touched are not in the file. A host that keeps no dumps refuses the first
   piece, and nothing else happens.

   File: ELF header, program headers (page 0); notes (page 1); pages. */

#include "core.h"
#include "image.h"
#include "text.h"

enum { ELF_CORE = 4, ELF_NOTE = 4, ELF_READABLE = 4, ELF_HEADER_SIZE = 64, ELF_ABI_64 = 0x10 };
enum { NOTE_STATUS = 1, NOTE_FLOATING = 2, NOTE_PROCESS = 3, NOTE_SIGNAL = 0x53494749 };
#define SEGMENTS_MAX ((PAGE_SIZE - ELF_HEADER_SIZE) / sizeof(struct elf_segment) - 1)

/* struct elf_prstatus. */
struct core_status {
    int32_t signal, code, error;
    int16_t current_signal;
    uint64_t pending, blocked;
    int32_t process, parent, group, session;
    uint64_t times[8];
    uint64_t registers[CORE_REGISTERS];
    int32_t floating_valid;
};
_Static_assert(sizeof(struct core_status) == 1144, "elf_prstatus of Linux/ia64");

/* struct elf_prpsinfo. */
struct core_process {
    char state, state_letter, zombie, nice;
    uint64_t flags;
    uint32_t user, group;
    int32_t process, parent, process_group, session;
    char name[16], arguments[80];
};
_Static_assert(sizeof(struct core_process) == 136, "elf_prpsinfo of Linux/ia64");

struct note {
    uint32_t name_size, size, type;
    char name[8];
};

/* A dump on its way. */
struct dump {
    uint64_t number; /* of the process */
    int is_refused;
};

static void put(struct dump *dump, const void *bytes, size_t size)
{
    if (!dump->is_refused && hypercall(HYPERCALL_DUMP, physical(bytes), size, dump->number))
        dump->is_refused = 1;
}

static char *add_note(char *at, unsigned type, const void *content, size_t size)
{
    struct note note = {.name_size = 5, .size = size, .type = type, .name = "CORE"};
    memcpy(at, &note, 20);
    memcpy(at + 20, content, size);
    return at + 20 + ((size + 3) & -4UL);
}

/* Answers the size of the notes. */
static size_t make_notes(char *page, struct task *task, const struct signal_information *information,
                         const struct program_registers *registers)
{
    struct core_status status = {
        .signal = information->signal, .code = information->code, .current_signal = information->signal,
        .pending = task->pending_signals, .blocked = task->blocked_signals,
        .process = task->identity, .parent = task->parent->identity, .group = task->identity, .session = 1, .floating_valid = 1,
    };
    memcpy(status.registers, registers->general, sizeof status.registers);
    struct core_process process = {
        .state_letter = 'R', .process = task->identity, .parent = task->parent->identity, .process_group = task->identity, .session = 1,
    };
    size_t length = strlen(parameters.program);
    memcpy(process.name, parameters.program, length < 16 ? length : 15);
    memcpy(process.arguments, parameters.program, length < 80 ? length : 79);
    char *at = add_note(page, NOTE_STATUS, &status, sizeof status);
    at = add_note(at, NOTE_PROCESS, &process, sizeof process);
    at = add_note(at, NOTE_FLOATING, registers->floating, sizeof registers->floating);
    at = add_note(at, NOTE_SIGNAL, information, sizeof *information);
    return at - page;
}

/* A segment for each row of pages that the process has; answers how many. */
static unsigned make_segments(struct elf_segment *segments, struct task *task)
{
    unsigned count = 0;
    uint64_t offset = 2 * PAGE_SIZE;
    for (const struct area *area = task->areas; area < task->areas + AREAS_MAX; area++) {
        struct elf_segment *segment = 0;
        for (uint64_t page = area->start; area->kind != AREA_FREE && page < area->end; page += PAGE_SIZE) {
            if (!page_frame(task, page)) {
                segment = 0;
                continue;
            }
            if (!segment) {
                if (count == SEGMENTS_MAX) {
                    print("kernel: the dump of process %lu has no memory from %lx on\n", task->identity, page);
                    return count;
                }
                segment = &segments[count++];
                segment->type = ELF_LOAD;
                segment->flags = ELF_READABLE | (area->writable ? ELF_WRITABLE : 0) | (area->executable ? ELF_EXECUTABLE : 0);
                segment->offset = offset;
                segment->address = page;
                segment->alignment = PAGE_SIZE;
            }
            segment->file_size = segment->memory_size += PAGE_SIZE;
            offset += PAGE_SIZE;
        }
    }
    return count;
}

int core_dump(struct task *task, const struct signal_information *information, const struct preserved *preserved)
{
    struct dump dump = {.number = task->identity};
    char *headers = kernel_pages(1), *notes = headers + PAGE_SIZE;
    struct program_registers *registers = kernel_pages(0);
    program_registers(task, preserved, registers);
    if (registers->unwound != UNWIND_INTERRUPTION && registers->unwound != UNWIND_SYSTEM_CALL)
        print("kernel: the preserved registers of process %lu are not known: unwinding ended at %lx after %u frames%s\n", task->identity,
              registers->stuck, registers->frames, registers->unwound == UNWIND_UNKNOWN ? ", which no unwind table has" : "");

    struct elf_segment *segments = (struct elf_segment *)(headers + ELF_HEADER_SIZE);
    unsigned count = make_segments(segments + 1, task);
    *segments = (struct elf_segment){
        .type = ELF_NOTE, .offset = PAGE_SIZE, .file_size = make_notes(notes, task, information, registers), .alignment = 4,
    };
    *(struct elf_header *)headers = (struct elf_header){
        .identification = {0x7f, 'E', 'L', 'F', 2, 1, 1}, .type = ELF_CORE, .machine = ELF_MACHINE_IA64, .version = 1,
        .segments = ELF_HEADER_SIZE, .flags = ELF_ABI_64, .header_size = ELF_HEADER_SIZE,
        .segment_size = sizeof *segments, .segment_count = count + 1,
    };
    put(&dump, headers, 2 * PAGE_SIZE);
    for (const struct elf_segment *segment = segments + 1; segment <= segments + count; segment++)
        for (uint64_t offset = 0; offset < segment->file_size; offset += PAGE_SIZE)
            put(&dump, cached(page_frame(task, segment->address + offset)), PAGE_SIZE);
    put(&dump, headers, 0);
    kernel_pages_free(registers, 0);
    kernel_pages_free(headers, 1);
    return !dump.is_refused;
}
