/* Every function of the library, once. */
#include "sidecall.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition) \
    if (!(condition)) { \
        fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
        return 1; \
    }

int main(int count, char **arguments) {
    CHECK(count == 2);
    CHECK(!sidecore_start(-1, "/no such table", 1000) && errno == ENOENT);
    sidecore *core = sidecore_start(-1, arguments[1], 1000);
    CHECK(core);
    sidecall *caller = sidecall_open(core);
    CHECK(caller);
    sidecore_end(core);
    CHECK(sidecall_null(caller) == 0);
    CHECK(sidecall_getpid(caller) == getpid());
    struct stat status;
    CHECK(sidecall_stat(caller, arguments[1], &status) == 0 && status.st_size % 16 == 0);
    CHECK(sidecall_stat(caller, "", &status) == -ENOENT);
    long file = sidecall_openfile(caller, arguments[1], O_RDWR, 0);
    CHECK(file >= 0);
    char bytes[8];
    CHECK(sidecall_read(caller, file, bytes, 8, 0) == 8);
    CHECK(sidecall_write(caller, file, bytes, 8, 0) == 8);
    CHECK(sidecall_read(caller, file, bytes, 8, -1) == 8);
    CHECK(sidecall_closefile(caller, file) == 0);
    uint64_t value;
    CHECK(sidecall_lookup(caller, 8, &value) == -ENOENT);
    CHECK(sidecall_lookup(caller, 7, &value) == 0);
    sidecall_close(caller);
    printf("%llu\n", (unsigned long long)value);
    return 0;
}
