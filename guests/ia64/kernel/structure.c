/* The offsets that assembly uses (layout.h) are those of the C structures (kernel.h). Nothing is left of this file. */

#include "kernel.h"
#include "signal_frame.h"

#define OFFSET(structure, field, offset) \
    _Static_assert(offsetof(struct structure, field) == (offset), #structure "." #field)

OFFSET(frame, ipsr, FRAME_IPSR);
OFFSET(frame, ifs, FRAME_IFS);
OFFSET(frame, unat, FRAME_UNAT);
OFFSET(frame, pfs, FRAME_PFS);
OFFSET(frame, rsc, FRAME_RSC);
OFFSET(frame, rnat, FRAME_RNAT);
OFFSET(frame, bspstore, FRAME_BSPSTORE);
OFFSET(frame, pr, FRAME_PR);
OFFSET(frame, b0, FRAME_B0);
OFFSET(frame, b6, FRAME_B6);
OFFSET(frame, b7, FRAME_B7);
OFFSET(frame, ccv, FRAME_CCV);
OFFSET(frame, fpsr, FRAME_FPSR);
OFFSET(frame, spill_unat, FRAME_SPILL_UNAT);
OFFSET(frame, csd, FRAME_CSD);
OFFSET(frame, r1, FRAME_R1);
OFFSET(frame, r2, FRAME_R2);
OFFSET(frame, r3, FRAME_R3);
OFFSET(frame, r8, FRAME_R8);
OFFSET(frame, r11, FRAME_R11);
OFFSET(frame, r12, FRAME_R12);
OFFSET(frame, r15, FRAME_R12 + 24);
OFFSET(frame, r16, FRAME_R16);
OFFSET(frame, vector, FRAME_VECTOR);
OFFSET(frame, f6, FRAME_F6);
OFFSET(frame, isr, FRAME_ISR);
OFFSET(frame, ifa, FRAME_IFA);
OFFSET(frame, iim, FRAME_IIM);
OFFSET(frame, iipa, FRAME_IIPA);
OFFSET(frame, loaded, FRAME_LOADED);
_Static_assert(sizeof(struct frame) == FRAME_SIZE, "frame");

OFFSET(context, sp, CONTEXT_SP);
OFFSET(context, unat, CONTEXT_UNAT);
OFFSET(context, spill_unat, CONTEXT_SPILL_UNAT);
OFFSET(context, rnat, CONTEXT_RNAT);
OFFSET(context, bspstore, CONTEXT_BSPSTORE);
OFFSET(context, pfs, CONTEXT_PFS);
OFFSET(context, lc, CONTEXT_LC);
OFFSET(context, pr, CONTEXT_PR);
OFFSET(context, fpsr, CONTEXT_FPSR);
OFFSET(context, b, CONTEXT_B0);
OFFSET(context, r4, CONTEXT_R4);
OFFSET(context, b5, CONTEXT_R4 + 32);
_Static_assert(sizeof(struct context) == CONTEXT_SIZE, "context");

OFFSET(preserved, spill_unat, PRESERVED_SPILL_UNAT);
OFFSET(preserved, lc, PRESERVED_LC);
OFFSET(preserved, r4, PRESERVED_R4);
OFFSET(preserved, b1, PRESERVED_B1);
OFFSET(preserved, end, PRESERVED_END);
OFFSET(preserved, f2, PRESERVED_F2);
_Static_assert(sizeof(struct preserved) == PRESERVED_SIZE, "preserved");

OFFSET(task, on_user_stack, TASK_ON_USER_STACK);
OFFSET(task, work, TASK_WORK);
OFFSET(task, identity, TASK_IDENTITY);
OFFSET(task, parent, TASK_PARENT);
OFFSET(task, context, TASK_CONTEXT);
OFFSET(task, blocked_signals, TASK_BLOCKED_SIGNALS);
OFFSET(task, floating_low, TASK_FLOATING_LOW);
OFFSET(task, floating_high, TASK_FLOATING_HIGH);
OFFSET(task, state, TASK_ASSEMBLY_END);
_Static_assert(sizeof(struct task) <= TASK_BACKING_STORE, "task");

OFFSET(time_data, sequence, 0);
OFFSET(time_data, source, TIME_SOURCE);
OFFSET(time_data, last, TIME_LAST);
OFFSET(time_data, multiplier, TIME_MULTIPLIER);
OFFSET(time_data, seconds, TIME_SECONDS);
OFFSET(time_data, nanoseconds, TIME_NANOSECONDS);
OFFSET(time_data, latest, TIME_LATEST);

OFFSET(signal_frame, arguments, SIGNAL_FRAME_ARGUMENTS);
OFFSET(signal_frame, handler, SIGNAL_FRAME_HANDLER);
OFFSET(signal_frame, context, SIGNAL_FRAME_CONTEXT);
OFFSET(signal_context, bsp, SIGNAL_CONTEXT_BSP);
OFFSET(signal_context, floating[6], SIGNAL_CONTEXT_F6);
OFFSET(signal_context, rnat, SIGNAL_CONTEXT_RNAT);
OFFSET(signal_context, backing_store_base, SIGNAL_CONTEXT_BACKING_STORE);
OFFSET(signal_context, loaded, SIGNAL_CONTEXT_LOADED);
OFFSET(signal_context, bspstore, SIGNAL_CONTEXT_BSPSTORE);
OFFSET(signal_context, mask, 2640);
_Static_assert(sizeof(struct signal_information) == 128, "siginfo_t of Linux/ia64");
_Static_assert(sizeof(struct signal_context) == 2656, "struct sigcontext of Linux/ia64");
_Static_assert(sizeof(struct signal_frame) == SIGNAL_FRAME_SIZE, "struct sigframe of Linux/ia64");
