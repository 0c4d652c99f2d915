/* In place of ../ia64/runtime's assembler on the host: system calls and threads of the host's C library. */

#include "runtime.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <unistd.h>

long system_call(long number, ...)
{
    long arguments[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        arguments[i] = va_arg(list, long);
    va_end(list);
    long answer =
        syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
    return answer == -1 ? -errno : answer;
}

struct entry {
    void (*function)(void *);
    void *value;
};

static void *enter(void *entry)
{
    struct entry *begin = entry;
    begin->function(begin->value);
    return NULL;
}

/* `stack` holds the library's number of the thread, and `identity` nothing. */
void thread_start(struct thread *thread, void (*function)(void *), void *value)
{
    struct entry *entry = allocate(sizeof *entry);
    *entry = (struct entry){function, value};
    pthread_t number;
    int error = pthread_create(&number, NULL, enter, entry);
    if (error) {
        print("no thread: error %d\n", error);
        leave(2);
    }
    thread->stack = (void *)number;
}

void thread_join(struct thread *thread)
{
    pthread_join((pthread_t)thread->stack, NULL);
}
