# The gates: the only way from user space into the kernel (Figure 4, 2-1 and 2-2).
#
# A sender locks a gate and delivers number, receiver and two arguments with four continuations (1-2). The gate finds the
# thread of the system call, hands the parameters on and opens again. The number of gates is fixed at boot.

.text
.register number, r4
.register receiver, r5
.register first, r6
.register second, r7

gate_thread:
        preload number, GATE_NUMBER, 4
        li      r8, CALLS
        bgeu    number, r8, gate_unknown
        addi    r9, r2, ENTRY_CALLS
        add     r9, r9, number          # 2-1: the system call's thread
        enter   r9
        slli    r10, number, 4
        add     r10, r10, r1
        stw     receiver, GATE_CALLS * 4 + 0(r10)
        stw     first, GATE_CALLS * 4 + 4(r10)
        stw     second, GATE_CALLS * 4 + 8(r10)
        cont    r9                      # 2-2
        jmp     gate_done
gate_unknown:
        li      r8, ERROR_CALL
        contdu  receiver, r8, RESULT

.if SOFTWARE_QUEUE
# With a software queue the gate stays locked; the closing thread hands it the next request, or opens it.
gate_done:
        rearm
        addi    r9, r2, ENTRY_CLOSE
        cont    r9
        end

gate_close_thread:
        preload r4, GATE_LOCK, 2        # the queue's lock, the queue
        enter   r4
        ldw     r6, 0(r5)               # requests taken so far
        ldw     r7, 4(r5)               # requests added so far
        rearm
        addi    r8, r2, -ENTRY_CLOSE    # the gate
        beq     r6, r7, gate_open
        andi    r9, r6, QUEUE_MAX - 1
        slli    r9, r9, 4
        add     r9, r9, r5
        ldw     r10, 16(r9)
        ldw     r11, 20(r9)
        ldw     r12, 24(r9)
        ldw     r13, 28(r9)
        addi    r6, r6, 1
        stw     r6, 0(r5)
        unlock  r4
        contd   r8, r10, GATE_NUMBER    # as the sender would have done
        contd   r8, r11, GATE_RECEIVER
        contd   r8, r12, GATE_FIRST
        contd   r8, r13, GATE_SECOND
        end
gate_open:
        unlock  r8
        unlock  r4
        end
.else
gate_done:
        leave
gate_close_thread:                      # only gates with a software queue have one
        end
.endif
