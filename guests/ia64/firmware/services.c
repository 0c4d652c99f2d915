/* Tries every boot service and protocol of the firmware and checks what it answers; says how many checks held, and
   switches the machine off. It starts itself: the copy that is started with the option "child" ends in several ways. */
#include "efi.h"

static struct system_table *system;
static struct boot_services *boot;
static handle self;
static unsigned checks, failures;

static const struct guid LOADED_IMAGE = {0x5b1b31a1, 0x9562, 0x11d2, {0x8e, 0x3f, 0, 0xa0, 0xc9, 0x69, 0x72, 0x3b}};
static const struct guid DEVICE_PATH = {0x09576e91, 0x6d3f, 0x11d2, {0x8e, 0x39, 0, 0xa0, 0xc9, 0x69, 0x72, 0x3b}};
static const struct guid BLOCK_IO = {0x964e5b21, 0x6459, 0x11d2, {0x8e, 0x39, 0, 0xa0, 0xc9, 0x69, 0x72, 0x3b}};
static const struct guid DISK_IO = {0xce345171, 0xba0b, 0x11d2, {0x8e, 0x4f, 0, 0xa0, 0xc9, 0x69, 0x72, 0x3b}};
static const struct guid FILE_SYSTEM = {0x964e5b22, 0x6459, 0x11d2, {0x8e, 0x39, 0, 0xa0, 0xc9, 0x69, 0x72, 0x3b}};
static const struct guid FILE_INFO = {0x09576e92, 0x6d3f, 0x11d2, {0x8e, 0x39, 0, 0xa0, 0xc9, 0x69, 0x72, 0x3b}};
static const struct guid OWN = {0x12345678, 0x1234, 0x5678, {1, 2, 3, 4, 5, 6, 7, 8}};
static const struct guid OTHER = {0x12345679, 0x1234, 0x5678, {1, 2, 3, 4, 5, 6, 7, 8}};
static const struct guid NOBODYS = {0x1234567a, 0x1234, 0x5678, {1, 2, 3, 4, 5, 6, 7, 8}};

enum { LOADER_CODE = 1, LOADER_DATA = 2, BOOT_DATA = 4, FREE = 7 };

static void print(const char *text)
{
    u16 wide[128];
    unsigned length = 0;
    for (; *text && length < 126; text++) {
        if (*text == '\n')
            wide[length++] = '\r';
        wide[length++] = (u8)*text;
    }
    wide[length] = 0;
    system->output->output_string(system->output, wide);
}

static void print_number(u64 value)
{
    char digits[24], *at = digits + 23;
    *at = 0;
    do
        *--at = '0' + value % 10;
    while (value /= 10);
    print(at);
}

static void check_line(int holds, unsigned line)
{
    checks++;
    if (holds)
        return;
    failures++;
    print("services.c:");
    print_number(line);
    print(" does not hold\n");
}

#define CHECK(holds) check_line(holds, __LINE__)

static int same(const void *one, const void *other, u64 size)
{
    const u8 *a = one, *b = other;
    while (size--)
        if (*a++ != *b++)
            return 0;
    return 1;
}

void *memcpy(void *to, const void *from, u64 size)
{
    u8 *at = to;
    const u8 *source = from;
    while (size--)
        *at++ = *source++;
    return to;
}

static void memory(void)
{
    u64 size = 0, key, step, other_key;
    u32 version;
    static u8 map[32768];
    CHECK(boot->get_memory_map(&size, map, &key, &step, &version) == BUFFER_TOO_SMALL && size > 0);
    size = sizeof map;
    CHECK(boot->get_memory_map(&size, map, &key, &step, &version) == 0);
    CHECK(version == 1 && step >= sizeof(struct descriptor) && size % step == 0);
    u64 end = 0, ascending = 1, own = 0;
    for (u64 at = 0; at < size; at += step) {
        struct descriptor *region = (void *)(map + at);
        ascending &= region->start >= end && region->pages > 0;
        end = region->start + region->pages * 4096;
        if ((u64)&system >= region->start && (u64)&system < end)
            own = region->type;
    }
    CHECK(ascending && own == LOADER_CODE);

    u64 any, fixed, low = 0x1000000;
    CHECK(boot->allocate_pages(0, LOADER_DATA, 3, &any) == 0 && any % 4096 == 0);
    boot->set_mem((void *)any, 3 * 4096, 0x5a);
    CHECK(*(u8 *)any == 0x5a && ((u8 *)any)[3 * 4096 - 1] == 0x5a);
    CHECK(boot->allocate_pages(1, LOADER_DATA, 2, &low) == 0 && low + 8192 <= 0x1000001);
    fixed = any;
    CHECK(boot->allocate_pages(2, LOADER_DATA, 1, &fixed) == NOT_FOUND);
    CHECK(boot->free_pages(any, 3) == 0);
    CHECK(boot->free_pages(any, 3) == NOT_FOUND);
    CHECK(boot->allocate_pages(2, 0x80000001, 1, &fixed) == 0 && fixed == any);
    CHECK(boot->allocate_pages(0, FREE, 1, &any) == INVALID_PARAMETER);
    CHECK(boot->allocate_pages(3, LOADER_DATA, 1, &any) == INVALID_PARAMETER);
    CHECK(boot->allocate_pages(0, LOADER_DATA, 1ul << 60, &any) == OUT_OF_RESOURCES);
    size = sizeof map;
    CHECK(boot->get_memory_map(&size, map, &other_key, &step, &version) == 0 && other_key != key);
    CHECK(boot->free_pages(fixed, 1) == 0 && boot->free_pages(low, 2) == 0);

    void *pieces[50];
    for (int index = 0; index < 50; index++) {
        CHECK(boot->allocate_pool(LOADER_DATA, 1 + index * 377, &pieces[index]) == 0);
        CHECK((u64)pieces[index] % 8 == 0);
        boot->set_mem(pieces[index], 1 + index * 377, index);
    }
    int whole = 1;
    for (int index = 0; index < 50; index++)
        for (int at = 0; at < 1 + index * 377; at++)
            whole &= ((u8 *)pieces[index])[at] == index;
    CHECK(whole);
    for (int index = 0; index < 50; index++)
        CHECK(boot->free_pool(pieces[index]) == 0);
    CHECK(boot->free_pool(pieces[3]) == INVALID_PARAMETER);
    CHECK(boot->free_pool(map) == INVALID_PARAMETER);

    u8 bytes[9] = "123456789";
    u32 sum;
    CHECK(boot->calculate_crc32(bytes, 9, &sum) == 0 && sum == 0xcbf43926);
    boot->copy_mem(bytes + 2, bytes, 6);
    CHECK(same(bytes, "121234569", 9));
    CHECK(boot->calculate_crc32(0, 9, &sum) == INVALID_PARAMETER);
    u32 own_sum = system->header.sum;
    struct system_table copy = *system;
    copy.header.sum = 0;
    CHECK(boot->calculate_crc32(&copy, copy.header.size, &sum) == 0 && sum == own_sum);
}

static unsigned notified;
static u64 order;

static void count(event event, void *context)
{
    (void)event;
    notified++;
    order = order * 10 + (u64)context;
}

static void ask(event event, void *context)
{
    if (++*(unsigned *)context == 3)
        boot->signal_event(event);
}

static void events(void)
{
    event timer, timers[2], waited, low, high;
    u64 index, before, after;
    CHECK(boot->create_event(1u << 31, 8, 0, 0, &timer) == 0);
    CHECK(boot->check_event(timer) == NOT_READY);
    __asm__ volatile("mov %0=ar.itc" : "=r"(before));
    CHECK(boot->set_timer(timer, 2, 50000) == 0);
    CHECK(boot->wait_for_event(1, &timer, &index) == 0 && index == 0);
    __asm__ volatile("mov %0=ar.itc" : "=r"(after));
    CHECK(after - before >= 5000000 && after - before < 20000000);
    CHECK(boot->check_event(timer) == NOT_READY);
    CHECK(boot->set_timer(timer, 1, 20000) == 0);
    for (int turn = 0; turn < 5; turn++)
        CHECK(boot->wait_for_event(1, &timer, &index) == 0);
    CHECK(boot->set_timer(timer, 0, 0) == 0);
    CHECK(boot->set_timer(timer, 3, 0) == INVALID_PARAMETER);
    CHECK(boot->create_event(1u << 31, 8, 0, 0, &timers[1]) == 0);
    timers[0] = timer;
    boot->set_timer(timers[1], 2, 1000);
    CHECK(boot->wait_for_event(2, timers, &index) == 0 && index == 1);
    CHECK(boot->close_event(timers[1]) == 0 && boot->close_event(timers[1]) == INVALID_PARAMETER);
    CHECK(boot->wait_for_event(2, timers, &index) == INVALID_PARAMETER && index == 1);
    CHECK(boot->close_event(timer) == 0);

    CHECK(boot->create_event(0x200, 8, count, (void *)1, &low) == 0);
    CHECK(boot->create_event(0x200, 16, count, (void *)2, &high) == 0);
    CHECK(boot->signal_event(low) == 0 && notified == 1);
    CHECK(boot->raise_tpl(16) == 4);
    CHECK(boot->signal_event(low) == 0 && boot->signal_event(high) == 0 && notified == 1);
    order = 0;
    boot->restore_tpl(8);
    CHECK(notified == 2 && order == 2);
    boot->restore_tpl(4);
    CHECK(notified == 3 && order == 21);
    CHECK(boot->check_event(low) == INVALID_PARAMETER);
    CHECK(boot->close_event(low) == 0 && boot->close_event(high) == 0);
    CHECK(boot->signal_event(low) == INVALID_PARAMETER);
    CHECK(boot->create_event(0x300, 8, count, 0, &low) == INVALID_PARAMETER);
    CHECK(boot->create_event(0x200, 4, count, 0, &low) == INVALID_PARAMETER);
    CHECK(boot->create_event(0x200, 8, 0, 0, &low) == INVALID_PARAMETER);

    unsigned asked = 0;
    CHECK(boot->create_event(0x100, 8, ask, &asked, &waited) == 0);
    CHECK(boot->check_event(waited) == NOT_READY && asked == 1);
    CHECK(boot->wait_for_event(1, &waited, &index) == 0 && asked == 3);
    CHECK(boot->close_event(waited) == 0);
    notified = 0;
    CHECK(boot->create_event(1u << 31 | 0x200, 8, count, (void *)1, &timer) == 0);
    CHECK(boot->set_timer(timer, 1, 10000) == 0);
    CHECK(boot->stall(10500) == 0);
    CHECK(notified >= 1);
    CHECK(boot->close_event(timer) == 0);
    __asm__ volatile("mov %0=ar.itc" : "=r"(before));
    CHECK(boot->stall(1000) == 0);
    __asm__ volatile("mov %0=ar.itc" : "=r"(after));
    CHECK(after - before >= 1000000);
    u64 first, second;
    CHECK(boot->get_next_monotonic_count(&first) == 0 && boot->get_next_monotonic_count(&second) == 0);
    CHECK(second == first + 1);
    CHECK(boot->set_watchdog_timer(0, 0, 0, 0) == 0);
}

static void protocols(void)
{
    handle one = 0, two = 0, found[4], *buffer;
    void *interface, *key;
    u64 size = sizeof found, number;
    event event;
    notified = 0;
    CHECK(boot->create_event(0x200, 8, count, 0, &event) == 0);
    CHECK(boot->register_protocol_notify(&OWN, event, &key) == 0);
    CHECK(boot->install_protocol(&one, &OWN, 0, &checks) == 0 && one != 0 && notified == 1);
    CHECK(boot->install_protocol(&one, &OWN, 0, &checks) == INVALID_PARAMETER);
    CHECK(boot->install_multiple(&two, &OWN, &failures, &OTHER, 0, 0) == 0 && two != one);
    CHECK(boot->locate_handle(1, 0, key, &size, found) == 0 && size == 8 && found[0] == one);
    CHECK(boot->locate_protocol(&OWN, key, &interface) == 0 && interface == &failures);
    CHECK(boot->locate_protocol(&OWN, key, &interface) == NOT_FOUND && interface == 0);
    size = 8;
    CHECK(boot->locate_handle(2, &OWN, 0, &size, found) == BUFFER_TOO_SMALL && size == 16);
    CHECK(boot->locate_handle(2, &OWN, 0, &size, found) == 0 && found[0] == one && found[1] == two);
    CHECK(boot->locate_handle(2, &NOBODYS, 0, &size, found) == NOT_FOUND);
    CHECK(boot->locate_handle_buffer(0, 0, 0, &number, &buffer) == 0 && number > 4);
    CHECK(boot->free_pool(buffer) == 0);
    CHECK(boot->handle_protocol(one, &OWN, &interface) == 0 && interface == &checks);
    CHECK(boot->handle_protocol(one, &OTHER, &interface) == UNSUPPORTED);
    CHECK(boot->handle_protocol(7, &OTHER, &interface) == INVALID_PARAMETER);
    CHECK(boot->reinstall_protocol(one, &OWN, &checks, &notified) == 0);
    CHECK(boot->handle_protocol(one, &OWN, &interface) == 0 && interface == &notified);
    CHECK(boot->open_protocol(one, &OWN, &interface, self, 0, 0x20) == 0);
    CHECK(boot->open_protocol(one, &OWN, &interface, two, 0, 0x20) == ACCESS_DENIED);
    CHECK(boot->open_protocol(one, &OWN, &interface, self, 0, 0x20) == ALREADY_STARTED);
    CHECK(boot->open_protocol(one, &OWN, 0, self, 0, 4) == 0);
    struct {
        handle agent, controller;
        u32 attributes, count;
    } *opened;
    CHECK(boot->open_protocol_information(one, &OWN, &opened, &number) == 0 && number == 2);
    CHECK(opened[0].agent == self && opened[0].attributes == 0x20 && opened[0].count == 1);
    CHECK(boot->free_pool(opened) == 0);
    CHECK(boot->close_protocol(one, &OWN, self, 0) == 0);
    CHECK(boot->close_protocol(one, &OWN, self, 0) == NOT_FOUND);
    struct guid **guids;
    CHECK(boot->protocols_per_handle(two, &guids, &number) == 0 && number == 2);
    CHECK(same(guids[0], &OWN, 16) && same(guids[1], &OTHER, 16));
    CHECK(boot->free_pool(guids) == 0);
    CHECK(boot->uninstall_multiple(two, &OWN, &failures, &NOBODYS, 0, 0) == INVALID_PARAMETER);
    CHECK(boot->uninstall_multiple(two, &OWN, &failures, &OTHER, 0, 0) == 0);
    CHECK(boot->handle_protocol(two, &OWN, &interface) == INVALID_PARAMETER);
    CHECK(boot->uninstall_protocol(one, &OWN, &checks) == NOT_FOUND);
    CHECK(boot->uninstall_protocol(one, &OWN, &notified) == 0);
    CHECK(boot->close_event(event) == 0);
    CHECK(boot->connect_controller(self, 0, 0, 1) == 0);

    u64 before = system->tables;
    CHECK(boot->install_configuration_table(&OWN, &checks) == 0 && system->tables == before + 1);
    CHECK(same(&system->table[before].guid, &OWN, 16) && system->table[before].table == &checks);
    CHECK(boot->install_configuration_table(&OWN, 0) == 0 && system->tables == before);
    CHECK(boot->install_configuration_table(&OWN, 0) == NOT_FOUND);
}

static void console(void)
{
    struct text_output *output = system->output;
    struct key key;
    u64 columns, rows, index;
    CHECK(output->query_mode(output, 0, &columns, &rows) == 0 && columns == 80 && rows == 25);
    CHECK(output->query_mode(output, 1, &columns, &rows) == UNSUPPORTED);
    CHECK(output->set_mode(output, 0) == 0 && output->set_mode(output, 9) == UNSUPPORTED);
    CHECK(output->set_cursor_position(output, 5, 7) == 0);
    CHECK(output->mode->column == 5 && output->mode->row == 7);
    CHECK(output->set_cursor_position(output, 80, 0) == UNSUPPORTED);
    CHECK(output->set_attribute(output, 0x1e) == 0 && output->mode->attribute == 0x1e);
    CHECK(output->set_attribute(output, 7) == 0 && output->enable_cursor(output, 1) == 0);
    CHECK(output->clear_screen(output) == 0 && output->mode->column == 0 && output->mode->row == 0);
    CHECK(output->test_string(output, (const u16[]){'a', 0}) == 0);
    print("type xy\n");
    CHECK(boot->wait_for_event(1, &system->input->wait_for_key, &index) == 0);
    CHECK(system->input->read_key_stroke(system->input, &key) == 0 && key.character == 'x' && key.scan == 0);
    while (system->input->read_key_stroke(system->input, &key) == NOT_READY)
        ;
    CHECK(key.character == 'y');
    CHECK(system->input->read_key_stroke(system->input, &key) == NOT_READY);
}

static void disks(struct loaded_image *image)
{
    struct block_io *blocks;
    struct disk_io *bytes;
    static u8 block[512], other[512], part[64];
    CHECK(boot->handle_protocol(image->device, &BLOCK_IO, &blocks) == 0);
    CHECK(boot->handle_protocol(image->device, &DISK_IO, &bytes) == 0);
    u32 medium = blocks->media->id;
    u64 last = blocks->media->last_block;
    CHECK(blocks->media->block_size == 512 && blocks->media->present && blocks->media->partition);
    CHECK(blocks->read(blocks, medium, 0, 512, block) == 0 && block[510] == 0x55 && block[511] == 0xaa);
    CHECK(blocks->read(blocks, medium + 1, 0, 512, block) == MEDIA_CHANGED);
    CHECK(blocks->read(blocks, medium, 0, 511, block) == BAD_BUFFER_SIZE);
    CHECK(blocks->read(blocks, medium, last, 1024, block) == INVALID_PARAMETER);
    CHECK(blocks->read(blocks, medium, ~0ul, 512, block) == INVALID_PARAMETER);
    CHECK(bytes->read(bytes, medium, 500, 12, part) == 0 && same(part, block + 500, 12));
    CHECK(bytes->read(bytes, medium, last * 512 + 500, 13, part) == INVALID_PARAMETER);
    CHECK(blocks->read(blocks, medium, last, 512, other) == 0);
    CHECK(bytes->write(bytes, medium, last * 512 + 100, 5, "bytes") == 0);
    CHECK(blocks->read(blocks, medium, last, 512, block) == 0 && same(block + 100, "bytes", 5));
    CHECK(blocks->write(blocks, medium, last, 512, other) == 0 && blocks->flush(blocks) == 0);
    CHECK(bytes->read(bytes, medium, last * 512, 512, block) == 0 && same(block, other, 512));
    CHECK(blocks->reset(blocks, 0) == 0);

    void *path;
    handle nearest;
    CHECK(boot->handle_protocol(image->device, &DEVICE_PATH, &path) == 0);
    CHECK(boot->locate_device_path(&BLOCK_IO, &path, &nearest) == 0 && nearest == image->device);
    CHECK(*(u8 *)path == 0x7f);
}

static void files(struct loaded_image *image)
{
    static const u16 name[] = {'\\', 'n', 'e', 'w', ' ', 'f', 'o', 'l', 'd', 'e', 'r', 0};
    static const u16 inner[] = {'s', 'o', 'm', 'e', ' ', 'f', 'i', 'l', 'e', '.', 't', 'e', 'x', 't', 0};
    static const u16 path[] = {'\\', 'N', 'E', 'W', ' ', 'F', 'O', 'L', 'D', 'E', 'R', '\\', 'S', 'o', 'm',
                               'e',  ' ', 'f', 'i', 'l', 'e', '.', 't', 'e', 'x', 't', 0};
    static const u16 up[] = {'.', '.', 0};
    static u8 text[5000], back[6000];
    struct file_system *system;
    struct file *root, *folder, *file, *again;
    static struct file_info info;
    u64 size, position;
    CHECK(boot->handle_protocol(image->device, &FILE_SYSTEM, &system) == 0);
    CHECK(system->open_volume(system, &root) == 0);
    CHECK(root->open(root, &folder, name, 1, 0) == NOT_FOUND);
    CHECK(root->open(root, &folder, name, 1ul << 63 | 3, 0x10) == 0);
    CHECK(folder->open(folder, &file, inner, 1ul << 63 | 3, 0) == 0);
    for (unsigned index = 0; index < sizeof text; index++)
        text[index] = index * 7 + index / 251;
    size = sizeof text;
    CHECK(file->write(file, &size, text) == 0 && size == sizeof text);
    CHECK(file->get_position(file, &position) == 0 && position == sizeof text);
    CHECK(file->set_position(file, 0) == 0);
    size = sizeof back;
    CHECK(file->read(file, &size, back) == 0 && size == sizeof text && same(text, back, size));
    CHECK(root->open(root, &again, path, 1, 0) == 0);
    CHECK(again->set_position(again, 4990) == 0);
    size = 100;
    CHECK(again->read(again, &size, back) == 0 && size == 10 && same(text + 4990, back, 10));
    CHECK(again->write(again, &size, back) == ACCESS_DENIED);
    size = 10;
    CHECK(again->get_info(again, &FILE_INFO, &size, &info) == BUFFER_TOO_SMALL);
    CHECK(again->get_info(again, &FILE_INFO, &size, &info) == 0);
    CHECK(info.size == sizeof text && same(info.name, inner, sizeof inner) && !(info.attributes & 0x10));
    info.size = 100;
    CHECK(file->set_info(file, &FILE_INFO, size, &info) == 0);
    CHECK(file->set_position(file, ~0ul) == 0 && file->get_position(file, &position) == 0 && position == 100);
    CHECK(again->close(again) == 0 && again->close(again) == INVALID_PARAMETER);
    unsigned entries = 0;
    for (;;) {
        size = sizeof info;
        CHECK(folder->read(folder, &size, &info) == 0);
        if (!size || ++entries > 9)
            break;
    }
    CHECK(entries == 3);
    CHECK(folder->open(folder, &again, up, 1, 0) == 0 && again->close(again) == 0);
    CHECK(folder->delete(folder) == 2);
    CHECK(file->flush(file) == 0 && file->delete(file) == 0);
    CHECK(root->open(root, &folder, name, 3, 0) == 0 && folder->delete(folder) == 0);
    CHECK(root->open(root, &folder, name, 1, 0) == NOT_FOUND);
    CHECK(root->close(root) == 0);
}

static void variables(void)
{
    static const u16 name[] = {'T', 'r', 'y', 0};
    u32 attributes;
    u8 data[4];
    u64 size = sizeof data;
    CHECK(system->runtime->get_variable(name, &OWN, &attributes, &size, data) == NOT_FOUND);
    CHECK(system->runtime->set_variable(name, &OWN, 7, 3, "abc") == 0);
    CHECK(system->runtime->get_variable(name, &OWN, &attributes, &size, data) == 0 && size == 3);
    CHECK(attributes == 7 && same(data, "abc", 3));
    /* What does not last, and what boot services alone see. */
    CHECK(system->runtime->set_variable(name, &OTHER, 2, 1, "v") == 0);
    CHECK(system->runtime->set_variable(name, &OWN, 7, 0, 0) == 0);
}

static void __attribute__((noinline)) dive(unsigned depth, handle image, struct boot_services *services)
{
    u64 kept[3] = {depth * 3, depth * 5, depth * 7};
    __asm__ volatile("" : "+r"(kept[0]), "+r"(kept[1]), "+r"(kept[2]));
    if (depth == 0)
        services->exit(image, 19, 0, 0);
    else
        dive(depth - 1, image, services);
    __asm__ volatile("" ::"r"(kept[0]), "r"(kept[1]), "r"(kept[2]));
}

/* How a copy of the application ends. */
static status child(u16 how)
{
    static u16 said[] = {'e', 'n', 'd', 0};
    switch (how) {
    case '1':
        return 17;
    case '2':
        boot->exit(self, 18, sizeof said, said);
        return 99;
    default: {
        /* Deep in calls, with the registers of many frames in use. */
        volatile u64 deep[64];
        for (int index = 0; index < 64; index++)
            deep[index] = index;
        dive(100, self, boot);
        return deep[5];
    }
    }
}

static void images(struct loaded_image *image)
{
    struct file_system *files;
    struct file *root, *file;
    struct loaded_image *loaded;
    handle copy, other;
    void *bytes;
    u64 size = 1 << 20, length;
    u16 *said;
    static u16 options[] = {'c', 'h', 'i', 'l', 'd', '1', 0};
    static const u16 name[] = {'\\', 'E', 'F', 'I', '\\', 'B', 'O', 'O', 'T', '\\', 'B', 'O', 'O',
                               'T',  'I', 'A', '6', '4', '.', 'E', 'F', 'I', 0};
    CHECK(boot->handle_protocol(image->device, &FILE_SYSTEM, &files) == 0);
    CHECK(files->open_volume(files, &root) == 0 && root->open(root, &file, name, 1, 0) == 0);
    CHECK(boot->allocate_pool(BOOT_DATA, size, &bytes) == 0);
    CHECK(file->read(file, &size, bytes) == 0 && file->close(file) == 0 && root->close(root) == 0);
    for (u16 turn = 0; turn < 3; turn++) {
        CHECK(boot->load_image(0, self, 0, bytes, size, &copy) == 0);
        CHECK(boot->handle_protocol(copy, &LOADED_IMAGE, &loaded) == 0 && loaded->parent == self);
        options[5] = '1' + turn;
        loaded->options = options;
        loaded->options_size = sizeof options;
        said = 0;
        CHECK(boot->start_image(copy, &length, &said) == 17ul + turn);
        CHECK(turn != 1 || (length == 8 && said[0] == 'e'));
        CHECK(boot->handle_protocol(copy, &LOADED_IMAGE, &loaded) == INVALID_PARAMETER);
    }
    CHECK(boot->load_image(0, self, 0, bytes, size, &copy) == 0);
    CHECK(boot->unload_image(copy) == 0 && boot->unload_image(copy) == INVALID_PARAMETER);
    CHECK(boot->unload_image(self) == ACCESS_DENIED);
    CHECK(boot->start_image(copy, 0, 0) == INVALID_PARAMETER);
    ((u8 *)bytes)[0x44] = 0x64;
    CHECK(boot->load_image(0, self, 0, bytes, size, &other) == UNSUPPORTED);
    CHECK(boot->load_image(0, self, 0, bytes, 100, &other) == UNSUPPORTED);
    CHECK(boot->load_image(0, 5, 0, bytes, size, &other) == INVALID_PARAMETER);
    CHECK(boot->free_pool(bytes) == 0);

    /* By device path: the device's own, then a file. */
    static u8 path[512], file_path[64];
    u8 *device, *at = path;
    CHECK(boot->handle_protocol(image->device, &DEVICE_PATH, &device) == 0);
    while (*device != 0x7f)
        for (u16 count = device[2]; count; count--)
            *at++ = *device++;
    file_path[0] = 4, file_path[1] = 4, file_path[2] = 4 + sizeof name;
    memcpy(file_path + 4, name, sizeof name);
    memcpy(at, file_path, 4 + sizeof name);
    at += 4 + sizeof name;
    at[0] = 0x7f, at[1] = 0xff, at[2] = 4;
    CHECK(boot->load_image(0, self, path, 0, 0, &copy) == 0);
    CHECK(boot->handle_protocol(copy, &LOADED_IMAGE, &loaded) == 0 && loaded->device == image->device);
    CHECK(boot->unload_image(copy) == 0);
    at[-4] = 'X';
    CHECK(boot->load_image(0, self, path, 0, 0, &copy) == NOT_FOUND);
}

/* Pointers to nowhere, and this pointers that are none. */
static void nonsense(void)
{
    void *nowhere = (void *)0x3ff0000000000;
    struct text_output *output = system->output;
    CHECK(boot->get_memory_map(nowhere, 0, 0, 0, 0) == INVALID_PARAMETER);
    CHECK(boot->allocate_pool(LOADER_DATA, 8, nowhere) == INVALID_PARAMETER);
    CHECK(boot->handle_protocol(self, nowhere, nowhere) == INVALID_PARAMETER);
    CHECK(boot->handle_protocol(self, 0, nowhere) == INVALID_PARAMETER);
    CHECK(boot->wait_for_event(1ul << 61, nowhere, nowhere) == INVALID_PARAMETER);
    CHECK(boot->load_image(0, self, nowhere, nowhere, ~0ul, nowhere) != 0);
    CHECK(boot->calculate_crc32(nowhere, ~0ul, nowhere) == INVALID_PARAMETER);
    CHECK(output->output_string(output, nowhere) == INVALID_PARAMETER);
    CHECK(boot->locate_device_path(&BLOCK_IO, nowhere, nowhere) == INVALID_PARAMETER);
    boot->set_mem(nowhere, ~0ul, 0);
    boot->copy_mem(nowhere, &checks, 8);
    struct block_io *blocks;
    CHECK(boot->locate_protocol(&BLOCK_IO, 0, &blocks) == 0);
    CHECK(blocks->read((void *)&checks, 1, 0, 512, nowhere) == INVALID_PARAMETER);
    CHECK(blocks->read(blocks, blocks->media->id, 0, 512, nowhere) == INVALID_PARAMETER);
    CHECK(boot->exit_boot_services(self, ~0ul) == INVALID_PARAMETER);
}

static void leave(void)
{
    static u8 map[32768];
    u64 size = sizeof map, key, step;
    u32 version;
    event leaving;
    notified = 0;
    CHECK(boot->create_event(0x201, 8, count, 0, &leaving) == 0);
    CHECK(boot->get_memory_map(&size, map, &key, &step, &version) == 0);
    print_number(checks + 3);
    print(failures ? " checks, some of which do not hold\n" : " checks hold\n");
    CHECK(boot->exit_boot_services(self, key) == 0);
    CHECK(notified == 1);
    CHECK(system->boot == 0 && system->output == 0);
    /* 2: power off; anything else is a reset, which the test does not take for success. */
    system->runtime->reset_system(failures ? 0 : 2, 0, 0, 0);
}

status main(handle image, struct system_table *table)
{
    struct loaded_image *loaded;
    system = table;
    boot = table->boot;
    self = image;
    CHECK(boot->handle_protocol(image, &LOADED_IMAGE, &loaded) == 0);
    /* `child` and how, alone or as a word behind the name, as shells give it. */
    for (unsigned at = 0; at + 6 <= loaded->options_size / 2; at++)
        if (same(loaded->options + at, (const u16[]){'c', 'h', 'i', 'l', 'd'}, 10))
            return child(loaded->options[at + 5]);
    CHECK(loaded->system_table == table && loaded->code_type == LOADER_CODE && loaded->data_type == LOADER_DATA);
    memory();
    events();
    protocols();
    console();
    disks(loaded);
    files(loaded);
    variables();
    images(loaded);
    nonsense();
    leave();
    return 1;
}
