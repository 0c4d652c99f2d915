/* Files: the console, and pipes. A pipe's buffer is one page; a reader waits while it is empty, a writer while it is full.

   A task's file is a number: 0 closed, 1 the console, then two for each pipe, its reading and its writing end. */

#include "kernel.h"
#include "text.h"

#define PIPES_MAX 256
#define FIRST_PIPE_FILE 2

struct pipe {
    struct lock lock;
    int readers, writers;
    size_t start, length;
    char *buffer;
    struct wait_queue waiting_readers, waiting_writers;
};

static struct lock lock;
static struct pipe pipes[PIPES_MAX];

static struct pipe *pipe_of(uint16_t file)
{
    return &pipes[(file - FIRST_PIPE_FILE) / 2];
}

static int is_writing_end(uint16_t file)
{
    return (file - FIRST_PIPE_FILE) & 1;
}

static void wake(struct wait_queue *queue)
{
    if (!queue->first)
        return;
    uint64_t saved = acquire(&scheduler);
    wake_all(queue);
    release(&scheduler, saved);
}

/* With the pipe's lock held; comes back with it held. */
static void wait(struct pipe *pipe, struct wait_queue *queue, uint64_t *saved)
{
    uint64_t was_on = acquire(&scheduler);
    sleep_on(queue, &pipe->lock, saved);
    release(&scheduler, was_on);
}

static int must_stop(void)
{
    return (current->pending_signals & ~current->blocked_signals) != 0;
}

static int free_file(unsigned from)
{
    for (unsigned file = from; file < FILES_MAX; file++)
        if (!current->files[file])
            return file;
    return -1;
}

long pipe_create(uint64_t *ends)
{
    int reading = free_file(0), writing = reading < 0 ? -1 : free_file(reading + 1);
    if (writing < 0)
        return -EMFILE;
    uint64_t saved = acquire(&lock);
    for (unsigned i = 0; i < PIPES_MAX; i++) {
        struct pipe *pipe = &pipes[i];
        if (pipe->readers || pipe->writers)
            continue;
        if (!pipe->buffer)
            pipe->buffer = kernel_pages(0);
        pipe->readers = pipe->writers = 1;
        pipe->start = pipe->length = 0;
        release(&lock, saved);
        current->files[reading] = FIRST_PIPE_FILE + 2 * i;
        current->files[writing] = FIRST_PIPE_FILE + 2 * i + 1;
        ends[0] = reading;
        ends[1] = writing;
        return 0;
    }
    release(&lock, saved);
    return -EMFILE;
}

long file_read(unsigned file, uint64_t to, size_t bytes)
{
    uint16_t which = file < FILES_MAX ? current->files[file] : 0;
    if (which < FIRST_PIPE_FILE || is_writing_end(which))
        return which == 1 ? 0 : -EBADF;
    struct pipe *pipe = pipe_of(which);
    uint64_t saved = acquire(&pipe->lock);
    while (pipe->length == 0 && pipe->writers && !must_stop())
        wait(pipe, &pipe->waiting_readers, &saved);
    long answer = pipe->length == 0 && pipe->writers ? signal_interrupts_call() : 0;
    while (pipe->length && (size_t)answer < bytes) {
        size_t part = PAGE_SIZE - pipe->start;
        if (part > pipe->length)
            part = pipe->length;
        if (part > bytes - answer)
            part = bytes - answer;
        if (copy_to_user(to + answer, pipe->buffer + pipe->start, part)) {
            answer = -EFAULT;
            break;
        }
        pipe->start = (pipe->start + part) & (PAGE_SIZE - 1);
        pipe->length -= part;
        answer += part;
    }
    wake(&pipe->waiting_writers);
    release(&pipe->lock, saved);
    return answer;
}

static long pipe_write(struct pipe *pipe, uint64_t from, size_t bytes)
{
    uint64_t saved = acquire(&pipe->lock);
    long answer = 0;
    while ((size_t)answer < bytes) {
        if (!pipe->readers) {
            answer = answer ? answer : -EPIPE;
            break;
        }
        if (pipe->length == PAGE_SIZE) {
            if (must_stop()) {
                answer = answer ? answer : signal_interrupts_call();
                break;
            }
            wait(pipe, &pipe->waiting_writers, &saved);
            continue;
        }
        size_t end = (pipe->start + pipe->length) & (PAGE_SIZE - 1);
        size_t part = (end >= pipe->start ? PAGE_SIZE : pipe->start) - end;
        if (part > bytes - answer)
            part = bytes - answer;
        if (copy_from_user(pipe->buffer + end, from + answer, part)) {
            answer = -EFAULT;
            break;
        }
        pipe->length += part;
        answer += part;
        wake(&pipe->waiting_readers);
    }
    release(&pipe->lock, saved);
    return answer;
}

long file_write(unsigned file, uint64_t from, size_t bytes)
{
    uint16_t which = file < FILES_MAX ? current->files[file] : 0;
    if (which >= FIRST_PIPE_FILE && is_writing_end(which))
        return pipe_write(pipe_of(which), from, bytes);
    if (which != 1)
        return -EBADF;
    for (size_t done = 0; done < bytes;) {
        char text[512];
        size_t part = bytes - done < sizeof text ? bytes - done : sizeof text;
        if (copy_from_user(text, from + done, part))
            return -EFAULT;
        console_write(text, part);
        done += part;
    }
    return bytes;
}

/* Changes how many hold an end; the last one wakes whoever waits at the other. */
static void hold(uint16_t file, int change)
{
    if (file < FIRST_PIPE_FILE)
        return;
    struct pipe *pipe = pipe_of(file);
    uint64_t saved = acquire(&pipe->lock);
    if (is_writing_end(file)) {
        if (!(pipe->writers += change))
            wake(&pipe->waiting_readers);
    } else if (!(pipe->readers += change)) {
        wake(&pipe->waiting_writers);
    }
    release(&pipe->lock, saved);
}

long file_close(unsigned file)
{
    if (file >= FILES_MAX || !current->files[file])
        return -EBADF;
    hold(current->files[file], -1);
    current->files[file] = 0;
    return 0;
}

void files_copy(struct task *parent, struct task *child)
{
    memcpy(child->files, parent->files, sizeof parent->files);
    for (unsigned file = 0; file < FILES_MAX; file++)
        hold(child->files[file], 1);
}

void files_close(struct task *task)
{
    for (unsigned file = 0; file < FILES_MAX; file++) {
        hold(task->files[file], -1);
        task->files[file] = 0;
    }
}
