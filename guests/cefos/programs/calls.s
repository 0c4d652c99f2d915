# `calls` system calls at once: what the experiments measure.
#
# One launcher for each gate makes the instances of its calls, a page each: a sender and a receiver. Calls go to gates and
# devices in turn. The receivers meet in join threads, these in the last thread, which notes the time and exits. When no
# page is free a launcher tries again: pages come back as receivers end.

.include "cefos.s"

.equ JOIN_CALLS,   200                  # receivers that meet in one join thread
.equ CALLS_MAX,    40000
.equ JOINS_MAX,    CALLS_MAX / JOIN_CALLS
.equ CALL_WORDS,   8

# A call's frame, in words.
.equ FRAME_GATE,   0
.equ FRAME_DEVICE, 1
.equ FRAME_JOIN,   3                    # word 2 is RESULT
.equ FRAME_LOCK,   4
.equ FRAME_QUEUE,  5
.equ FRAME_PAGE,   6

# A launcher's frame, in words.
.equ LAUNCH_NEXT,  0                    # its next call
.equ LAUNCH_GATE,  1                    # its gate: number among the gates
.equ LAUNCH_WORDS, 4

.text
user_main:
        cycle   r4
        la      r5, clock_start
        stw     r4, 0(r5)
        call    make_joins
        la      r4, call_gates          # one launcher a gate
        ldw     r4, 0(r4)
        li      r5, 0
        la      r6, launch_frames
user_main_next:
        create  r7, r6, LAUNCH_WORDS
        la      r8, launcher_thread
        install user, r7, r8, 1
        stw     r5, LAUNCH_NEXT * 4(r6)
        stw     r5, LAUNCH_GATE * 4(r6)
        cont    r7
        addi    r6, r6, LAUNCH_WORDS * 4
        addi    r5, r5, 1
        bltu    r5, r4, user_main_next
        end

# Makes the join threads of all calls and the last thread.
make_joins:
        la      r10, calls
        ldw     r10, 0(r10)             # calls still without a join
        li      r11, 0                  # joins made
        la      r12, join_ids
        la      r15, join_thread
        li      r16, JOIN_CALLS
make_joins_page:
        create  r13, r0, 0
        li      r14, 8
make_joins_next:
        beqz    r10, make_joins_done
        install user, r13, r15, 255
        mv      r17, r10
        bleu    r17, r16, make_joins_count
        mv      r17, r16
make_joins_count:
        setcount r13, r17
        sub     r10, r10, r17
        stw     r13, 0(r12)
        addi    r12, r12, 4
        addi    r11, r11, 1
        addi    r13, r13, 1
        addi    r14, r14, -1
        bnez    r14, make_joins_next
        jmp     make_joins_page
make_joins_done:
        load_gate
        la      r12, last_frame
        stw     r20, FRAME_GATE * 4(r12)
        stw     r21, FRAME_LOCK * 4(r12)
        stw     r22, FRAME_QUEUE * 4(r12)
        create  r13, r12, CALL_WORDS
        la      r15, last_thread
        install user, r13, r15, 255
        setcount r13, r11
        la      r15, exit_thread
        addi    r14, r13, 1
        install user, r14, r15, 1
        la      r12, last_id
        stw     r13, 0(r12)
        ret

.register next, r4
.register gate, r5
.register all, r6
.register step, r7
.register frame, r8
.register page, r9
launcher_thread:
        preload next, LAUNCH_NEXT, 2
        la      r10, calls
        ldw     all, 0(r10)
        ldw     step, call_gates - calls(r10)
        ldw     r20, call_devices - calls(r10)
        la      r21, sender_thread
        la      r22, receiver_thread
        slli    r11, gate, 2
        la      r12, gate_ids
        add     r12, r12, r11
        ldw     r23, 0(r12)
        ldw     r24, gate_locks - gate_ids(r12)
        ldw     r25, gate_queue_addresses - gate_ids(r12)
        la      frame, call_frames
        slli    r11, next, 5            # CALL_WORDS * 4
        add     frame, frame, r11
        slli    r19, step, 5
        remu    r17, next, r20          # the call's device
        remu    r18, step, r20
launcher_next:
        bgeu    next, all, launcher_done
        create  page, frame, CALL_WORDS
        srli    r13, next, 3            # a join's number, next / JOIN_CALLS, without a division:
        li      r14, 5243               # 5243 / 2^17 is 1 / 25 closely enough up to CALLS_MAX
        mul     r13, r13, r14
        srli    r13, r13, 17
        slli    r13, r13, 2
        la      r14, join_ids
        add     r13, r13, r14
        ldw     r13, 0(r13)
        bltz    page, launcher_full
        stw     r23, FRAME_GATE * 4(frame)
        stw     r17, FRAME_DEVICE * 4(frame)
        stw     r13, FRAME_JOIN * 4(frame)
        stw     r24, FRAME_LOCK * 4(frame)
        stw     r25, FRAME_QUEUE * 4(frame)
        install user, page, r21, 1
        addi    r15, page, 1
        install user, r15, r22, 1
        cont    page
        add     frame, frame, r19
        add     next, next, step
        add     r17, r17, r18
        bltu    r17, r20, launcher_next
        sub     r17, r17, r20
        jmp     launcher_next
launcher_full:
        stw     next, LAUNCH_NEXT * 4(r1)
        self
launcher_done:
        end

sender_thread:
        preload r4, FRAME_GATE, 6       # gate, device, -, join, lock, queue
        addi    r10, r2, 1              # the receiver
        system_call CALL_REQUEST, r10, r5, r2, r4, r8, r9

receiver_thread:
        preload r4, RESULT, 2           # the result: the word that was sent; the join
        addi    r6, r2, -1
        bne     r4, r6, receiver_wrong
        cont    r5
        delete  r2
        end
receiver_wrong:
        la      r7, wrong_results
        li      r8, 1
        stw     r8, 0(r7)
        cont    r5
        delete  r2
        end

join_thread:
        la      r4, last_id
        ldw     r4, 0(r4)
        cont    r4
        end

last_thread:
        cycle   r4
        la      r5, clock_end
        stw     r4, 0(r5)
        addi    r6, r2, 1
        cont    r6
        end

exit_thread:
        preload r4, FRAME_GATE, 6
        la      r10, wrong_results
        ldw     r10, 0(r10)
        system_call CALL_EXIT, r2, r10, r0, r4, r8, r9

.user
.align 4
calls:          .word 10                # how many calls
call_gates:     .word 1                 # over how many gates
call_devices:   .word 1                 # to how many devices
clock_start:    .word 0
clock_end:      .word 0
wrong_results:  .word 0
last_id:        .word 0
last_frame:     .space CALL_WORDS * 4
join_ids:       .space JOINS_MAX * 4
launch_frames:  .space GATES_MAX * LAUNCH_WORDS * 4
call_frames:    .space CALLS_MAX * CALL_WORDS * 4
