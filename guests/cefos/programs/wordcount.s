# Counts the words on the disk: every sector is read and counted by threads of its own, and one thread adds up.
#
# A word is bytes above the space character. A word that crosses from one sector into the next is counted by both; so
# each sector also notes whether its first and its last byte belong to words.

.include "cefos.s"
.include "kernel/text.s"

.equ SECTORS_MAX,   255

# A sector's frame, in words.
.equ PART_SECTOR,   0
.equ PART_BUFFER,   1
.equ PART_TOTAL,    3                   # the thread that adds up; word 2 is RESULT
.equ PART_WORDS,    4
.equ PART_EDGES,    5                   # bit 0: begins inside a word; bit 1: ends inside one
.equ PART_SIZE,     8

.text
user_main:
        la      r4, main_frame
        create  r5, r4, 4
        la      r6, size_thread
        install user, r5, r6, 1
        addi    r7, r5, 1
        la      r6, start_thread
        install user, r7, r6, 1
        addi    r7, r5, 2
        la      r6, total_thread
        install user, r7, r6, 255
        addi    r7, r5, 3
        la      r6, write_thread
        install user, r7, r6, 1
        addi    r7, r5, 4
        la      r6, exit_thread
        install user, r7, r6, 1
        cont    r5
        end

# Asks how large the disk is; the answer goes to the next thread.
size_thread:
        load_gate
        addi    r4, r2, 1
        li      r5, -1
        system_call CALL_DISK_READ, r4, r5, r0, r20, r21, r22

start_thread:
        preload r4, RESULT, 1           # sectors
        addi    r5, r2, 1               # the thread that adds up
        la      r6, sectors
        stw     r4, 0(r6)
        ble     r4, r0, start_bad
        li      r6, SECTORS_MAX
        bgtu    r4, r6, start_bad
        setcount r5, r4
        li      r6, 0
        la      r7, parts
        la      r8, buffers
start_next:
        create  r9, r7, PART_SIZE
        stw     r6, PART_SECTOR * 4(r7)
        stw     r8, PART_BUFFER * 4(r7)
        stw     r5, PART_TOTAL * 4(r7)
        la      r10, read_thread
        install user, r9, r10, 1
        addi    r11, r9, 1
        la      r10, count_thread
        install user, r11, r10, 1
        cont    r9
        addi    r7, r7, PART_SIZE * 4
        addi    r8, r8, SECTOR_BYTES
        addi    r6, r6, 1
        bltu    r6, r4, start_next
        end
start_bad:
        la      r6, exit_code
        li      r7, 1
        stw     r7, 0(r6)
        addi    r5, r2, 3
        cont    r5
        end

read_thread:
        preload r4, PART_SECTOR, 2
        load_gate
        addi    r6, r2, 1
        system_call CALL_DISK_READ, r6, r4, r5, r20, r21, r22

count_thread:
        preload r4, PART_SECTOR, 4      # sector, buffer, result, total
        bnez    r6, count_failed
        addi    r8, r5, SECTOR_BYTES
        li      r9, ' '
        li      r10, 0                  # words
        li      r11, 0                  # whether the last byte belonged to a word
        ldbu    r12, 0(r5)
        sltu    r13, r9, r12            # begins inside a word
count_next:
        ldbu    r12, 0(r5)
        sltu    r14, r9, r12
        bleu    r14, r11, count_same
        addi    r10, r10, 1
count_same:
        mv      r11, r14
        addi    r5, r5, 1
        bltu    r5, r8, count_next
        slli    r11, r11, 1
        or      r13, r13, r11
        stw     r10, PART_WORDS * 4(r1)
        stw     r13, PART_EDGES * 4(r1)
        cont    r7
        end
count_failed:
        la      r8, exit_code
        li      r9, 1
        stw     r9, 0(r8)
        cont    r7
        end

total_thread:
        la      r4, sectors
        ldw     r4, 0(r4)
        la      r5, parts
        li      r20, 0
        li      r6, 0                   # whether the sector before ended inside a word
total_next:
        ldw     r7, PART_WORDS * 4(r5)
        ldw     r8, PART_EDGES * 4(r5)
        add     r20, r20, r7
        and     r9, r8, r6
        sub     r20, r20, r9
        srli    r6, r8, 1
        addi    r5, r5, PART_SIZE * 4
        addi    r4, r4, -1
        bnez    r4, total_next
        la      r21, message
        call    format_decimal
        la      r8, message_end
total_copy:
        ldbu    r9, 0(r8)
        stb     r9, 0(r21)
        addi    r8, r8, 1
        addi    r21, r21, 1
        bnez    r9, total_copy
        la      r8, message
        sub     r9, r21, r8
        addi    r9, r9, -1
        la      r8, message_length
        stw     r9, 0(r8)
        addi    r8, r2, 1
        cont    r8
        end

write_thread:
        load_gate
        addi    r8, r2, 1
        la      r9, message
        la      r10, message_length
        ldw     r10, 0(r10)
        system_call CALL_WRITE, r8, r9, r10, r20, r21, r22

exit_thread:
        load_gate
        la      r8, exit_code
        ldw     r8, 0(r8)
        system_call CALL_EXIT, r2, r8, r0, r20, r21, r22

.user
.align 4
sectors:        .word 0
exit_code:      .word 0
message_length: .word 0
main_frame:     .space 16
message:        .space 32
message_end:    .asciz " words\n"
.align 4
parts:          .space SECTORS_MAX * PART_SIZE * 4
buffers:        .space SECTORS_MAX * SECTOR_BYTES
