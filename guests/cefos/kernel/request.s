# From a system call to a device and back (Figure 4, 3-1 to 6-3), for every device that serves one request at a time.
#
# A device's lock is held from the moment the semaphore thread gets it until the handler finds no request waiting. The
# waiting requests are guarded by the lock of the page's monitor entry, which also covers the decision itself: without
# it a request could be put aside just after the handler had found none.

.text
.register receiver, r4
.register first, r5
.register second, r6
.register command, r7

# Moves a call of four words, in r4 to r7, to word `word` of the frame at `frame`.
.macro deliver frame, word
        stw     receiver, \word * 4 + 0(\frame)
        stw     first, \word * 4 + 4(\frame)
        stw     second, \word * 4 + 8(\frame)
        stw     command, \word * 4 + 12(\frame)
.endm

# 3-1, 3-2: hands the call in r4 to r7 to the semaphore of the device whose number stands in r8; ends the thread.
.macro to_semaphore
        slli    r8, r8, 3
        la      r9, device_table
        add     r9, r9, r8
        ldw     r10, 0(r9)              # the device's semaphore thread
        ldw     r11, 4(r9)              # its frame
        enter   r10
        deliver r11, SEMAPHORE_CALL
        cont    r10
        leave
.endm

semaphore_thread:
        preload receiver, SEMAPHORE_CALL, 4
        addi    r8, r2, ENTRY_MONITOR
        enter   r8
        addi    r9, r2, ENTRY_DEVICE
        lock    r10, r9                 # 4-1
        beqz    r10, semaphore_busy
        unlock  r8
        deliver r1, DEVICE_CALL
        cont    r9                      # 4-2
        leave
semaphore_busy:                         # 4-3
        ldw     r11, WAITING_FIRST * 4(r1)
        ldw     r12, WAITING_LAST * 4(r1)
        sub     r13, r12, r11
        li      r14, WAITING_MAX
        bgeu    r13, r14, semaphore_full
        ldw     r15, WAITING * 4(r1)
        andi    r13, r12, WAITING_MAX - 1
        slli    r13, r13, 4
        add     r15, r15, r13
        deliver r15, 0
        addi    r12, r12, 1
        stw     r12, WAITING_LAST * 4(r1)
        unlock  r8
        leave
semaphore_full:                         # no room: nothing is lost, the semaphore stays locked and tries again
        unlock  r8
        self

# 5-1: a real device; 5-2 by its registers.
device_request_thread:
        preload receiver, DEVICE_CALL, 2
        ldw     r8, DEVICE_BASE * 4(r1)
        addi    r9, r2, ENTRY_HANDLER - ENTRY_DEVICE
        rearm
        stw     first, REQUEST_DATA(r8)
        contd   r9, receiver, HANDLER_RECEIVER  # 5-3
        end

# The paper's simulated device: 5-2 is a continuation to a thread that occupies a unit for the round trip.
device_simulated_thread:
        preload receiver, DEVICE_CALL, 2
        addi    r8, r2, ENTRY_HARDWARE - ENTRY_DEVICE
        addi    r9, r2, ENTRY_HANDLER - ENTRY_DEVICE
        rearm
        contd   r8, first, HARDWARE_WORD
        contd   r9, receiver, HANDLER_RECEIVER  # 5-3
        end

# Each turn of the loop takes four cycles: two instructions and the penalty of the taken branch.
virtual_hw_thread:
        preload r4, HARDWARE_WORD, 1
        la      r5, round_trip
        ldw     r5, 0(r5)
        srli    r5, r5, 2
        rearm
        beqz    r5, virtual_hw_done
virtual_hw_turn:
        addi    r5, r5, -1
        bnez    r5, virtual_hw_turn
virtual_hw_done:
        addi    r6, r2, ENTRY_HANDLER - ENTRY_HARDWARE
        contd   r6, r4, HANDLER_RESULT
        end

device_disk_thread:
        preload receiver, DEVICE_CALL, 4
        ldw     r8, DEVICE_BASE * 4(r1)
        addi    r9, r2, ENTRY_HANDLER - ENTRY_DEVICE
        li      r10, 1
        rearm
        stw     first, DISK_SECTOR(r8)
        stw     r10, DISK_COUNT(r8)
        stw     second, DISK_ADDRESS(r8)
        stw     command, DISK_COMMAND(r8)
        contd   r9, receiver, HANDLER_RECEIVER
        end

# The handler runs when both the device's signal (6-1) and the device thread's continuation (5-3) have come. The result
# is in r5. It is armed again before the device can be started again, and everything it still needs is in registers.
.macro handle
        addi    r8, r2, ENTRY_MONITOR - ENTRY_HANDLER
        addi    r9, r2, ENTRY_DEVICE - ENTRY_HANDLER
        enter   r8
        rearm
        ldw     r10, WAITING_FIRST * 4(r1)
        ldw     r11, WAITING_LAST * 4(r1)
        contdu  r4, r5, RESULT          # 6-2; with a user's rights, for a user has named the receiver
        beq     r10, r11, handle_none\@
        ldw     r12, WAITING * 4(r1)
        andi    r13, r10, WAITING_MAX - 1
        slli    r13, r13, 4
        add     r12, r12, r13
        addi    r10, r10, 1
        stw     r10, WAITING_FIRST * 4(r1)
        ldw     receiver, 0(r12)
        ldw     first, 4(r12)
        ldw     second, 8(r12)
        ldw     command, 12(r12)
        deliver r1, DEVICE_CALL
        unlock  r8
        cont    r9                      # 6-3
        end
handle_none\@:
        unlock  r9
        unlock  r8
        end
.endm

handler_request_thread:
        preload r4, HANDLER_RECEIVER, 1
        ldw     r6, DEVICE_BASE * 4(r1)
        ldw     r5, REQUEST_DATA(r6)
        handle

handler_simulated_thread:
        preload r4, HANDLER_RECEIVER, 2
        handle

# The result of a transfer: 0, or an error when the disk refused it.
handler_disk_thread:
        preload r4, HANDLER_RECEIVER, 1
        ldw     r6, DEVICE_BASE * 4(r1)
        ldw     r5, DISK_COMMAND(r6)
        beqz    r5, handler_disk_well
        li      r5, ERROR_DEVICE
handler_disk_well:
        handle
