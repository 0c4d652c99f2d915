# CEFOS: a kernel of zero-wait threads for FUCE. A program includes this file and defines `user_main`.
#
# Build switch: SOFTWARE_QUEUE=1 puts a software queue before every gate, SOFTWARE_QUEUE=0 leaves those who wait for a
# gate to the hardware's ready queue.

.include "kernel/layout.s"
.include "kernel/exclusive.s"
.include "kernel/user.s"
.include "kernel/boot.s"
.include "kernel/fault.s"
.include "kernel/gate.s"
.include "kernel/request.s"
.include "kernel/calls.s"
