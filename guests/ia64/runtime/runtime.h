/* What a guest program of ours has instead of a C library.

   A program is freestanding: start.S calls `main`, which may use what is declared here and nothing else, so that its
   image holds no code but the project's own. System calls answer a value, or the negative error number. */

#ifndef RUNTIME_H
#define RUNTIME_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* system_call.S */
long system_call(long number, ...);

/* process.c: ends the whole process with an exit code. */
void leave(int code) __attribute__((noreturn));

/* print.c: writes to standard output; knows %d %u %x %c %s %%, the length `l`, a field width and `-`, and %f with
   up to nine decimals of a value below 2^63. */
void print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void print_list(const char *format, va_list values);

/* memory.c: the four functions that GCC may call on its own, and two more. */
void *memcpy(void *to, const void *from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
int memcmp(const void *left, const void *right, size_t bytes);
size_t strlen(const char *text);
int strcmp(const char *left, const char *right);

/* Zeroed pages; ends the process with a message when there are none. */
void *allocate(size_t bytes);

/* The positive number in argv[1], or `otherwise` when there is none; ends the process on anything else. */
long argument(int count, char **values, long otherwise);

/* A 64-bit linear congruential sequence, the same on every machine. */
uint64_t random_next(uint64_t *state);

/* thread.c */
struct thread {
    int identity; /* the kernel clears it and wakes its futex when the thread ends */
    void *stack;
};

struct mutex {
    int state; /* 0 free, 1 held, 2 held and somebody waits */
};

struct barrier {
    int waiting, generation, parties;
};

void thread_start(struct thread *thread, void (*entry)(void *), void *value);
void thread_join(struct thread *thread);
void mutex_lock(struct mutex *mutex);
void mutex_unlock(struct mutex *mutex);
void barrier_wait(struct barrier *barrier);

#endif
