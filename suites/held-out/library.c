/* Calls a function of an earlier libcrypto again and again: RC4, or public keys, which come from a file. */

#include <openssl/dsa.h>
#include <openssl/objects.h>
#include <openssl/pem.h>
#include <openssl/rc4.h>
#include <openssl/rsa.h>

#include "../rates/kernel.h"

enum { PASSES = 2, LARGEST = 16 << 20, DIGEST = 36, HASH = 20, SIGNATURE = 1024 };

static unsigned char input[LARGEST] __attribute__((aligned(128)));
static unsigned char output[LARGEST] __attribute__((aligned(128)));

int main(int count, char **arguments)
{
    if (count < 3)
        return 2;
    const char *kernel = arguments[1];
    long length = atol(arguments[2]);
    if (strncmp(kernel, "rc4", 3) == 0) {
        RC4_KEY key;
        unsigned random = 1;
        RC4_set_key(&key, 16, (const unsigned char *)"sixteen letters.");
        /* As much whatever the length, so that it is no part of a slope. */
        long most = strcmp(kernel, "rc4") == 0 ? 1 << 14 : LARGEST;
        for (long place = 0; place < most; place++)
            input[place] = (random = random * 1664525 + 1013904223) >> 24;
        memset(output, 1, most);
        KERNEL(rc4, for (int time = 0; time < 10; time++) RC4(&key, length, input, output))
        KERNEL(rc4 stream, RC4(&key, length, input, output))
        return 2;
    }
    FILE *file = fopen(arguments[3], "r");
    unsigned char signature[SIGNATURE];
    unsigned signed_bytes = 0;
    int well = 1;
    if (kernel[0] == 'r') {
        RSA *key = PEM_read_RSAPrivateKey(file, NULL, NULL, NULL);
        well = RSA_sign(NID_md5_sha1, input, DIGEST, signature, &signed_bytes, key);
        KERNEL(rsa sign, for (long call = 0; call < length; call++)
                             well &= RSA_sign(NID_md5_sha1, input, DIGEST, signature, &signed_bytes, key))
        KERNEL(rsa verify, for (long call = 0; call < length; call++)
                               if (RSA_verify(NID_md5_sha1, input, DIGEST, signature, signed_bytes, key) != 1) abort())
    } else {
        DSA *key = PEM_read_DSAPrivateKey(file, NULL, NULL, NULL);
        well = DSA_sign(0, input, HASH, signature, &signed_bytes, key);
        KERNEL(dsa sign, for (long call = 0; call < length; call++)
                             well &= DSA_sign(0, input, HASH, signature, &signed_bytes, key))
        KERNEL(dsa verify, for (long call = 0; call < length; call++)
                               if (DSA_verify(0, input, HASH, signature, signed_bytes, key) != 1) abort())
    }
    return well ? 2 : 3;
}
