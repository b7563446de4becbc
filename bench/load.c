/* Closed-loop load for length-prefixed request/response servers on loopback.

   usage: load PORT SECONDS FRAMES
   FRAMES is a file of int32-length-prefixed frames, one per connection. Each connection sends its frame, reads one whole
   length-prefixed answer, and sends again, until SECONDS are over. Prints: answers per second, median and 99th percentile
   of the time to answer in microseconds. Connects to 127.0.0.1 only. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct connection {
    int fd;
    char *frame;
    size_t size, have;
    char answer[65536];
    double sent_at;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void ask(struct connection *c) {
    c->have = 0;
    c->sent_at = now();
    if (write(c->fd, c->frame, c->size) != (ssize_t)c->size) fail("write");
}

static int compare(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "usage: load PORT SECONDS FRAMES\n"), 2;
    double seconds = atof(argv[2]);
    FILE *frames = fopen(argv[3], "rb");
    if (!frames) fail(argv[3]);
    size_t count = 0, room = 16, samples = 0, sample_room = 1 << 20;
    struct connection *connections = malloc(room * sizeof *connections);
    float *latencies = malloc(sample_room * sizeof *latencies);
    uint32_t length;
    while (fread(&length, 4, 1, frames) == 1) {
        if (count == room) connections = realloc(connections, (room *= 2) * sizeof *connections);
        struct connection *c = &connections[count++];
        c->size = ntohl(length) + 4;
        c->frame = malloc(c->size);
        memcpy(c->frame, &length, 4);
        if (fread(c->frame + 4, c->size - 4, 1, frames) != 1) fail("frames");
    }
    int poll = epoll_create1(0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (size_t i = 0; i < count; i++) {
        struct connection *c = &connections[i];
        int yes = 1;
        if ((c->fd = socket(AF_INET, SOCK_STREAM, 0)) < 0) fail("socket");
        if (connect(c->fd, (struct sockaddr *)&address, sizeof address)) fail("connect");
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        if (epoll_ctl(poll, EPOLL_CTL_ADD, c->fd, &event)) fail("epoll_ctl");
    }
    double start = now(), end = start + seconds;
    for (size_t i = 0; i < count; i++) ask(&connections[i]);
    size_t answers = 0;
    struct epoll_event events[256];
    while (now() < end) {
        int ready = epoll_wait(poll, events, 256, 100);
        for (int i = 0; i < ready; i++) {
            struct connection *c = events[i].data.ptr;
            ssize_t got = read(c->fd, c->answer + c->have, sizeof c->answer - c->have);
            if (got <= 0) return fprintf(stderr, "the server closed a connection\n"), 1;
            c->have += got;
            if (c->have < 4) continue;
            memcpy(&length, c->answer, 4);
            if (c->have < ntohl(length) + 4) continue;
            answers++;
            if (samples < sample_room) latencies[samples++] = (now() - c->sent_at) * 1e6;
            ask(c);
        }
    }
    double took = now() - start;
    if (!samples) return fprintf(stderr, "no answer at all\n"), 1;
    qsort(latencies, samples, sizeof *latencies, compare);
    printf("%.0f %.1f %.1f\n", answers / took, latencies[samples / 2], latencies[samples * 99 / 100]);
    return 0;
}
