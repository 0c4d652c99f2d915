/* Dies in several ways, each in a process of its own with known values in every preserved register and in the registers of ten
   frames: by a reference to nothing, by a signal that it sends itself, and in a system call ten functions deep.
   Core dumps of them are what the test looks at.

       die [DEPTH]                                                                            */

#include "preserved.h"

static int end_of(long depth, long way)
{
    int status = -1;
    struct preserved_values values = preserved_values();
    if (fork() == 0) {
        values.arguments[0] = system_call(__NR_getpid);
        values.arguments[1] = 6;
        values.arguments[2] = 0x20a;
        preserved(depth, &values, way);
        leave(1);
    }
    system_call(__NR_wait4, -1L, &status, 0L);
    return status;
}

int main(int count, char **arguments)
{
    long depth = argument(count, arguments, 10);
    print("die: a reference to nothing: status %x\n", (unsigned)end_of(depth, 0));
    print("die: abort: status %x\n", (unsigned)end_of(depth, __NR_kill));
    print("die: in a system call: status %x\n", (unsigned)end_of(depth, CALL_EXAMINE));
    return 0;
}
