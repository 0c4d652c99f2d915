/* Integer: quicksort with insertion sort of short runs; a branch whose outcome is hard to guess. */

#include "runtime.h"

enum { COUNT = 1 << 14, SHORT_RUN = 12 };

static int64_t values_to_sort[COUNT];

static void insertion_sort(int64_t *first, int64_t *last)
{
    for (int64_t *next = first + 1; next <= last; next++) {
        int64_t value = *next, *hole = next;
        for (; hole > first && hole[-1] > value; hole--)
            *hole = hole[-1];
        *hole = value;
    }
}

static void sort(int64_t *first, int64_t *last)
{
    while (last - first > SHORT_RUN) {
        int64_t pivot = first[(last - first) / 2], *low = first, *high = last;
        while (low <= high) {
            while (*low < pivot)
                low++;
            while (*high > pivot)
                high--;
            if (low <= high) {
                int64_t value = *low;
                *low++ = *high;
                *high-- = value;
            }
        }
        if (high - first < last - low) {
            sort(first, high);
            first = low;
        } else {
            sort(low, last);
            last = high;
        }
    }
    insertion_sort(first, last);
}

int main(int count, char **values)
{
    long rounds = argument(count, values, 20);
    uint64_t state = 1, checksum = 0;
    for (long round = 0; round < rounds; round++) {
        for (int i = 0; i < COUNT; i++)
            values_to_sort[i] = random_next(&state);
        sort(values_to_sort, values_to_sort + COUNT - 1);
        for (int i = 1; i < COUNT; i++) {
            if (values_to_sort[i - 1] > values_to_sort[i])
                leave(1);
            checksum = checksum * 31 + values_to_sort[i];
        }
    }
    print("sort: %ld rounds, checksum %lu\n", rounds, checksum);
    return 0;
}
