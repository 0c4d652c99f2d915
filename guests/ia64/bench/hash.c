/* Integer: an open-addressing hash table of 64-bit keys: insert, look up, delete with backward shift. */

#include "runtime.h"

enum { SLOTS = 1 << 14, KEYS = SLOTS / 2 };

struct slot {
    uint64_t key, value; /* key 0: free */
};

static struct slot table[SLOTS];

static uint64_t home(uint64_t key)
{
    return (key * UINT64_C(0x9e3779b97f4a7c15)) >> 50;
}

static struct slot *find(uint64_t key)
{
    uint64_t index = home(key);
    while (table[index].key != key && table[index].key != 0)
        index = (index + 1) % SLOTS;
    return &table[index];
}

static void delete(struct slot *slot)
{
    uint64_t hole = slot - table, next = hole;
    for (;;) {
        table[hole].key = 0;
        do {
            next = (next + 1) % SLOTS;
            if (table[next].key == 0)
                return;
        } while (((next - home(table[next].key)) % SLOTS) < ((next - hole) % SLOTS));
        table[hole] = table[next];
        hole = next;
    }
}

int main(int count, char **values)
{
    long rounds = argument(count, values, 40);
    uint64_t checksum = 0;
    for (long round = 0; round < rounds; round++) {
        uint64_t state = round + 1;
        for (int i = 0; i < KEYS; i++) {
            struct slot *slot = find(random_next(&state) | 1);
            slot->key = state >> 11 | 1;
            slot->value = i;
        }
        state = round + 1;
        for (int i = 0; i < KEYS; i++) {
            struct slot *slot = find(random_next(&state) | 1);
            checksum = checksum * 31 + slot->value;
            delete(slot);
        }
    }
    print("hash: %ld rounds, checksum %lu\n", rounds, checksum);
    return 0;
}
