/* The paper's probe: 64 bytes, raw, to the interface of another machine and back.

       psapp server
       psapp client HOST INTERFACE PROBES

   The server echoes for ever. The client prints the least, the median and the largest round trip in cycles. */

#include "system.h"

enum { CALL_FRAME_ADDRESS = 1024 + 507, CALL_FRAME_SEND, CALL_FRAME_RECEIVE };
enum { PROBE = 64, HEADER = 14, STAMP = 16, FRAME_MAX = 1514, PROBES_MAX = 4096 };

static char frame[FRAME_MAX];
static long trips[PROBES_MAX];

static long now(void)
{
    long time;
    __asm__ volatile("mov %0 = ar.itc" : "=r"(time)::"memory");
    return time;
}

static long receive(void)
{
    long bytes = system_call(CALL_FRAME_RECEIVE, frame, (long)sizeof frame);
    if (bytes < 0)
        leave(3);
    return bytes;
}

static void send(long bytes)
{
    if (system_call(CALL_FRAME_SEND, frame, bytes))
        leave(4);
}

static void serve(void)
{
    for (;;) {
        char sender[6];
        long bytes = receive();
        memcpy(sender, frame + 6, 6);
        memcpy(frame + 6, frame, 6);
        memcpy(frame, sender, 6);
        send(bytes);
    }
}

static void sort(long count)
{
    for (long i = 1; i < count; i++) {
        long trip = trips[i], place = i;
        for (; place && trips[place - 1] > trip; place--)
            trips[place] = trips[place - 1];
        trips[place] = trip;
    }
}

int main(int count, char **arguments)
{
    long own = system_call(CALL_FRAME_ADDRESS);
    if (own < 0) {
        print("psapp: this machine has no interface\n");
        return 2;
    }
    if (count == 2 && !strcmp(arguments[1], "server"))
        serve();
    long probes = count == 5 ? number(arguments[4]) : 0;
    if (count != 5 || strcmp(arguments[1], "client") || probes < 1 || probes > PROBES_MAX) {
        print("usage: psapp server, or psapp client HOST INTERFACE PROBES, 1 to %d probes\n", PROBES_MAX);
        return 2;
    }
    long host = number(arguments[2]), interface = number(arguments[3]);
    for (long probe = 0; probe < probes; probe++) {
        const char to[6] = {0x02, 'S', host >> 8, host, interface >> 8, interface};
        memcpy(frame, to, 6);
        memcpy(frame + 6, &own, 6);
        frame[12] = (char)0x88; /* of local experiments (IEEE 802) */
        frame[13] = (char)0xb5;
        memcpy(frame + STAMP, &probe, sizeof probe);
        long start = now(), echoed;
        send(PROBE);
        do {
            receive();
            memcpy(&echoed, frame + STAMP, sizeof echoed);
        } while (echoed != probe);
        trips[probe] = now() - start;
    }
    sort(probes);
    print("psapp: %ld probes, %ld %ld %ld cycles\n", probes, trips[0], trips[probes / 2], trips[probes - 1]);
    return 0;
}
