// The interruption vector table (manual volume 2, chapter 8): 20 vectors of 64 bundles, then 48 of 16 bundles.
//
// The processor arrives with PSR.ic and PSR.i clear on register bank 0: r16 to r31 are the handler's own, and nothing
// else is saved. TLB misses are handled right there (translation.S). Everything else goes to `interruption_entry` (entry.S), which
// saves a frame and calls C; r30 tells it the vector, r31 holds the predicates. Vectors that nothing of this
// machine should raise go the same way: C reports them, and what it does not know ends the machine.

#include "layout.h"
#include "assembly.h"

// A vector that C handles.
#define VECTOR(offset, label) \
	.org	offset; \
label:	mov	r30 = offset; \
	mov	r31 = pr; \
	br.sptk.many interruption_entry; \
	;;

// A vector with a handler of its own in assembly.
#define HANDLER(offset, handler) \
	.org	offset; \
	mov	r31 = pr; \
	br.sptk.many handler; \
	;;

	.section .text.vectors, "ax"
	.align	32768
	.global	interruption_vectors
interruption_vectors:
	HANDLER(0x0000, linear_table_miss)		// VHPT translation
	HANDLER(0x0400, instruction_miss)		// instruction TLB
	HANDLER(0x0800, data_miss)			// data TLB
	HANDLER(0x0c00, instruction_miss_without_walker) // alternate instruction TLB
	HANDLER(0x1000, data_miss_without_walker)	// alternate data TLB
	.org	0x1400					// data nested TLB: see translation.S; keeps r31
	br.sptk.many nested_miss
	;;
	VECTOR(0x1800, instruction_key_miss)
	VECTOR(0x1c00, data_key_miss)
	VECTOR(0x2000, dirty_bit)
	VECTOR(0x2400, instruction_access_bit)
	VECTOR(0x2800, data_access_bit)
	HANDLER(0x2c00, break_instruction)
	VECTOR(0x3000, external_interrupt)
	VECTOR(0x3400, virtual_external_interrupt)
	VECTOR(0x3800, reserved_3800)
	VECTOR(0x3c00, reserved_3c00)
	VECTOR(0x4000, reserved_4000)
	VECTOR(0x4400, reserved_4400)
	VECTOR(0x4800, reserved_4800)
	VECTOR(0x4c00, reserved_4c00)
	HANDLER(0x5000, page_not_present)
	VECTOR(0x5100, key_permission)
	VECTOR(0x5200, instruction_access_rights)
	VECTOR(0x5300, data_access_rights)
	VECTOR(0x5400, general_exception)
	VECTOR(0x5500, disabled_floating_point)
	VECTOR(0x5600, nat_consumption)
	VECTOR(0x5700, speculation)
	VECTOR(0x5800, reserved_5800)
	VECTOR(0x5900, debug)
	VECTOR(0x5a00, unaligned_reference)
	VECTOR(0x5b00, unsupported_data_reference)
	VECTOR(0x5c00, floating_point_fault)
	VECTOR(0x5d00, floating_point_trap)
	VECTOR(0x5e00, lower_privilege_transfer)
	VECTOR(0x5f00, taken_branch)
	VECTOR(0x6000, single_step)
	VECTOR(0x6100, virtualization)
	VECTOR(0x6200, reserved_6200)
	VECTOR(0x6300, reserved_6300)
	VECTOR(0x6400, reserved_6400)
	VECTOR(0x6500, reserved_6500)
	VECTOR(0x6600, reserved_6600)
	VECTOR(0x6700, reserved_6700)
	VECTOR(0x6800, reserved_6800)
	VECTOR(0x6900, ia32_exception)
	VECTOR(0x6a00, ia32_intercept)
	VECTOR(0x6b00, ia32_interrupt)
	VECTOR(0x6c00, reserved_6c00)
	VECTOR(0x6d00, reserved_6d00)
	VECTOR(0x6e00, reserved_6e00)
	VECTOR(0x6f00, reserved_6f00)
	VECTOR(0x7000, reserved_7000)
	VECTOR(0x7100, reserved_7100)
	VECTOR(0x7200, reserved_7200)
	VECTOR(0x7300, reserved_7300)
	VECTOR(0x7400, reserved_7400)
	VECTOR(0x7500, reserved_7500)
	VECTOR(0x7600, reserved_7600)
	VECTOR(0x7700, reserved_7700)
	VECTOR(0x7800, reserved_7800)
	VECTOR(0x7900, reserved_7900)
	VECTOR(0x7a00, reserved_7a00)
	VECTOR(0x7b00, reserved_7b00)
	VECTOR(0x7c00, reserved_7c00)
	VECTOR(0x7d00, reserved_7d00)
	VECTOR(0x7e00, reserved_7e00)
	VECTOR(0x7f00, reserved_7f00)
	.org	0x8000
