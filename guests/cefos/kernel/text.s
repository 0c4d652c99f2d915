# Text for programs.

.text
# Writes the number in r20 in decimal to the address in r21; r21 becomes the address after it. Uses r22 to r25.
format_decimal:
        li      r22, 10
        mv      r23, r21
format_decimal_length:                  # room for every digit
        addi    r23, r23, 1
        mv      r24, r20
        li      r25, 1
format_decimal_count:
        bltu    r24, r22, format_decimal_digits
        divu    r24, r24, r22
        addi    r23, r23, 1
        jmp     format_decimal_count
format_decimal_digits:
        mv      r21, r23
format_decimal_next:
        addi    r23, r23, -1
        remu    r24, r20, r22
        addi    r24, r24, '0'
        stb     r24, 0(r23)
        divu    r20, r20, r22
        bnez    r20, format_decimal_next
        ret
