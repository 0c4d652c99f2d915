/* Network: an interface's address, echoes, and the two ends of a connection. */

#include "userland.h"

enum {
    INTERNET = 2,
    STREAM = 1,
    DATAGRAM = 2,
    RAW = 3,
    CONTROL_MESSAGES = 1, /* the protocol of echoes */
    SET_ADDRESS = 0x8916,
    SET_NETMASK = 0x891c,
    GET_FLAGS = 0x8913,
    SET_FLAGS = 0x8914,
    ADD_ROUTE = 0x890b,
    IS_UP = 1,
    ROUTE_UP = 1,
    ROUTE_GATEWAY = 2,
    SOCKET_LEVEL = 1,
    REUSE_ADDRESS = 2,
    RECEIVE_TIMEOUT = 20,
    INVALID_ARGUMENT = 22,
};

struct internet_address {
    uint16_t family, port; /* the port and the address with their most significant byte first */
    uint8_t address[4];
    uint8_t zero[8];
};

/* What the interface calls exchange: a name, and an address or flags. */
struct interface_request {
    char name[16];
    union {
        struct internet_address address;
        short flags;
        char room[24];
    };
};

struct route {
    unsigned long unused_1;
    struct internet_address destination, gateway, netmask;
    unsigned short flags;
    short unused_2;
    unsigned long unused_3;
    unsigned char service, class;
    short unused_4[3];
    short metric;
    char *device;
    unsigned long size, window;
    unsigned short round_trip;
};

/* Reads four numbers with points between them; answers whether they were. */
static int read_address(const char *text, uint8_t address[4])
{
    for (int i = 0; i < 4; i++) {
        unsigned value = 0;
        int digits = 0;
        for (; *text >= '0' && *text <= '9' && value < 256; text++, digits++)
            value = value * 10 + (unsigned)(*text - '0');
        if (!digits || value > 255 || *text != (i < 3 ? '.' : 0))
            return 0;
        text++;
        address[i] = (uint8_t)value;
    }
    return 1;
}

static int read_endpoint(const char *address, const char *port, struct internet_address *endpoint)
{
    long number = number_of(port, 0);
    *endpoint = (struct internet_address) { .family = INTERNET, .port = __builtin_bswap16((uint16_t)number) };
    return number > 0 && number < 65536 && read_address(address, endpoint->address);
}

int configure_interface(int count, char **words)
{
    if (count != 4 && count != 5)
        return misuse("ifconfig");
    struct interface_request request = { .name = "" };
    copy_text(request.name, request.name + sizeof request.name, words[1]);
    long socket = system_call(__NR_socket, (long)INTERNET, (long)DATAGRAM, 0L);
    static const long calls[] = { SET_ADDRESS, SET_NETMASK };
    for (int i = 0; i < 2; i++) {
        request.address = (struct internet_address) { .family = INTERNET };
        if (!read_address(words[2 + i], request.address.address))
            return misuse("ifconfig");
        long error = system_call(__NR_ioctl, socket, calls[i], &request);
        if (error < 0)
            return failure("ifconfig", words[1], error);
    }
    long error = system_call(__NR_ioctl, socket, (long)GET_FLAGS, &request);
    request.flags |= IS_UP;
    if (error >= 0)
        error = system_call(__NR_ioctl, socket, (long)SET_FLAGS, &request);
    if (error < 0)
        return failure("ifconfig", words[1], error);
    if (count == 4)
        return 0;
    struct internet_address any = { .family = INTERNET };
    struct route route = { .destination = any, .gateway = any, .netmask = any, .flags = ROUTE_UP | ROUTE_GATEWAY };
    if (!read_address(words[4], route.gateway.address))
        return misuse("ifconfig");
    error = system_call(__NR_ioctl, socket, (long)ADD_ROUTE, &route);
    return error < 0 ? failure("ifconfig", words[4], error) : 0;
}

/* Sends the standard input to an open connection and then prints what comes back until the other end closes. */
static int converse(long socket)
{
    char block[4096];
    long got;
    while ((got = system_call(__NR_read, 0L, block, (long)sizeof block)) > 0)
        if (write_all((int)socket, block, (size_t)got) < 0)
            return failure("connect", "sending", -32);
    end_sending(socket);
    while ((got = system_call(__NR_read, socket, block, (long)sizeof block)) > 0)
        write_all(1, block, (size_t)got);
    return got < 0 ? failure("connect", "receiving", got) : 0;
}

long open_connection(const char *address, const char *port)
{
    struct internet_address endpoint;
    if (!read_endpoint(address, port, &endpoint))
        return -INVALID_ARGUMENT;
    long socket = system_call(__NR_socket, (long)INTERNET, (long)STREAM, 0L);
    long error = socket < 0 ? socket : system_call(__NR_connect, socket, &endpoint, (long)sizeof endpoint);
    if (error < 0 && socket >= 0)
        system_call(__NR_close, socket);
    return error < 0 ? error : socket;
}

void end_sending(long socket)
{
    system_call(__NR_shutdown, socket, 1L);
}

int connect_to(int count, char **words)
{
    struct internet_address endpoint;
    if (count != 3 || !read_endpoint(words[1], words[2], &endpoint))
        return misuse("connect");
    long socket = open_connection(words[1], words[2]);
    return socket < 0 ? failure("connect", words[1], socket) : converse(socket);
}

static void answer(long connection)
{
    char block[4096];
    long got;
    while ((got = system_call(__NR_read, connection, block, (long)sizeof block)) > 0)
        if (write_all((int)connection, block, (size_t)got) < 0)
            break;
}

int serve_echo(int count, char **words)
{
    struct internet_address endpoint;
    if (count != 2 || !read_endpoint("0.0.0.0", words[1], &endpoint))
        return misuse("listen");
    int yes = 1;
    long socket = system_call(__NR_socket, (long)INTERNET, (long)STREAM, 0L);
    system_call(__NR_setsockopt, socket, (long)SOCKET_LEVEL, (long)REUSE_ADDRESS, &yes, (long)sizeof yes);
    long error = system_call(__NR_bind, socket, &endpoint, (long)sizeof endpoint);
    if (error >= 0)
        error = system_call(__NR_listen, socket, 64L);
    if (error < 0)
        return failure("listen", words[1], error);
    for (;;) {
        long connection = system_call(__NR_accept, socket, 0L, 0L);
        if (connection < 0)
            return failure("listen", words[1], connection);
        if (fork_process() == 0) {
            answer(connection);
            leave(0);
        }
        system_call(__NR_close, connection);
        /* Takes those that have ended, without waiting. */
        while (system_call(__NR_wait4, -1L, 0L, 1L, 0L) > 0)
            ;
    }
}

/* A request for an echo, and the answer (RFC 792), behind a header of the Internet protocol without options. */
struct echo {
    uint8_t type, code;
    uint16_t checksum, identifier, number;
    uint8_t data[56];
};

enum { ECHO_ANSWER = 0, ECHO_REQUEST = 8, INTERNET_HEADER = 20 };

static uint16_t checksum_of(const void *from, size_t bytes)
{
    const uint16_t *words = from;
    uint32_t sum = 0;
    for (size_t i = 0; i < bytes / 2; i++)
        sum += words[i];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

/* Waits for the answer to a request, past whatever else comes, for as long as the socket does. */
static int has_answered(long socket, const struct echo *request)
{
    static uint8_t packet[INTERNET_HEADER + sizeof *request];
    const struct echo *answer = (const struct echo *)(packet + INTERNET_HEADER);
    long got;
    while ((got = system_call(__NR_read, socket, packet, (long)sizeof packet)) > 0)
        if (got == sizeof packet && answer->type == ECHO_ANSWER && answer->identifier == request->identifier &&
            answer->number == request->number && !memcmp(answer->data, request->data, sizeof answer->data))
            return 1;
    return 0;
}

int ask_for_echoes(int count, char **words)
{
    struct internet_address to = { .family = INTERNET };
    long wanted = count == 3 ? number_of(words[2], -1) : 3, answered = 0;
    if (count < 2 || count > 3 || wanted < 1 || !read_address(words[1], to.address))
        return misuse("ping");
    long socket = system_call(__NR_socket, (long)INTERNET, (long)RAW, (long)CONTROL_MESSAGES);
    long one_second[2] = { 1, 0 };
    long error = socket;
    if (error >= 0)
        error = system_call(__NR_setsockopt, socket, (long)SOCKET_LEVEL, (long)RECEIVE_TIMEOUT, one_second,
            (long)sizeof one_second);
    if (error >= 0)
        error = system_call(__NR_connect, socket, &to, (long)sizeof to);
    if (error < 0)
        return failure("ping", words[1], error);
    struct echo request = { .type = ECHO_REQUEST, .identifier = (uint16_t)system_call(__NR_getpid) };
    for (size_t i = 0; i < sizeof request.data; i++)
        request.data[i] = (uint8_t)i;
    for (long number = 0; number < wanted; number++) {
        request.number = (uint16_t)number;
        request.checksum = 0;
        request.checksum = checksum_of(&request, sizeof request);
        system_call(__NR_write, socket, &request, (long)sizeof request);
        answered += has_answered(socket, &request);
    }
    print("ping: %s answered %ld of %ld\n", words[1], answered, wanted);
    return answered == wanted ? 0 : 1;
}
