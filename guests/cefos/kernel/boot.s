# Boot: thread 0.0 makes the kernel's pages, finds the devices, and starts the program's first thread, `user_main`.

.text
.entry boot

# Installs entry `entry` of the page in r10. Uses r11 and r12.
.macro place mode, entry, thread, fan_in
        addi    r11, r10, \entry
        la      r12, \thread
        install \mode, r11, r12, \fan_in
.endm

boot:
        create  r10, r0, 0              # faults first: from here on they are continuations
        place   kernel, 0, fault_thread, 1
        place   kernel, 1, boot_never, 1        # the locks of console and timer
        la      r4, console_lock
        stw     r11, 0(r4)
        place   kernel, 2, boot_never, 1
        la      r4, timer_lock
        stw     r11, 0(r4)
        place   kernel, 3, timer_thread, 1
        mv      r9, r11
        li      r20, SYSTEM
        stw     r10, DEVICE_HANDLER(r20)
        call    boot_sleepers
        call    boot_gates
        call    boot_simulated
        call    boot_devices
        la      r4, user_main_frame
        create  r10, r4, 16
        place   user, 0, user_main, 1
        cont    r10
        end

boot_panic:                             # more devices than the kernel has room for
        li      r4, 255
        halt    r4

boot_never:                             # the code of entries that serve as locks only
        end

boot_sleepers:
        la      r4, sleepers
        li      r5, SLEEPERS_MAX
        li      r6, -1
boot_sleepers_next:
        stw     r6, 0(r4)
        addi    r4, r4, 8
        addi    r5, r5, -1
        bnez    r5, boot_sleepers_next
        ret

# Makes `gates` gates. User space finds their numbers, and what belongs to the software queues, in three tables.
boot_gates:
        la      r4, gates
        ldw     r4, 0(r4)
        la      r5, gate_frames
        la      r6, gate_ids
        la      r7, gate_locks
        la      r8, gate_queue_addresses
        la      r13, gate_queues
boot_gates_next:
        create  r10, r0, 0              # the lock of the software queue: a user thread must be able to open it
        place   user, 0, boot_never, 1
        stw     r11, 0(r7)
        stw     r11, GATE_LOCK * 4(r5)
        stw     r13, 0(r8)
        stw     r13, GATE_QUEUE * 4(r5)
        create  r10, r5, GATE_WORDS
        place   interface, 0, gate_thread, 4
        place   interface, ENTRY_CLOSE, gate_close_thread, 1
        place   kernel, ENTRY_CALLS + CALL_EXIT, call_exit_thread, 1
        place   kernel, ENTRY_CALLS + CALL_REQUEST, call_request_thread, 1
        place   kernel, ENTRY_CALLS + CALL_WRITE, call_write_thread, 1
        place   kernel, ENTRY_CALLS + CALL_SLEEP, call_sleep_thread, 1
        place   kernel, ENTRY_CALLS + CALL_DISK_READ, call_disk_read_thread, 1
        place   kernel, ENTRY_CALLS + CALL_DISK_WRITE, call_disk_write_thread, 1
        stw     r10, 0(r6)
        addi    r5, r5, GATE_WORDS * 4
        addi    r6, r6, 4
        addi    r7, r7, 4
        addi    r8, r8, 4
        li      r14, QUEUE_BYTES
        add     r13, r13, r14
        addi    r4, r4, -1
        bnez    r4, boot_gates_next
        ret

# Makes a device's page: its registers at r20, the threads of device and handler in r21 and r22. The device gets the next
# number; the page is in r10. Uses r4 to r7, r11 and r12.
boot_device:
        la      r4, device_count
        ldw     r5, 0(r4)
        li      r6, DEVICES_MAX
        bgeu    r5, r6, boot_panic
        addi    r6, r5, 1
        stw     r6, 0(r4)
        slli    r6, r5, 6               # DEVICE_WORDS * 4
        la      r7, device_frames
        add     r6, r6, r7
        stw     r20, DEVICE_BASE * 4(r6)
        slli    r7, r5, 14              # WAITING_MAX * 16
        la      r4, waiting_requests
        add     r7, r7, r4
        stw     r7, WAITING * 4(r6)
        create  r10, r6, DEVICE_WORDS
        place   kernel, ENTRY_SEMAPHORE, semaphore_thread, 1
        addi    r11, r10, ENTRY_DEVICE
        install kernel, r11, r21, 1
        addi    r11, r10, ENTRY_HANDLER
        install kernel, r11, r22, 2
        place   kernel, ENTRY_HARDWARE, virtual_hw_thread, 1
        place   kernel, ENTRY_MONITOR, boot_never, 1
        slli    r4, r5, 3
        la      r5, device_table
        add     r4, r4, r5
        stw     r10, 0(r4)
        stw     r6, 4(r4)
        ret

# Makes `simulated_devices` simulated devices.
boot_simulated:
        mv      r25, r31
        la      r4, simulated_devices
        ldw     r24, 0(r4)
boot_simulated_next:
        beqz    r24, boot_simulated_done
        li      r20, 0
        la      r21, device_simulated_thread
        la      r22, handler_simulated_thread
        call    boot_device
        addi    r24, r24, -1
        jmp     boot_simulated_next
boot_simulated_done:
        jr      r25

# Looks at every attached device and takes those it knows. The timer's thread is in r9.
boot_devices:
        mv      r25, r31
        li      r20, SYSTEM
        ldw     r24, DEVICE_COUNT(r20)
        li      r26, DEVICE_BYTES
boot_devices_next:
        addi    r24, r24, -1
        beqz    r24, boot_devices_done
        add     r20, r20, r26
        ldw     r23, DEVICE_KIND(r20)
        li      r4, KIND_CONSOLE
        bne     r23, r4, boot_no_console
        la      r4, console_base
        stw     r20, 0(r4)
        jmp     boot_devices_next
boot_no_console:
        li      r4, KIND_TIMER
        bne     r23, r4, boot_no_timer
        la      r4, timer_base
        stw     r20, 0(r4)
        stw     r9, DEVICE_HANDLER(r20)
        jmp     boot_devices_next
boot_no_timer:
        li      r4, KIND_DISK
        bne     r23, r4, boot_no_disk
        la      r4, device_count
        ldw     r5, 0(r4)
        la      r4, disk_number
        stw     r5, 0(r4)
        la      r4, disk_base
        stw     r20, 0(r4)
        la      r21, device_disk_thread
        la      r22, handler_disk_thread
        call    boot_device
        addi    r11, r10, ENTRY_HANDLER
        stw     r11, DEVICE_HANDLER(r20)
        jmp     boot_devices_next
boot_no_disk:
        li      r4, KIND_REQUEST
        bne     r23, r4, boot_devices_next
        la      r21, device_request_thread
        la      r22, handler_request_thread
        call    boot_device
        addi    r11, r10, ENTRY_HANDLER
        stw     r11, DEVICE_HANDLER(r20)
        jmp     boot_devices_next
boot_devices_done:
        jr      r25

.data
.align 4
gates:              .word 1             # how many gates to make, 1 to GATES_MAX
simulated_devices:  .word 0             # how many simulated devices to make
round_trip:         .word 2000          # cycles a simulated device takes
device_count:       .word 0
disk_number:        .word -1
disk_base:          .word 0
console_base:       .word 0
console_lock:       .word 0
timer_base:         .word 0
timer_lock:         .word 0
sleepers:           .space SLEEPERS_MAX * 8
gate_frames:        .space GATES_MAX * GATE_WORDS * 4
device_frames:      .space DEVICES_MAX * DEVICE_WORDS * 4
device_table:       .space DEVICES_MAX * 8      # of each device: semaphore thread, frame
waiting_requests:   .space DEVICES_MAX * WAITING_MAX * 16

.user
.align 4
gate_ids:           .space GATES_MAX * 4
gate_locks:         .space GATES_MAX * 4
gate_queue_addresses: .space GATES_MAX * 4
gate_queues:        .space GATES_MAX * QUEUE_BYTES
user_main_frame:    .space 64
