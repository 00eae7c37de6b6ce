/* Pairs of a publisher and a subscriber, which cost little beside the broker: a publisher sends a
 * window of messages at once, and the next one when the window is acknowledged and delivered.
 *
 *     windows PORT QOS WINDOW PAYLOAD PAIRS
 *
 * For each line with a number of seconds on stdin it runs so long and prints how many messages
 * were delivered. A message that is lost, late, double or out of order ends it with a text on
 * stderr and status 1. MQTT 3.1.1, on 127.0.0.1, QoS 1 and 2. Started by windows.py. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PUBACK = 0x40, PUBREC = 0x50, PUBREL = 0x62, PUBCOMP = 0x70, SIZE = 1 << 17, MOST = 32 };

typedef struct {
    int fd, have;
    unsigned due;    /* messages that must still be delivered or acknowledged */
    unsigned number; /* of the next message */
    unsigned char in[SIZE];
} Client;

static Client publishers[MOST], subscribers[MOST];
static int qos, window, payload, pairs;
static unsigned char out[SIZE];

static void fail(const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(1);
}

static void send_all(int fd, const unsigned char *data, size_t n)
{
    while (n) {
        ssize_t done = send(fd, data, n, MSG_NOSIGNAL);
        if (done <= 0)
            fail("the broker has closed a connection");
        data += done;
        n -= done;
    }
}

static void expect(int fd, unsigned char first, int n)
{
    unsigned char answer[8];
    if (recv(fd, answer, n, MSG_WAITALL) != n || answer[0] != first || answer[n - 1] & 0x80)
        fail("CONNECT or SUBSCRIBE was refused");
}

static int open_client(int port, const char *name, int index)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct timeval limit = {.tv_sec = 20};
    unsigned char packet[32] = {0x10, 14, 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 0, 0, 2};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&to, sizeof to))
        fail("the broker does not listen");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    packet[14] = name[0];
    packet[15] = 'a' + index;
    send_all(fd, packet, 16);
    expect(fd, 0x20, 4);
    return fd;
}

static void subscribe(int fd, int index)
{
    unsigned char packet[] = {0x82, 8, 0, 1, 0, 3, 'w', '/', 'a' + index, qos};
    send_all(fd, packet, sizeof packet);
    expect(fd, 0x90, 5);
}

static void publish(Client *from, Client *to, int index)
{
    unsigned char *put = out;
    for (int i = 0; i < window; i++) {
        int body = 7 + payload;
        unsigned number = from->number++;
        *put++ = 0x30 | qos << 1;
        if (body > 127)
            *put++ = body % 128 | 128;
        *put++ = body > 127 ? body / 128 : body;
        memcpy(put, (unsigned char[]){0, 3, 'w', '/', 'a' + index, 0, i + 1}, 7);
        put[5] = (i + 1) >> 8;
        memset(put + 7, 0, payload);
        memcpy(put + 7, &number, 4);
        put += body;
    }
    from->due = to->due = window;
    send_all(from->fd, out, put - out);
}

/* An acknowledgement that answers this one; -> where the next may be written */
static unsigned char *answer(unsigned char *put, int first, const unsigned char *id)
{
    put[0] = first;
    put[1] = 2;
    memcpy(put + 2, id, 2);
    return put + 4;
}

static unsigned char *handle(Client *client, unsigned char *put, int first, unsigned char *body)
{
    if (first >> 4 == 3) {
        unsigned number;
        memcpy(&number, body + 7, 4);
        if (number != client->number || !client->due)
            fail("a message was lost, double or out of order");
        client->number++;
        client->due -= qos == 1;
        return answer(put, qos == 1 ? PUBACK : PUBREC, body + 5);
    }
    if (!client->due)
        fail("an acknowledgement too many");
    if (first == PUBREC)
        return answer(put, PUBREL, body);
    if (first == PUBREL)
        put = answer(put, PUBCOMP, body);
    else if (first != (qos == 1 ? PUBACK : PUBCOMP))
        fail("an unexpected packet");
    client->due--;
    return put;
}

static void receive(Client *client)
{
    ssize_t n = recv(client->fd, client->in + client->have, SIZE - client->have, 0);
    unsigned char *at = client->in, *end = at + client->have + (n > 0 ? n : 0), *put = out;
    if (n <= 0)
        fail("the broker has closed a connection");
    while (end - at >= 2) {
        int size = at[1], head = 2;
        if (size > 127) {
            if (end - at < 3)
                break;
            size = (size & 127) | at[2] << 7;
            head = 3;
        }
        if (end - at < head + size)
            break;
        put = handle(client, put, at[0], at + head);
        at += head + size;
    }
    client->have = end - at;
    memmove(client->in, at, end - at);
    if (put > out)
        send_all(client->fd, out, put - out);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static unsigned long run(double seconds)
{
    struct pollfd all[2 * MOST];
    unsigned long delivered = 0;
    double end = now() + seconds;
    int open = 1;
    while (open) {
        open = 0;
        for (int i = 0; i < pairs; i++) {
            if (!publishers[i].due && !subscribers[i].due && now() < end) {
                publish(&publishers[i], &subscribers[i], i);
                delivered += window;
            }
            open |= publishers[i].due || subscribers[i].due;
            all[2 * i] = (struct pollfd){publishers[i].fd, POLLIN, 0};
            all[2 * i + 1] = (struct pollfd){subscribers[i].fd, POLLIN, 0};
        }
        if (open && !poll(all, 2 * pairs, 20000))
            fail("messages were not received");
        for (int i = 0; open && i < 2 * pairs; i++)
            if (all[i].revents)
                receive(i % 2 ? &subscribers[i / 2] : &publishers[i / 2]);
    }
    return delivered;
}

int main(int count, char **words)
{
    char line[64];
    if (count != 6)
        fail("windows PORT QOS WINDOW PAYLOAD PAIRS");
    qos = atoi(words[2]), window = atoi(words[3]), payload = atoi(words[4]), pairs = atoi(words[5]);
    if (qos < 1 || qos > 2 || payload < 4 || pairs < 1 || pairs > MOST || window < 1
        || window * (payload + 10) > SIZE)
        fail("a number is out of range");
    for (int i = 0; i < pairs; i++) {
        subscribers[i].fd = open_client(atoi(words[1]), "s", i);
        subscribe(subscribers[i].fd, i);
        publishers[i].fd = open_client(atoi(words[1]), "p", i);
    }
    while (fgets(line, sizeof line, stdin)) {
        printf("%lu\n", run(atof(line)));
        fflush(stdout);
    }
    return 0;
}
