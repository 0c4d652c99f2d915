/* What of EFI 1.10 the application uses: tables and protocols as memory has them. Services are called by function
   descriptors, as C calls functions on IA-64; they are declared without their parameters' types where one has many. */
#ifndef EFI_H
#define EFI_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef u64 status;
typedef u64 handle;
typedef u64 event;

#define ERROR(code) (1ul << 63 | (code))
#define INVALID_PARAMETER ERROR(2)
#define UNSUPPORTED ERROR(3)
#define BAD_BUFFER_SIZE ERROR(4)
#define BUFFER_TOO_SMALL ERROR(5)
#define NOT_READY ERROR(6)
#define WRITE_PROTECTED ERROR(8)
#define OUT_OF_RESOURCES ERROR(9)
#define MEDIA_CHANGED ERROR(13)
#define NOT_FOUND ERROR(14)
#define ACCESS_DENIED ERROR(15)
#define ALREADY_STARTED ERROR(20)

struct guid {
    u32 a;
    u16 b, c;
    u8 d[8];
};

struct header {
    u64 signature;
    u32 revision, size, sum, reserved;
};

struct descriptor {
    u32 type, padding;
    u64 start, virtual_start, pages, attributes, reserved;
};

typedef void notification(event, void *);

struct boot_services {
    struct header header;
    u64 (*raise_tpl)(u64);
    void (*restore_tpl)(u64);
    status (*allocate_pages)(u32 how, u32 type, u64 pages, u64 *address);
    status (*free_pages)(u64 address, u64 pages);
    status (*get_memory_map)(u64 *size, void *map, u64 *key, u64 *step, u32 *version);
    status (*allocate_pool)(u32 type, u64 size, void **at);
    status (*free_pool)(void *at);
    status (*create_event)(u32 type, u64 tpl, notification *, void *context, event *);
    status (*set_timer)(event, u32 how, u64 units);
    status (*wait_for_event)(u64 count, event *, u64 *index);
    status (*signal_event)(event);
    status (*close_event)(event);
    status (*check_event)(event);
    status (*install_protocol)(handle *, const struct guid *, u32 type, void *);
    status (*reinstall_protocol)(handle, const struct guid *, void *, void *);
    status (*uninstall_protocol)(handle, const struct guid *, void *);
    status (*handle_protocol)(handle, const struct guid *, void *);
    void *reserved;
    status (*register_protocol_notify)(const struct guid *, event, void **key);
    status (*locate_handle)(u32 how, const struct guid *, void *key, u64 *size, handle *);
    status (*locate_device_path)(const struct guid *, void **path, handle *);
    status (*install_configuration_table)(const struct guid *, void *);
    status (*load_image)(u8 policy, handle parent, void *path, const void *source, u64 size, handle *);
    status (*start_image)(handle, u64 *size, u16 **data);
    status (*exit)(handle, status, u64 size, u16 *data);
    status (*unload_image)(handle);
    status (*exit_boot_services)(handle, u64 key);
    status (*get_next_monotonic_count)(u64 *);
    status (*stall)(u64 microseconds);
    status (*set_watchdog_timer)(u64 seconds, u64 code, u64 size, u16 *data);
    status (*connect_controller)(handle, handle *, void *, u8);
    status (*disconnect_controller)(handle, handle, handle);
    status (*open_protocol)(handle, const struct guid *, void *, handle agent, handle controller, u32 attributes);
    status (*close_protocol)(handle, const struct guid *, handle agent, handle controller);
    status (*open_protocol_information)(handle, const struct guid *, void *, u64 *count);
    status (*protocols_per_handle)(handle, struct guid ***, u64 *count);
    status (*locate_handle_buffer)(u32 how, const struct guid *, void *key, u64 *count, handle **);
    status (*locate_protocol)(const struct guid *, void *key, void *);
    status (*install_multiple)(handle *, ...);
    status (*uninstall_multiple)(handle, ...);
    status (*calculate_crc32)(const void *, u64 size, u32 *);
    void (*copy_mem)(void *, const void *, u64 size);
    void (*set_mem)(void *, u64 size, u8);
};

struct runtime_services {
    struct header header;
    status (*get_time)(void *, void *);
    void *set_time, *get_wakeup, *set_wakeup, *set_virtual_address_map, *convert_pointer;
    status (*get_variable)(const u16 *, const struct guid *, u32 *, u64 *size, void *);
    status (*get_next_variable)(u64 *size, u16 *, struct guid *);
    status (*set_variable)(const u16 *, const struct guid *, u32, u64 size, const void *);
    void *get_next_high_monotonic_count;
    void (*reset_system)(u32 how, status, u64 size, void *);
};

struct text_output {
    status (*reset)(struct text_output *, u8);
    status (*output_string)(struct text_output *, const u16 *);
    status (*test_string)(struct text_output *, const u16 *);
    status (*query_mode)(struct text_output *, u64 mode, u64 *columns, u64 *rows);
    status (*set_mode)(struct text_output *, u64 mode);
    status (*set_attribute)(struct text_output *, u64);
    status (*clear_screen)(struct text_output *);
    status (*set_cursor_position)(struct text_output *, u64 column, u64 row);
    status (*enable_cursor)(struct text_output *, u8);
    struct {
        int max, mode, attribute, column, row;
        u8 visible;
    } *mode;
};

struct key {
    u16 scan, character;
};

struct text_input {
    status (*reset)(struct text_input *, u8);
    status (*read_key_stroke)(struct text_input *, struct key *);
    event wait_for_key;
};

struct system_table {
    struct header header;
    u16 *vendor;
    u32 revision, padding;
    handle console_in;
    struct text_input *input;
    handle console_out;
    struct text_output *output;
    handle console_error;
    struct text_output *error;
    struct runtime_services *runtime;
    struct boot_services *boot;
    u64 tables;
    struct {
        struct guid guid;
        void *table;
    } *table;
};

struct loaded_image {
    u32 revision, padding;
    handle parent;
    struct system_table *system_table;
    handle device;
    void *path, *reserved;
    u32 options_size, padding2;
    u16 *options;
    u8 *base;
    u64 size;
    u32 code_type, data_type;
    status (*unload)(handle);
};

struct media {
    u32 id;
    u8 removable, present, partition, read_only, caching, padding[3];
    u32 block_size, alignment, padding2;
    u64 last_block;
};

struct block_io {
    u64 revision;
    struct media *media;
    status (*reset)(struct block_io *, u8);
    status (*read)(struct block_io *, u32 medium, u64 block, u64 size, void *);
    status (*write)(struct block_io *, u32 medium, u64 block, u64 size, const void *);
    status (*flush)(struct block_io *);
};

struct disk_io {
    u64 revision;
    status (*read)(struct disk_io *, u32 medium, u64 start, u64 size, void *);
    status (*write)(struct disk_io *, u32 medium, u64 start, u64 size, const void *);
};

struct file {
    u64 revision;
    status (*open)(struct file *, struct file **, const u16 *, u64 mode, u64 attributes);
    status (*close)(struct file *);
    status (*delete)(struct file *);
    status (*read)(struct file *, u64 *size, void *);
    status (*write)(struct file *, u64 *size, const void *);
    status (*get_position)(struct file *, u64 *);
    status (*set_position)(struct file *, u64);
    status (*get_info)(struct file *, const struct guid *, u64 *size, void *);
    status (*set_info)(struct file *, const struct guid *, u64 size, const void *);
    status (*flush)(struct file *);
};

struct file_info {
    u64 info_size, size, physical_size;
    u8 times[3][16];
    u64 attributes;
    u16 name[64];
};

struct file_system {
    u64 revision;
    status (*open_volume)(struct file_system *, struct file **);
};

#endif
