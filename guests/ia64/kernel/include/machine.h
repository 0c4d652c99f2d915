/* Instructions that C has no words for, and the hypercalls of the machine (docs/src/itanium/machine.md). */

#ifndef MACHINE_H
#define MACHINE_H

#include <stddef.h>
#include <stdint.h>

#include "layout.h"

#define control_register(name) \
    static inline uint64_t read_cr_##name(void) \
    { \
        uint64_t value; \
        __asm__ volatile("mov %0 = cr." #name : "=r"(value)); \
        return value; \
    } \
    static inline void write_cr_##name(uint64_t value) \
    { \
        __asm__ volatile("mov cr." #name " = %0 ;; srlz.d ;;" ::"r"(value) : "memory"); \
    }

control_register(pta)
control_register(itm)
control_register(itv)
control_register(tpr)
control_register(eoi)
control_register(lid)
control_register(ifa)
control_register(itir)
#undef control_register

/* Accepts the interrupt of the highest priority. */
static inline uint64_t accept_interrupt(void)
{
    uint64_t vector;
    __asm__ volatile("mov %0 = cr.ivr ;; srlz.d ;;" : "=r"(vector)::"memory");
    return vector & 0xff;
}

/* The five regions of a program, all at once: nothing may be between these moves but themselves. */
static inline void write_region_registers(uint64_t rr0, uint64_t rr1, uint64_t rr2, uint64_t rr3, uint64_t rr4)
{
    __asm__ volatile(";; mov rr[%0] = %5 ;; mov rr[%1] = %6 ;; mov rr[%2] = %7 ;; mov rr[%3] = %8 ;; mov rr[%4] = %9 ;; srlz.d ;;"
                     ::"r"(0UL), "r"(1UL << REGION_SHIFT), "r"(2UL << REGION_SHIFT), "r"(3UL << REGION_SHIFT),
                     "r"(4UL << REGION_SHIFT), "r"(rr0), "r"(rr1), "r"(rr2), "r"(rr3), "r"(rr4)
                     : "memory");
}

static inline void write_protection_key_register(uint64_t number, uint64_t value)
{
    __asm__ volatile("mov pkr[%0] = %1 ;; srlz.d ;;" ::"r"(number), "r"(value) : "memory");
}

static inline uint64_t interval_time(void)
{
    uint64_t value;
    __asm__ volatile("mov %0 = ar.itc" : "=r"(value));
    return value;
}

static inline void set_page_table(uint64_t directory)
{
    __asm__ volatile("mov ar.k7 = %0" ::"r"(directory));
}

/* Turns PSR bits below 2^24 on or off. */
#define set_status(bits) __asm__ volatile("ssm %0 ;; srlz.i ;;" ::"i"(bits) : "memory")
#define reset_status(bits) __asm__ volatile("rsm %0 ;; srlz.i ;;" ::"i"(bits) : "memory")

static inline uint64_t interrupts_off(void)
{
    uint64_t status;
    __asm__ volatile("mov %0 = psr ;; rsm %1 ;;" : "=r"(status) : "i"(PSR_I) : "memory");
    return status & PSR_I;
}

static inline void interrupts_restore(uint64_t saved)
{
    if (saved)
        __asm__ volatile("ssm %0 ;; srlz.d ;;" ::"i"(PSR_I) : "memory");
}

/* Puts a translation into a translation register; the caller has turned PSR.ic off. */
static inline void pin_data(uint64_t number, uint64_t address, uint64_t entry, uint64_t size_log2)
{
    write_cr_ifa(address);
    write_cr_itir(size_log2 << 2);
    __asm__ volatile(";; itr.d dtr[%0] = %1 ;; srlz.d ;;" ::"r"(number), "r"(entry) : "memory");
}

/* Purges a page of the current address space, on this CPU or on all. */
static inline void purge_local(uint64_t address, uint64_t size_log2)
{
    __asm__ volatile(";; ptc.l %0, %1 ;; srlz.i ;;" ::"r"(address), "r"(size_log2 << 2) : "memory");
}

static inline void purge_global(uint64_t address, uint64_t size_log2)
{
    __asm__ volatile(";; ptc.ga %0, %1 ;; srlz.i ;;" ::"r"(address), "r"(size_log2 << 2) : "memory");
}

static inline uint64_t *hashed_entry(uint64_t address)
{
    uint64_t entry;
    __asm__ volatile("thash %0 = %1" : "=r"(entry) : "r"(address));
    return (uint64_t *)entry;
}

static inline uint64_t hashed_tag(uint64_t address)
{
    uint64_t tag;
    __asm__ volatile("ttag %0 = %1" : "=r"(tag) : "r"(address));
    return tag;
}

/* A word of a program's memory, whose address was checked (user_range): nonzero if it cannot be reached. The fault goes on
   behind the access, as the table of exceptions says (interruption.c), with r8 set. */
#define USER_ACCESS(instruction) \
    "[1:]	" instruction "\n[2:]\n	.section .exceptions, \"a\"\n	data8 1b, 2b\n	.previous\n"

static inline long put_user(uint64_t address, uint64_t value)
{
    register long failed __asm__("r8") = 0;
    __asm__ volatile(USER_ACCESS("st8 [%1] = %2") : "+r"(failed) : "r"(address), "r"(value) : "memory");
    return failed;
}

static inline long put_user_half(uint64_t address, uint32_t value)
{
    register long failed __asm__("r8") = 0;
    __asm__ volatile(USER_ACCESS("st4 [%1] = %2") : "+r"(failed) : "r"(address), "r"(value) : "memory");
    return failed;
}

static inline long get_user(uint64_t address, uint64_t *value)
{
    register long failed __asm__("r8") = 0;
    uint64_t loaded = 0;
    __asm__ volatile(USER_ACCESS("ld8 %1 = [%2]") : "+r"(failed), "+r"(loaded) : "r"(address) : "memory");
    *value = loaded;
    return failed;
}

/* For NaT bits, whose place in ar.unat is that of bits 8 to 3 of an address. */
static inline uint64_t rotate_right(uint64_t bits, uint64_t by)
{
    return by & 63 ? bits >> (by & 63) | bits << (64 - (by & 63)) : bits;
}

static inline void relax(void)
{
    __asm__ volatile("hint @pause" ::: "memory");
}

/* The functions of the machine, those of a monitor alone (docs/src/vmm/monitor.md), and the one that this kernel's experiments
   add: a mark for the host to take a reading at. */
enum hypercall {
    HYPERCALL_EXIT = 0,
    HYPERCALL_WAIT_FOR_INTERRUPT = 3,
    HYPERCALL_PUT_BYTES = 4,
    HYPERCALL_PARAMETERS = 6,
    HYPERCALL_START = 8,
    HYPERCALL_DUMP = 10,
    HYPERCALL_REGISTER_PAGE = 0x40,
    HYPERCALL_SUBMIT = 0x42,
    HYPERCALL_REGISTER_INTERFACE = 0x43,
    HYPERCALL_MARK = 0x100,
};

static inline uint64_t hypercall(enum hypercall function, uint64_t first, uint64_t second, uint64_t third)
{
    register uint64_t number __asm__("r15") = function;
    register uint64_t r8 __asm__("r8") = first;
    register uint64_t r9 __asm__("r9") = second;
    register uint64_t r10 __asm__("r10") = third;
    __asm__ volatile(";; break.m %4 ;;" : "+r"(r8), "+r"(r9), "+r"(r10) : "r"(number), "i"(BREAK_HYPERCALL) : "memory", "r11");
    return r8;
}

static inline uint64_t physical(const void *address)
{
    return (uint64_t)address - KERNEL_BASE;
}

static inline void *cached(uint64_t address)
{
    return (void *)(address + KERNEL_BASE);
}

#endif
