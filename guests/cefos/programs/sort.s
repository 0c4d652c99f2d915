# A parallel merge sort. Each instance splits its part of the array between two new instances until parts are small, and
# its merge thread waits for both: the recursion is a data-flow graph that unfolds as fast as there are units.

.include "cefos.s"
.include "kernel/text.s"

.equ NUMBERS,      1024
.equ PART,         16                   # parts up to this length are sorted by insertion
.equ NODES,        2 * NUMBERS / PART   # instances, numbered as in a heap: the children of n are 2n and 2n + 1

# An instance's frame, in words.
.equ NODE,         0
.equ START,        1
.equ COUNT,        2
.equ PARENT,       3
.equ NODE_WORDS,   4

.register node, r4
.register start, r5
.register count, r6
.register parent, r7

.text
user_main:
        la      r8, numbers             # fill the array with numbers in no order
        li      r9, NUMBERS
        la      r10, seed
        ldw     r10, 0(r10)
        li      r11, 1664525
        li      r12, 1013904223
fill:   mul     r10, r10, r11
        add     r10, r10, r12
        srli    r13, r10, 8
        stw     r13, 0(r8)
        addi    r8, r8, 4
        addi    r9, r9, -1
        bnez    r9, fill
        la      r8, report_frame        # the end of the program: a page with the threads that report and exit
        create  r9, r8, 4
        la      r10, report_thread
        install user, r9, r10, 1
        addi    r11, r9, 1
        la      r10, write_thread
        install user, r11, r10, 1
        addi    r11, r9, 2
        la      r10, exit_thread
        install user, r11, r10, 1
        la      r12, frames + 1 * NODE_WORDS * 4
        create  r13, r12, NODE_WORDS    # the root
        li      r14, 1
        stw     r14, NODE * 4(r12)
        la      r14, numbers
        stw     r14, START * 4(r12)
        li      r14, NUMBERS
        stw     r14, COUNT * 4(r12)
        stw     r9, PARENT * 4(r12)
        la      r10, sort_thread
        install user, r13, r10, 1
        cont    r13
        end

sort_thread:
        preload node, NODE, 4
        li      r8, PART
        bleu    count, r8, sort_part
        slli    r10, node, 1            # make both children or none
        slli    r11, r10, 4             # NODE_WORDS * 4
        la      r12, frames
        add     r11, r11, r12
        addi    r12, r11, NODE_WORDS * 4
        create  r13, r11, NODE_WORDS
        bltz    r13, sort_again
        create  r14, r12, NODE_WORDS
        bltz    r14, sort_undo
        addi    r15, r2, 1
        la      r16, merge_thread
        install user, r15, r16, 2
        srli    r17, count, 1
        sub     r18, count, r17
        slli    r19, r17, 2
        add     r19, r19, start
        stw     r10, NODE * 4(r11)
        stw     start, START * 4(r11)
        stw     r17, COUNT * 4(r11)
        stw     r15, PARENT * 4(r11)
        addi    r10, r10, 1
        stw     r10, NODE * 4(r12)
        stw     r19, START * 4(r12)
        stw     r18, COUNT * 4(r12)
        stw     r15, PARENT * 4(r12)
        la      r16, sort_thread
        install user, r13, r16, 1
        install user, r14, r16, 1
        cont    r13
        cont    r14
        end
sort_undo:
        delete  r13
sort_again:                             # no page is free: others must end first
        self

sort_part:
        li      r8, 1                   # numbers in order so far
sort_next:
        bgeu    r8, count, sort_done
        slli    r9, r8, 2
        add     r9, r9, start
        ldw     r10, 0(r9)
sort_shift:
        beq     r9, start, sort_insert
        ldw     r11, -4(r9)
        bleu    r11, r10, sort_insert
        stw     r11, 0(r9)
        addi    r9, r9, -4
        jmp     sort_shift
sort_insert:
        stw     r10, 0(r9)
        addi    r8, r8, 1
        jmp     sort_next
sort_done:
        cont    parent
        delete  r2
        end

# Merges the two sorted halves through the scratch array.
merge_thread:
        preload node, NODE, 4
        srli    r8, count, 1
        slli    r8, r8, 2
        mv      r9, start               # next of the left half
        add     r10, start, r8          # its end, and next of the right half
        mv      r11, r10
        slli    r12, count, 2
        add     r12, r12, start         # end of the right half
        la      r13, scratch
        la      r14, numbers
        sub     r14, start, r14
        add     r13, r13, r14
        mv      r14, r13
merge_next:
        beq     r9, r10, merge_right
        ldw     r15, 0(r9)
        beq     r11, r12, merge_left
        ldw     r16, 0(r11)
        bgtu    r15, r16, merge_right
merge_left:
        stw     r15, 0(r14)
        addi    r9, r9, 4
        addi    r14, r14, 4
        jmp     merge_next
merge_right:
        beq     r11, r12, merge_copy
        ldw     r16, 0(r11)
        stw     r16, 0(r14)
        addi    r11, r11, 4
        addi    r14, r14, 4
        jmp     merge_next
merge_copy:
        ldw     r15, 0(r13)
        stw     r15, 0(start)
        addi    r13, r13, 4
        addi    start, start, 4
        bne     start, r12, merge_copy
        cont    parent
        delete  r2
        end

# Counts the numbers that are out of order and says so.
report_thread:
        la      r8, numbers
        li      r9, NUMBERS - 1
        li      r10, 0
report_next:
        ldw     r11, 0(r8)
        ldw     r12, 4(r8)
        bleu    r11, r12, report_fine
        addi    r10, r10, 1
report_fine:
        addi    r8, r8, 4
        addi    r9, r9, -1
        bnez    r9, report_next
        la      r11, disorder
        stw     r10, 0(r11)
        li      r20, NUMBERS
        la      r21, message
        call    format_decimal
        la      r8, message_end
report_copy:
        ldbu    r9, 0(r8)
        beqz    r9, report_number
        stb     r9, 0(r21)
        addi    r8, r8, 1
        addi    r21, r21, 1
        jmp     report_copy
report_number:
        mv      r20, r10
        call    format_decimal
        li      r9, '\n'
        stb     r9, 0(r21)
        la      r8, message
        sub     r9, r21, r8
        addi    r9, r9, 1
        la      r8, message_length
        stw     r9, 0(r8)
        addi    r8, r2, 1
        cont    r8
        end

write_thread:
        load_gate
        addi    r8, r2, 1               # the receiver: the thread that exits
        la      r9, message
        la      r10, message_length
        ldw     r10, 0(r10)
        system_call CALL_WRITE, r8, r9, r10, r20, r21, r22

exit_thread:
        load_gate
        la      r8, disorder
        ldw     r8, 0(r8)
        system_call CALL_EXIT, r2, r8, r0, r20, r21, r22

.user
.align 4
seed:           .word 1
disorder:       .word -1
message_length: .word 0
report_frame:   .space 16
message:        .space 64
message_end:    .asciz " numbers sorted; out of order: "
.align 4
numbers:        .space NUMBERS * 4
scratch:        .space NUMBERS * 4
frames:         .space (NODES + 1) * NODE_WORDS * 4
