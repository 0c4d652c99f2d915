# Overload: packets arrive at network interfaces faster than they can be worked off.
#
# For each interface there is a handler thread, which takes one packet, does the protocol's work and puts the packet into a
# ring, and a user thread, the application, which works one packet off. The same code runs on both chips: on FUCE the
# interface's signal continues to the handler, on the conventional chip it interrupts the unit and the handler runs there.

.include "kernel/layout.s"
.include "kernel/exclusive.s"

.equ KIND_PACKETS,   6
.equ PACKETS_TAKE,   8
.equ PACKETS_WAITING, 12
.equ RING,           64                 # packets between handler and application; a power of two

# The frame of an interface's threads, in words.
.equ FRAME_DEVICE,   0
.equ FRAME_FIRST,    1                  # packets the application has taken from the ring
.equ FRAME_LAST,     2                  # packets the handler has put into it
.equ FRAME_LOST,     3                  # packets that found the ring full after the handler's work
.equ FRAME_WORDS,    8

.equ ENTRY_APPLICATION, 1
.equ ENTRY_FENCE,    2

.text
.entry boot
boot:
        li      r4, SYSTEM
        ldw     r5, DEVICE_COUNT(r4)
        li      r6, DEVICE_BYTES
        la      r7, frames
boot_next:
        addi    r5, r5, -1
        beqz    r5, boot_done
        add     r4, r4, r6
        ldw     r8, DEVICE_KIND(r4)
        li      r9, KIND_PACKETS
        bne     r8, r9, boot_next
        stw     r4, FRAME_DEVICE * 4(r7)
        create  r10, r7, FRAME_WORDS
        la      r11, handler_thread
        install kernel, r10, r11, 1
        la      r11, application_thread
        addi    r12, r10, ENTRY_APPLICATION
        install user, r12, r11, 1
        addi    r12, r10, ENTRY_FENCE
        install user, r12, r11, 1
        stw     r10, DEVICE_HANDLER(r4)
        addi    r7, r7, FRAME_WORDS * 4
        jmp     boot_next
boot_done:
        end

# Takes about `cycles` cycles: four for each turn.
.macro work cycles
        la      r20, \cycles
        ldw     r20, 0(r20)
        srli    r20, r20, 2
        beqz    r20, work_done\@
work_turn\@:
        addi    r20, r20, -1
        bnez    r20, work_turn\@
work_done\@:
.endm

handler_thread:
        ldw     r4, FRAME_DEVICE * 4(r1)
        ldw     r5, PACKETS_TAKE(r4)
        bltz    r5, handler_done
        work    handler_work
        ldw     r6, FRAME_FIRST * 4(r1)
        ldw     r7, FRAME_LAST * 4(r1)
        sub     r6, r7, r6
        li      r8, RING
        bgeu    r6, r8, handler_full
        addi    r7, r7, 1               # a packet is its place in the ring; there is nothing else to keep of it
        stw     r7, FRAME_LAST * 4(r1)
        addi    r9, r2, ENTRY_APPLICATION
        lock    r10, r9                 # whoever finds the application resting starts it
        beqz    r10, handler_done
        cont    r9
        jmp     handler_done
handler_full:
        ldw     r6, FRAME_LOST * 4(r1)
        addi    r6, r6, 1
        stw     r6, FRAME_LOST * 4(r1)
handler_done:
        la      r11, interrupts
        ldw     r11, 0(r11)
        bnez    r11, handler_signal     # an interrupt has used up no continuation
        rearm
handler_signal:
        li      r12, 1
        stw     r12, PACKETS_WAITING(r4)
        end

application_thread:
        ldw     r4, FRAME_FIRST * 4(r1)
        ldw     r5, FRAME_LAST * 4(r1)
        beq     r4, r5, application_rest
        work    application_work
        addi    r4, r4, 1
        stw     r4, FRAME_FIRST * 4(r1)
        ldw     r5, FRAME_LAST * 4(r1)
        beq     r4, r5, application_rest
        self
# Opens the lock, waits until that has happened, and looks once more: a packet that came in between found the lock closed.
application_rest:
        rearm
        unlock  r2
        addi    r6, r2, ENTRY_FENCE - ENTRY_APPLICATION
        lock    r7, r6
        add     r7, r7, r7
        ldw     r4, FRAME_FIRST * 4(r1)
        ldw     r5, FRAME_LAST * 4(r1)
        beq     r4, r5, application_end
        lock    r7, r2
        beqz    r7, application_end
        cont    r2
application_end:
        end

.data
.align 4
interrupts:       .word 0               # 1 on the conventional chip
handler_work:     .word 500             # cycles of the protocol's work for a packet

.user
.align 4
application_work: .word 1000            # cycles of the application's work for a packet
frames:           .space DEVICES_MAX * FRAME_WORDS * 4
