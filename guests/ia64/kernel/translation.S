// Refilling the TLB. The reference is always the process's two-level page table, whose directory KR_PAGE_TABLE holds
// (a physical address); the boot parameters choose what stands between it and the TLB:
//
//   format=short walker=on    the hardware walks the linear table that ends each region. Its pages are the page
//                             table's own second level, mapped on demand by `linear_table_miss`.
//   format=long  walker=on    the hardware reads the hashed table. It is a software TLB: on a miss `refill_hashed`
//                             copies the page table's entry into it.
//   format=short walker=off   software alone, as a kernel does that keeps a linear table: read the entry through the
//                             linear table; when that misses the TLB as well (data nested TLB), walk.
//   format=long  walker=off   software looks into the hashed table first, then into the page table.
//
// All handlers run on register bank 0 with r31 = predicates. Their registers:
//
//   r16  the address that missed          r18  where its page table entry is      r25  ITIR for the insertion
//   r17  and r19 to r23  scratch          r24  the page table entry               r28  b0, r29 where `nested_miss` goes on
//
// A process has one thread, so its own page table does not change under its feet; that is why no handler looks at
// the entry again after the insertion, as a kernel with threads has to.

#include "layout.h"
#include "assembly.h"

// Goes to C with the vector `offset`.
#define TO_C(predicate, offset) \
(predicate)	mov	r30 = offset; \
(predicate)	br.cond.spnt.many page_fault; \
	;;

// Walks the page table for r16 in physical mode (PSR.dt off). Leaves the entry's physical address in r18 and the entry
// in r24; p6 is true when there is none.
#define WALK \
	mov	r19 = KR_PAGE_TABLE; \
	shr.u	r20 = r16, REGION_SHIFT; \
	extr.u	r21 = r16, TABLE_REACH_SHIFT, DIRECTORY_ENTRIES_SHIFT; \
	extr.u	r22 = r16, REGION_REACH_SHIFT, REGION_SHIFT - REGION_REACH_SHIFT; \
	rsm	PSR_DT; \
	;; \
	cmp.ne	p6, p0 = r0, r22; \
	cmp.le	p7, p0 = USER_REGIONS, r20; \
	dep	r21 = r20, r21, DIRECTORY_ENTRIES_SHIFT, 3; \
	;; \
	shladd	r21 = r21, 3, r19; \
(p7)	cmp.eq	p6, p0 = r0, r0; \
	srlz.d; \
	;; \
	mov	r18 = 0; \
	mov	r24 = 0; \
(p6)	br.cond.spnt.few 9f; \
	;; \
	ld8	r22 = [r21]; \
	extr.u	r23 = r16, PAGE_SHIFT, TABLE_ENTRIES_SHIFT; \
	;; \
	cmp.eq	p6, p7 = r0, r22; \
	shladd	r18 = r23, 3, r22; \
	;; \
(p7)	ld8	r24 = [r18]; \
9:	;;

// From the entry r24: p6 if nothing may be loaded, else r25 = ITIR and r24 as the TLB wants it.
#define PREPARE \
	tbit.nz	p7, p0 = r24, PTE_SOFTWARE_BIT; \
	tbit.nz	p8, p9 = r24, PTE_SUPERPAGE_BIT; \
	extr.u	r19 = r24, PTE_KEY_SHIFT, PTE_KEY_BITS; \
	;; \
(p7)	adds	r20 = PTE_PRESENT, r0; \
(p7)	or	r24 = PTE_PRESENT, r24; \
(p8)	mov	r25 = SUPERPAGE_SHIFT << 2; \
(p9)	mov	r25 = PAGE_SHIFT << 2; \
	;; \
	tbit.z	p6, p0 = r24, 0; \
	dep	r25 = r19, r25, 8, PTE_KEY_BITS; \
	;;

// Restores what the handler changed and goes back to the reference that missed.
#define DONE \
	mov	pr = r31, -1; \
	;; \
	rfi; \
	;;

	.text

// Not for the TLB: C decides. r30 holds the vector.
page_fault:
	ssm	PSR_DT
	;;
	srlz.d
	br.sptk.many interruption_entry
	;;

// The walker could not read the linear table: its page is not in the TLB. Inserts that page, and as the reference
// will need it next, the translation itself.
ENTRY(linear_table_miss)
	mov	r16 = cr.ifa
	mov	r17 = cr.iha
	mov	r26 = cr.isr
	mov	r28 = cr.itir
	;;
	WALK
	TO_C(p6, 0x0000)				// no second level: C makes one
	dep	r20 = r0, r18, 0, PAGE_SHIFT		// the table's page
	movl	r21 = PTE_KERNEL
	mov	r22 = PAGE_SHIFT << 2
	;;
	or	r20 = r21, r20
	mov	cr.ifa = r17
	mov	cr.itir = r22
	;;
	itc.d	r20
	;;
	mov	cr.ifa = r16
	PREPARE
	tbit.nz	p10, p11 = r26, 32			// ISR.x: an instruction fetch
(p6)	br.cond.spnt.few 1f				// let the reference find out what is wrong
	;;
	mov	cr.itir = r25
	;;
(p10)	itc.i	r24
	;;
(p11)	itc.d	r24
	;;
1:	DONE
END(linear_table_miss)

// The walker found nothing, or (with the short format) gave up.
ENTRY(instruction_miss)
	mov	r16 = cr.ifa
	movl	r17 = hashed_table_in_use
	;;
	ld4	r17 = [r17]
	;;
	cmp.ne	p12, p0 = r0, r17
	;;
	WALK
	PREPARE
	TO_C(p6, 0x0400)
	mov	cr.itir = r25
	;;
	itc.i	r24
(p12)	br.cond.sptk.few refill_hashed
	;;
	DONE
END(instruction_miss)

ENTRY(data_miss)
	mov	r16 = cr.ifa
	movl	r17 = hashed_table_in_use
	;;
	ld4	r17 = [r17]
	;;
	cmp.ne	p12, p0 = r0, r17
	;;
	WALK
	PREPARE
	TO_C(p6, 0x0800)
	mov	cr.itir = r25
	;;
	itc.d	r24
(p12)	br.cond.sptk.few refill_hashed
	;;
	DONE
END(data_miss)

// Copies the entry r24 with ITIR r25 into the hashed table, in place of what is there: the table is a cache of the
// page table, so nothing is lost. The tag is made invalid while the entry changes.
ENTRY(refill_hashed)
	thash	r17 = r16
	ttag	r19 = r16
	ssm	PSR_DT
	movl	r20 = 1 << 63
	;;
	adds	r21 = 16, r17
	adds	r22 = 8, r17
	srlz.d
	;;
	st8	[r21] = r20
	;;
	st8	[r17] = r24
	st8	[r22] = r25
	;;
	st8.rel	[r21] = r19
	DONE
END(refill_hashed)

// The walker is off, or the region is the kernel's.
ENTRY(instruction_miss_without_walker)
	mov	r16 = cr.ifa
	movl	r17 = hashed_table_in_use
	;;
	ld4	r17 = [r17]
	shr.u	r19 = r16, REGION_SHIFT
	;;
	cmp.le	p6, p0 = USER_REGIONS, r19
	cmp.ne	p12, p0 = r0, r17
	;;
	TO_C(p6, 0x0c00)
(p12)	br.cond.spnt.few 2f
	;;
	thash	r18 = r16
	mov	r28 = b0
	movl	r29 = 1f
	mov	r26 = cr.isr				// which a nested miss overwrites
	;;
	ld8	r24 = [r18]				// through the linear table; may go to nested_miss
	;;
1:	mov	b0 = r28
	PREPARE
	TO_C(p6, 0x0c00)
	mov	cr.itir = r25
	;;
	itc.i	r24
	;;
	DONE
2:	thash	r18 = r16				// the hashed table by software
	ttag	r19 = r16
	;;
	adds	r20 = 16, r18
	adds	r21 = 8, r18
	;;
	ld8	r20 = [r20]
	ld8	r24 = [r18]
	ld8	r25 = [r21]
	;;
	cmp.ne	p6, p0 = r19, r20
(p6)	br.cond.spnt.many instruction_miss
	;;
	mov	cr.itir = r25
	;;
	itc.i	r24
	;;
	DONE
END(instruction_miss_without_walker)

ENTRY(data_miss_without_walker)
	mov	r16 = cr.ifa
	movl	r17 = hashed_table_in_use
	;;
	ld4	r17 = [r17]
	shr.u	r19 = r16, REGION_SHIFT
	;;
	cmp.le	p6, p0 = USER_REGIONS, r19
	cmp.ne	p12, p0 = r0, r17
(p6)	br.cond.spnt.few physical_miss
	;;
(p12)	br.cond.spnt.few 2f
	;;
	thash	r18 = r16
	mov	r28 = b0
	movl	r29 = 1f
	mov	r26 = cr.isr				// which a nested miss overwrites
	;;
	ld8	r24 = [r18]				// through the linear table; may go to nested_miss
	;;
1:	mov	b0 = r28
	PREPARE
	TO_C(p6, 0x1000)
	mov	cr.itir = r25
	;;
	itc.d	r24
	;;
	DONE
2:	thash	r18 = r16				// the hashed table by software
	ttag	r19 = r16
	;;
	adds	r20 = 16, r18
	adds	r21 = 8, r18
	;;
	ld8	r20 = [r20]
	ld8	r24 = [r18]
	ld8	r25 = [r21]
	;;
	cmp.ne	p6, p0 = r19, r20
(p6)	br.cond.spnt.many data_miss
	;;
	mov	cr.itir = r25
	;;
	itc.d	r24
	;;
	DONE
END(data_miss_without_walker)

// Regions 6 and 7 are physical memory: the address is the translation, in granules, with protection key 0.
physical_miss:
	cmp.eq	p7, p0 = REGION_KERNEL, r19
	cmp.eq	p8, p0 = REGION_UNCACHED, r19
	movl	r20 = PTE_FRAME
	movl	r21 = PTE_KERNEL
	;;
	cmp.eq	p6, p0 = REGION_PINNED, r19
	and	r20 = r16, r20
	;;
	TO_C(p6, 0x1000)
	or	r20 = r20, r21
	;;
(p8)	or	r20 = PTE_UNCACHED, r20
	mov	r21 = GRANULE_SHIFT << 2
	;;
	mov	cr.itir = r21
	;;
	itc.d	r20
	;;
	DONE

// A miss on the linear table while a miss was being handled: the interruption registers still describe the first one, but for
// cr.isr, which r26 has. Walks for r16 in physical mode and goes on at r29 with the entry in r24; r28 holds b0 meanwhile.
ENTRY(nested_miss)
	mov	cr.isr = r26
	mov	b0 = r29
	WALK
	br.sptk.many b0
	;;
END(nested_miss)

// A page that is not present: a superpage of a short-format table, or something for C.
ENTRY(page_not_present)
	mov	r16 = cr.ifa
	mov	r26 = cr.isr
	mov	r17 = PAGE_SHIFT << 2
	;;
	ptc.l	r16, r17				// the TLB may hold the entry that is not present
	;;
	WALK
	tbit.nz	p10, p11 = r26, 32
	tbit.z	p6, p0 = r24, PTE_SOFTWARE_BIT
	;;
	TO_C(p6, 0x5000)
	PREPARE
	mov	cr.itir = r25
	;;
(p10)	itc.i	r24
	;;
(p11)	itc.d	r24
	;;
	DONE
END(page_not_present)
