/* Integer: small functions over records reached by pointers, with text comparison and copying between them: the mix
   of systems code. */

#include "runtime.h"

enum kind { PLAIN, TAGGED, CHAINED };

struct record {
    struct record *next;
    enum kind kind;
    int number, weight;
    char name[24];
};

static struct record records[64];
static int histogram[8][8];

static __attribute__((noinline)) int weigh(int left, int right)
{
    return left > right ? left - right : (left ^ right) & 15;
}

static __attribute__((noinline)) enum kind advance(enum kind kind, int number)
{
    switch (kind) {
    case PLAIN:
        return number & 1 ? TAGGED : CHAINED;
    case TAGGED:
        return number > 100 ? PLAIN : CHAINED;
    default:
        return number & 4 ? PLAIN : TAGGED;
    }
}

static __attribute__((noinline)) void visit(struct record *record, int round)
{
    struct record *next = record->next;
    record->kind = advance(record->kind, record->number + round);
    record->weight = weigh(record->weight, next->weight + round);
    histogram[record->weight & 7][round & 7] += record->number;
    if (strcmp(record->name, next->name) > 0) {
        char name[sizeof record->name];
        memcpy(name, record->name, sizeof name);
        memcpy(record->name, next->name, sizeof name);
        memcpy(next->name, name, sizeof name);
    }
    record->number = (record->number * 7 + record->weight) % 1009;
}

int main(int count, char **values)
{
    long rounds = argument(count, values, 2500);
    uint64_t state = 3;
    for (int i = 0; i < 64; i++) {
        records[i].next = &records[(i * 5 + 3) % 64];
        records[i].number = i * 17;
        for (int j = 0; j < 8; j++)
            records[i].name[j] = 'a' + (random_next(&state) & 3);
    }
    for (long round = 0; round < rounds; round++) {
        struct record *record = &records[round % 64];
        if (round % 32 == 0)
            record->name[round / 32 % 8] = 'a' + (random_next(&state) & 7);
        for (int i = 0; i < 64; i++, record = record->next)
            visit(record, round);
    }
    uint64_t checksum = 0;
    for (int i = 0; i < 64; i++)
        checksum = checksum * 31 + records[i].number + records[i].kind + histogram[i / 8][i % 8] + records[i].name[3];
    print("records: %ld rounds, checksum %lu\n", rounds, checksum);
    return 0;
}
