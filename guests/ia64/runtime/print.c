/* Formatted output, one `write` for each call of `print`. */

#include "runtime.h"

#include <asm/unistd.h>

struct line {
    size_t length;
    char text[1024];
};

static void put(struct line *line, char character)
{
    if (line->length < sizeof line->text)
        line->text[line->length++] = character;
}

static void put_padded(struct line *line, const char *text, size_t length, size_t width, int left)
{
    size_t padding = width > length ? width - length : 0;
    for (size_t i = 0; i < padding && !left; i++)
        put(line, ' ');
    for (size_t i = 0; i < length; i++)
        put(line, text[i]);
    for (size_t i = 0; i < padding && left; i++)
        put(line, ' ');
}

/* Writes the digits of `number` so that they end before `end`; answers where they begin. */
static char *decimal(char *end, unsigned long number)
{
    do {
        *--end = '0' + number % 10;
        number /= 10;
    } while (number);
    return end;
}

static char *hexadecimal(char *end, unsigned long number)
{
    do {
        *--end = "0123456789abcdef"[number & 15];
        number >>= 4;
    } while (number);
    return end;
}

static char *fixed(char *end, double value, int decimals)
{
    double scale = 1;
    for (int i = 0; i < decimals; i++)
        scale *= 10;
    unsigned long whole = (unsigned long)value;
    unsigned long fraction = (unsigned long)((value - (double)whole) * scale + 0.5);
    if (fraction >= (unsigned long)scale) {
        whole++;
        fraction -= (unsigned long)scale;
    }
    char *begin = end;
    if (decimals) {
        char *first = end - decimals;
        begin = decimal(end, fraction);
        while (begin > first)
            *--begin = '0';
        *--begin = '.';
    }
    return decimal(begin, whole);
}

void print_list(const char *format, va_list values)
{
    struct line line = {0};
    for (; *format; format++) {
        if (*format != '%') {
            put(&line, *format);
            continue;
        }
        char number[64], *end = number + sizeof number, *begin = end;
        int left = 0, wide = 0, decimals = 6;
        size_t width = 0;
        if (*++format == '-')
            left = 1, format++;
        for (; *format >= '0' && *format <= '9'; format++)
            width = width * 10 + (*format - '0');
        if (*format == '.')
            decimals = *++format - '0', format++;
        if (*format == 'l')
            wide = 1, format++;
        switch (*format) {
        case 'd': {
            long value = wide ? va_arg(values, long) : va_arg(values, int);
            begin = decimal(end, value < 0 ? -(unsigned long)value : (unsigned long)value);
            if (value < 0)
                *--begin = '-';
            break;
        }
        case 'u':
            begin = decimal(end, wide ? va_arg(values, unsigned long) : va_arg(values, unsigned));
            break;
        case 'x':
            begin = hexadecimal(end, wide ? va_arg(values, unsigned long) : va_arg(values, unsigned));
            break;
        case 'f': {
            double value = va_arg(values, double);
            begin = fixed(end, value < 0 ? -value : value, decimals);
            if (value < 0)
                *--begin = '-';
            break;
        }
        case 'c':
            *--begin = va_arg(values, int);
            break;
        case 's': {
            const char *text = va_arg(values, const char *);
            put_padded(&line, text, strlen(text), width, left);
            continue;
        }
        default:
            *--begin = *format;
        }
        put_padded(&line, begin, end - begin, width, left);
    }
    for (size_t done = 0; done < line.length;) {
        long written = system_call(__NR_write, 1L, line.text + done, line.length - done);
        if (written <= 0)
            leave(2);
        done += written;
    }
}

void print(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    print_list(format, values);
    va_end(values);
}
