/* Sidecalls: system calls handed to a thread of this process that stays in the monitor.
 *
 * Link with libsidestep_sidecall.a (and -lpthread -ldl -lm) or libsidestep_sidecall.so. Results are those of the system
 * calls as the kernel returns them: not negative, or the negative number of the error. */
#ifndef SIDECALL_H
#define SIDECALL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sidecore sidecore;
typedef struct sidecall sidecall;

/* Starts a sidecore on `core`, or anywhere if negative. `table` is the path of a table of keys and values, or null. The
 * sidecore sleeps after `looks` that found nothing. Null and errno where it cannot be. */
sidecore *sidecore_start(int core, const char *table, uint64_t looks);

/* Ends a sidecore as soon as its last caller is closed. */
void sidecore_end(sidecore *core);

/* A caller, for one thread at a time; a sidecore has up to 127. Null and errno where there are no more. */
sidecall *sidecall_open(const sidecore *core);
void sidecall_close(sidecall *caller);

/* Nothing: what a sidecall costs by itself. */
long sidecall_null(sidecall *caller);
long sidecall_getpid(sidecall *caller);

long sidecall_openfile(sidecall *caller, const char *path, int flags, unsigned mode);
long sidecall_closefile(sidecall *caller, int file);

/* At `offset`, or where the file is if negative. What would have to be waited for is read and written by the calling
 * thread itself. */
long sidecall_read(sidecall *caller, int file, void *buffer, size_t length, int64_t offset);
long sidecall_write(sidecall *caller, int file, const void *buffer, size_t length, int64_t offset);

long sidecall_stat(sidecall *caller, const char *path, struct stat *status);

/* The value of a key in the sidecore's table; -ENOENT if it has none. */
long sidecall_lookup(sidecall *caller, uint64_t key, uint64_t *value);

#ifdef __cplusplus
}
#endif
#endif
