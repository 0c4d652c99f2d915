/* What a TLB refill costs: reads a word of each of PAGES pages in turn, PASSES times; with more pages than the TLB has
   entries, every read needs a refill.

       refill PAGES PASSES

   Marks for the host: 1 and 2 around as many reads of a few pages, which the TLB holds; 3 and 4 around the reads of all. */

#include "system.h"

enum { PAGE = 16384, FEW = 8, LINE = 128 };

static volatile char *pages;

/* Reads `reads` words, one a page, `count` pages in turn; neighbouring pages use neighbouring cache lines. */
static void read_pages(long reads, long count)
{
    long page = 0;
    for (long i = 0; i < reads; i++) {
        (void)*(volatile long *)(pages + page * PAGE + page % (PAGE / LINE) * LINE);
        page = page + 1 == count ? 0 : page + 1;
    }
}

int main(int count, char **arguments)
{
    if (count != 3 || number(arguments[1]) < FEW || number(arguments[2]) < 1) {
        print("usage: refill PAGES PASSES, at least %d pages and one pass\n", FEW);
        return 2;
    }
    long all = number(arguments[1]), reads = all * number(arguments[2]);
    pages = allocate(all * PAGE);
    for (long page = 0; page < all; page++)
        pages[page * PAGE + page % (PAGE / LINE) * LINE] = 1;
    read_pages(FEW, FEW);
    mark(1);
    read_pages(reads, FEW);
    mark(2);
    read_pages(all, all);
    mark(3);
    read_pages(reads, all);
    mark(4);
    print("refill: %ld reads of %ld pages\n", reads, all);
    return 0;
}
