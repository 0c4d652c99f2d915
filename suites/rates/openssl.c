/* Runs one of OpenSSL's kernels again and again on a given number of its blocks, words or calls. */

#include "kernel.h"

typedef unsigned long word;

void sha1_block_data_order(void *state, const void *blocks, size_t count);
void sha256_block_data_order(void *state, const void *blocks, size_t count);
void sha512_block_data_order(void *state, const void *blocks, size_t count);
void AES_encrypt(const unsigned char *in, unsigned char *out, const void *key);
void gcm_ghash_4bit(word *state, const void *table, const unsigned char *in, size_t bytes);
void ChaCha20_ctr32(unsigned char *out, const unsigned char *in, size_t bytes, const unsigned *key,
                    const unsigned *counter);
int poly1305_init(void *context, const unsigned char *key);
size_t poly1305_blocks(void *context, const unsigned char *in, size_t bytes, unsigned padding);
word bn_mul_words(word *result, word *first, int count, word second);
word bn_mul_add_words(word *result, word *first, int count, word second);
void bn_mul_comba8(word *result, word *first, word *second);

enum { PASSES = 400, BYTES = 16384 };

static unsigned char input[BYTES] __attribute__((aligned(128)));
static unsigned char output[BYTES] __attribute__((aligned(128)));
static word state[64], context[64], table[32];
static struct {
    unsigned words[60];
    int rounds;
} key = {.rounds = 10};

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    const char *kernel = arguments[1];
    long length = atol(arguments[2]);
    for (int place = 0; place < BYTES; place++)
        input[place] = place * 131 + (place >> 5);
    for (int place = 0; place < 60; place++)
        key.words[place] = place * 0x9e3779b9u;
    for (int place = 0; place < 32; place++)
        table[place] = place * 0x9e3779b97f4a7c15;
    poly1305_init(context, input);
    KERNEL(sha1, sha1_block_data_order(state, input, length))
    KERNEL(sha256, sha256_block_data_order(state, input, length))
    KERNEL(sha512, sha512_block_data_order(state, input, length))
    KERNEL(ghash, gcm_ghash_4bit(state, table, input, 16 * length))
    /* In place, as `openssl speed` does. */
    KERNEL(chacha20, ChaCha20_ctr32(input, input, 64 * length, (unsigned *)table, (unsigned *)state))
    KERNEL(poly1305, poly1305_blocks(context, input, 16 * length, 1))
    KERNEL(aes128, for (long block = 0; block < length; block++)
                       AES_encrypt(input + 16 * block, input + 16 * block, &key))
    KERNEL(bn_mul_words, bn_mul_words((word *)output, (word *)input, length, table[3]))
    KERNEL(bn_mul_add_words, bn_mul_add_words((word *)output, (word *)input, length, table[3]))
    KERNEL(bn_mul_comba8, for (long call = 0; call < length; call++)
                              bn_mul_comba8((word *)output, (word *)input, table))
    return 2;
}
