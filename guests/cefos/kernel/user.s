# What a program uses to call the system.

# A system call is the whole of a thread (the sender thread, 1-1 to 1-3): a thread that does not get the gate continues
# to its own beginning, so before the macro it may only load registers. `gate` is the gate's number, `lock` and `queue`
# are what guards its software queue and where that is; all operands are registers except `number`. Uses r26 to r30.
.if SOFTWARE_QUEUE
.macro system_call number, receiver, first, second, gate, lock, queue
        enter   \lock
        li      r29, \number
        lock    r30, \gate              # 1-1
        beqz    r30, system_call_wait\@
        unlock  \lock
        contd   \gate, r29, 0           # 1-2
        contd   \gate, \receiver, 1
        contd   \gate, \first, 2
        contd   \gate, \second, 3
        end
system_call_wait\@:                     # instead of 1-3
        ldw     r28, 0(\queue)
        ldw     r27, 4(\queue)
        sub     r28, r27, r28
        li      r26, QUEUE_MAX
        bgeu    r28, r26, system_call_full\@
        andi    r28, r27, QUEUE_MAX - 1
        slli    r28, r28, 4
        add     r28, r28, \queue
        stw     r29, 16(r28)
        stw     \receiver, 20(r28)
        stw     \first, 24(r28)
        stw     \second, 28(r28)
        addi    r27, r27, 1
        stw     r27, 4(\queue)
        unlock  \lock
        end
system_call_full\@:
        unlock  \lock
        self
.endm
.else
.macro system_call number, receiver, first, second, gate, lock, queue
        enter   \gate                   # 1-1, 1-3
        li      r29, \number
        contd   \gate, r29, 0           # 1-2
        contd   \gate, \receiver, 1
        contd   \gate, \first, 2
        contd   \gate, \second, 3
        end
.endm
.endif

# Loads gate 0, its lock and its queue into r20, r21 and r22.
.macro load_gate
        la      r20, gate_ids
        la      r21, gate_locks
        la      r22, gate_queue_addresses
        ldw     r20, 0(r20)
        ldw     r21, 0(r21)
        ldw     r22, 0(r22)
.endm
