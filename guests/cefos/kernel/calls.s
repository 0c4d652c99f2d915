# The bodies of the system calls. Each gate has its own set of these threads; the gate enters them as exclusive threads.
# A call's receiver and arguments are in words GATE_CALLS + 4 * number of the gate's frame.

.text
.register receiver, r4
.register first, r5
.register second, r6
.register command, r7

call_exit_thread:
        preload receiver, GATE_CALLS + 4 * CALL_EXIT, 3
        halt    first

call_request_thread:
        preload receiver, GATE_CALLS + 4 * CALL_REQUEST, 3
        mv      r8, first
        mv      first, second
        la      r9, device_count
        ldw     r9, 0(r9)
        bgeu    r8, r9, call_no_device
        to_semaphore

call_disk_read_thread:
        preload receiver, GATE_CALLS + 4 * CALL_DISK_READ, 3
        li      command, 1
        li      r8, -1
        bne     first, r8, call_disk
        la      r8, disk_base
        ldw     r8, 0(r8)
        beqz    r8, call_no_device
        ldw     r9, DISK_SECTORS(r8)
        contdu  receiver, r9, RESULT
        leave
call_disk_write_thread:
        preload receiver, GATE_CALLS + 4 * CALL_DISK_WRITE, 3
        li      command, 2
call_disk:
        mv      r20, second
        li      r21, SECTOR_BYTES
        call    check_user
        beqz    r20, call_bad_address
        andi    r20, second, 3
        bnez    r20, call_bad_address
        la      r8, disk_number
        ldw     r8, 0(r8)
        bltz    r8, call_no_device
        to_semaphore

call_no_device:
        li      r8, ERROR_DEVICE
        contdu  receiver, r8, RESULT
        leave
call_bad_address:
        li      r8, ERROR_ADDRESS
        contdu  receiver, r8, RESULT
        leave

# Whether r21 bytes from r20 on belong to user space: r20 becomes 1 or 0. Uses r22 to r24.
check_user:
        li      r22, SYSTEM
        ldw     r23, USER_START(r22)
        ldw     r24, USER_END(r22)
        bltu    r20, r23, check_user_no
        bgtu    r20, r24, check_user_no
        sub     r24, r24, r20
        bgtu    r21, r24, check_user_no
        li      r20, 1
        ret
check_user_no:
        li      r20, 0
        ret

# The console takes a byte at once, so the call writes them itself; one call at a time, so that texts stay whole.
call_write_thread:
        preload receiver, GATE_CALLS + 4 * CALL_WRITE, 3
        mv      r20, first
        mv      r21, second
        call    check_user
        beqz    r20, call_bad_address
        la      r8, console_base
        ldw     r9, 0(r8)
        beqz    r9, call_no_device
        ldw     r10, console_lock - console_base(r8)
        enter   r10
        add     r12, first, second
call_write_next:
        bgeu    first, r12, call_write_done
        ldbu    r11, 0(first)
        stw     r11, CONSOLE_DATA(r9)
        addi    first, first, 1
        jmp     call_write_next
call_write_done:
        unlock  r10
        contdu  receiver, second, RESULT
        leave

# The sleepers are a table of receivers and the times they wait for; a receiver of -1 marks a free place. The timer
# is always set to the nearest of them.
call_sleep_thread:
        preload receiver, GATE_CALLS + 4 * CALL_SLEEP, 3
        la      r8, timer_base
        ldw     r9, 0(r8)
        beqz    r9, call_no_device
        ldw     r10, timer_lock - timer_base(r8)
        enter   r10
        la      r11, sleepers
        li      r12, SLEEPERS_MAX
call_sleep_search:
        ldw     r13, 0(r11)
        bltz    r13, call_sleep_free
        addi    r11, r11, 8
        addi    r12, r12, -1
        bnez    r12, call_sleep_search
        unlock  r10                     # every place is taken: try again
        self
call_sleep_free:
        cycle   r13
        add     r13, r13, first
        stw     receiver, 0(r11)
        stw     r13, 4(r11)
        call    set_timer
        unlock  r10
        leave

# Wakes every sleeper whose time has come, and sets the timer to the nearest time left. The registers of the timer are
# in r9, its lock is held. Uses r11 to r17.
set_timer:
        li      r14, 0x7fffffff         # cycles until the nearest
        la      r11, sleepers
        li      r12, SLEEPERS_MAX
set_timer_next:
        ldw     r13, 0(r11)
        bltz    r13, set_timer_skip
        ldw     r15, 4(r11)
        cycle   r16
        sub     r15, r15, r16
        bgt     r15, r0, set_timer_later
        contdu  r13, r0, RESULT
        li      r17, -1
        stw     r17, 0(r11)
        jmp     set_timer_skip
set_timer_later:
        bge     r15, r14, set_timer_skip
        mv      r14, r15
set_timer_skip:
        addi    r11, r11, 8
        addi    r12, r12, -1
        bnez    r12, set_timer_next
        li      r16, 0x7fffffff
        bne     r14, r16, set_timer_set
        li      r14, 0
set_timer_set:
        stw     r14, TIMER_CYCLES(r9)
        ret

timer_thread:
        la      r8, timer_base
        ldw     r9, 0(r8)
        ldw     r10, timer_lock - timer_base(r8)
        enter   r10
        rearm
        call    set_timer
        unlock  r10
        end
