# The fault thread: every fault continues here. It writes a line for each record and goes on; what the faulting thread
# was to do stays undone.

.text
fault_thread:
        li      r4, SYSTEM
        la      r5, console_base
        ldw     r6, 0(r5)
fault_next:
        ldw     r7, FAULT_COUNT(r4)
        beqz    r7, fault_done
        la      r8, fault_total
        ldw     r9, 0(r8)
        addi    r9, r9, 1
        stw     r9, 0(r8)
        beqz    r6, fault_drop
        la      r10, fault_text_cause
        call    fault_print
        ldw     r11, FAULT_CAUSE(r4)
        call    fault_print_number
        la      r10, fault_text_thread
        call    fault_print
        ldw     r11, FAULT_THREAD(r4)
        call    fault_print_number
        la      r10, fault_text_address
        call    fault_print
        ldw     r11, FAULT_ADDRESS(r4)
        call    fault_print_number
        la      r10, fault_text_value
        call    fault_print
        ldw     r11, FAULT_VALUE(r4)
        call    fault_print_number
        li      r11, '\n'
        stw     r11, CONSOLE_DATA(r6)
fault_drop:
        stw     r0, FAULT_CAUSE(r4)
        jmp     fault_next
fault_done:
        rearm
        end

# Writes the text at r10, ended by a zero.
fault_print:
        ldbu    r12, 0(r10)
        beqz    r12, fault_print_done
        stw     r12, CONSOLE_DATA(r6)
        addi    r10, r10, 1
        jmp     fault_print
fault_print_done:
        ret

# Writes r11 in hexadecimal.
fault_print_number:
        li      r12, 28
fault_print_digit:
        srl     r13, r11, r12
        andi    r13, r13, 15
        slti    r14, r13, 10
        bnez    r14, fault_print_decimal
        addi    r13, r13, 'a' - '0' - 10
fault_print_decimal:
        addi    r13, r13, '0'
        stw     r13, CONSOLE_DATA(r6)
        addi    r12, r12, -4
        bgez    r12, fault_print_digit
        ret

.data
fault_text_cause:   .asciz "fault "
fault_text_thread:  .asciz " in thread "
fault_text_address: .asciz " at "
fault_text_value:   .asciz ", value "
.align 4
fault_total:        .word 0
