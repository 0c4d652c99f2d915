# What kernel and programs agree on: devices, frames, system calls, limits.
#
# Registers when a thread starts: r1 is the address of its instance's frame, r2 its own number, all others are zero.

.equ SYSTEM,          0xf0000000        # device 0; device n follows at n * DEVICE_BYTES
.equ DEVICE_BYTES,    256

# Registers that every device has.
.equ DEVICE_KIND,     0
.equ DEVICE_HANDLER,  4

# The system device.
.equ FAULT_COUNT,     8
.equ FAULT_CAUSE,     12                # storing here drops the record
.equ FAULT_THREAD,    16
.equ FAULT_ADDRESS,   20
.equ FAULT_VALUE,     24
.equ USER_START,      28
.equ USER_END,        32
.equ DEVICE_COUNT,    44

# Kinds of devices, and their registers.
.equ KIND_CONSOLE,    2
.equ KIND_TIMER,      3
.equ KIND_DISK,       4
.equ KIND_REQUEST,    5
.equ CONSOLE_DATA,    8
.equ TIMER_CYCLES,    8
.equ DISK_SECTOR,     8
.equ DISK_COUNT,      12
.equ DISK_ADDRESS,    16
.equ DISK_COMMAND,    20
.equ DISK_SECTORS,    24
.equ REQUEST_DATA,    8

.equ GATES_MAX,       64
.equ DEVICES_MAX,     64
.equ WAITING_MAX,     1024              # requests that can wait for a device; a power of two
.equ SLEEPERS_MAX,    64
.equ QUEUE_MAX,       1024              # requests that can wait for a gate in its software queue; a power of two
.equ QUEUE_BYTES,     16 + QUEUE_MAX * 16
.equ SECTOR_BYTES,    512

# System calls. A call is four continuations with data to a gate: number, receiver, two arguments. The result arrives as
# word RESULT of the receiver's frame; a negative result says what was wrong.
.equ CALL_EXIT,       0                 # first argument: the exit code
.equ CALL_REQUEST,    1                 # device, word
.equ CALL_WRITE,      2                 # address, length: onto the console
.equ CALL_SLEEP,      3                 # cycles
.equ CALL_DISK_READ,  4                 # sector, address of 512 bytes; sector -1 asks how many there are
.equ CALL_DISK_WRITE, 5                 # sector, address of 512 bytes
.equ CALLS,           6
.equ RESULT,          2
.equ ERROR_ADDRESS,   -14               # the bytes are not the program's own
.equ ERROR_DEVICE,    -19               # there is no such device
.equ ERROR_CALL,      -38               # there is no such call

# A gate's page: the gate, the thread that closes it, and one thread for each system call.
.equ ENTRY_CLOSE,     1
.equ ENTRY_CALLS,     2
# A gate's frame, in words: what the sender delivers; then for each system call what the gate hands on (4 words).
.equ GATE_NUMBER,     0
.equ GATE_RECEIVER,   1
.equ GATE_FIRST,      2
.equ GATE_SECOND,     3
.equ GATE_LOCK,       4                 # number of the thread whose lock guards the software queue
.equ GATE_QUEUE,      5                 # the software queue's address
.equ GATE_CALLS,      8
.equ GATE_WORDS,      8 + CALLS * 4

# A device's page.
.equ ENTRY_SEMAPHORE, 0
.equ ENTRY_DEVICE,    1
.equ ENTRY_HANDLER,   2
.equ ENTRY_HARDWARE,  3                 # only of a simulated device
.equ ENTRY_MONITOR,   4                 # never runs; its lock guards the waiting requests
# A device's frame, in words.
.equ SEMAPHORE_CALL,  0                 # receiver, first and second argument, command
.equ DEVICE_CALL,     4                 # the same
.equ HANDLER_RECEIVER, 8
.equ HANDLER_RESULT,  9
.equ HARDWARE_WORD,   10
.equ DEVICE_BASE,     11                # the device's registers
.equ WAITING_FIRST,   12                # requests taken from the waiting ones so far
.equ WAITING_LAST,    13                # requests added to them so far
.equ WAITING,         14                # where they are: WAITING_MAX times receiver, arguments, command
.equ DEVICE_WORDS,    16
