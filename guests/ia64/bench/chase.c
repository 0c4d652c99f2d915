/* Memory: following pointers at random through 16 MB, then streaming over it. */

#include "runtime.h"

enum { NODES = 1 << 17 };

struct node {
    struct node *next;
    uint64_t value, padding[14];
};

int main(int count, char **values)
{
    long rounds = argument(count, values, 20);
    struct node *nodes = allocate(NODES * sizeof *nodes);
    /* One cycle through all nodes: a full-period linear congruence modulo a power of two. */
    for (uint64_t i = 0, at = 0; i < NODES; i++) {
        uint64_t next = (at * 1664525 + 1013904223) % NODES;
        nodes[at].next = &nodes[next];
        nodes[at].value = i;
        at = next;
    }
    uint64_t checksum = 0;
    struct node *node = nodes;
    for (long round = 0; round < rounds; round++) {
        for (long i = 0; i < NODES; i++, node = node->next)
            checksum = checksum * 5 + node->value;
        for (long i = 0; i < NODES; i++)
            nodes[i].value += checksum;
    }
    print("chase: %ld rounds, checksum %lu\n", rounds, checksum);
    return 0;
}
