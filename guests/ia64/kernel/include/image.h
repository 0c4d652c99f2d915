/* The programs inside the kernel's image (images.S), and as much of ELF as it takes to map one. */

#ifndef IMAGE_H
#define IMAGE_H

#include <stdint.h>

struct program_image {
    const char *name;
    const uint8_t *start, *end;
};

/* In the order of guests/ia64/build; a null name ends it. */
extern const struct program_image program_images[];

enum { ELF_MACHINE_IA64 = 50, ELF_LOAD = 1, ELF_EXECUTABLE = 1, ELF_WRITABLE = 2 };

struct elf_header {
    uint8_t identification[16];
    uint16_t type, machine;
    uint32_t version;
    uint64_t entry, segments, sections;
    uint32_t flags;
    uint16_t header_size, segment_size, segment_count;
};

struct elf_segment {
    uint32_t type, flags;
    uint64_t offset, address, physical_address, file_size, memory_size, alignment;
};


#endif
