/* The console, by hypercall, and the end of the machine when the kernel finds itself wrong.

   `print` knows %d %u %x %s %% and the length `l`. */

#include <stdarg.h>

#include "kernel.h"
#include "text.h"

struct line {
    size_t length;
    char text[512];
};

static void put(struct line *line, char character)
{
    if (line->length < sizeof line->text)
        line->text[line->length++] = character;
}

static void put_number(struct line *line, uint64_t number, unsigned base)
{
    char digits[24];
    int count = 0;
    do
        digits[count++] = "0123456789abcdef"[number % base];
    while (number /= base);
    while (count)
        put(line, digits[--count]);
}

static void format_line(struct line *line, const char *format, va_list values)
{
    for (; *format; format++) {
        if (*format != '%') {
            put(line, *format);
            continue;
        }
        int is_long = *++format == 'l';
        format += is_long;
        if (*format == 's') {
            for (const char *text = va_arg(values, const char *); *text; text++)
                put(line, *text);
        } else if (*format == 'd') {
            long number = is_long ? va_arg(values, long) : va_arg(values, int);
            if (number < 0)
                put(line, '-');
            put_number(line, number < 0 ? -number : number, 10);
        } else if (*format == 'u' || *format == 'x') {
            uint64_t number = is_long ? va_arg(values, uint64_t) : va_arg(values, unsigned);
            put_number(line, number, *format == 'x' ? 16 : 10);
        } else {
            put(line, *format);
        }
    }
}

void console_write(const char *text, size_t bytes)
{
    hypercall(HYPERCALL_PUT_BYTES, physical(text), bytes, 0);
}

void print(const char *format, ...)
{
    struct line line = {0};
    va_list values;
    va_start(values, format);
    format_line(&line, format, values);
    va_end(values);
    console_write(line.text, line.length);
}

void panic(const char *format, ...)
{
    struct line line = {0};
    va_list values;
    va_start(values, format);
    format_line(&line, "kernel: ", values);
    format_line(&line, format, values);
    put(&line, '\n');
    va_end(values);
    console_write(line.text, line.length);
    for (;;)
        hypercall(HYPERCALL_EXIT, 70, 0, 0);
}
