/* Runs one of OpenSSL's kernels again and again on a given number of its blocks or words. */

#include "../rates/kernel.h"

typedef unsigned long word;

void AES_encrypt(const unsigned char *in, unsigned char *out, const void *key);
void AES_decrypt(const unsigned char *in, unsigned char *out, const void *key);
int bn_mul_mont(word *result, const word *first, const word *second, const word *modulus, const word *inverse,
                int words);

enum { PASSES = 200, BYTES = 16384, WORDS = 64 };

static unsigned char blocks[BYTES] __attribute__((aligned(128)));
static word first[WORDS] __attribute__((aligned(128)));
static word second[WORDS] __attribute__((aligned(128)));
static word modulus[WORDS] __attribute__((aligned(128)));
static word result[WORDS] __attribute__((aligned(128)));
static struct {
    unsigned words[60];
    int rounds;
} key;

static void cipher(int rounds, void (*direction)(const unsigned char *, unsigned char *, const void *), long count)
{
    key.rounds = rounds;
    for (long block = 0; block < count; block++)
        direction(blocks + 16 * block, blocks + 16 * block, &key);
}

/* Only what a product costs is wanted, not what it is, so that any odd number is an inverse. */
static void product(int words)
{
    static const word inverse[2] = {0x123456789abcdef1, 0};
    bn_mul_mont(result, first, second, modulus, inverse, words);
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    const char *kernel = arguments[1];
    long length = atol(arguments[2]);
    for (int place = 0; place < BYTES; place++)
        blocks[place] = place * 131 + (place >> 5);
    for (int place = 0; place < 60; place++)
        key.words[place] = place * 0x9e3779b9u;
    for (int place = 0; place < WORDS; place++) {
        first[place] = place * 0x9e3779b97f4a7c15;
        second[place] = first[place] * 3 + 1;
        modulus[place] = ~first[place] | 1ul << 63;
    }
    KERNEL(aes192, cipher(12, AES_encrypt, length))
    KERNEL(aes256, cipher(14, AES_encrypt, length))
    KERNEL(aes128 decrypt, cipher(10, AES_decrypt, length))
    KERNEL(aes192 decrypt, cipher(12, AES_decrypt, length))
    KERNEL(aes256 decrypt, cipher(14, AES_decrypt, length))
    KERNEL(bn_mul_mont_general, product(length))
    KERNEL(bn_mul_mont_8, product(length))
    return 2;
}
