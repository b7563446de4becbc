/* Closed-loop load for length-prefixed request/response servers on loopback.

   usage: load PORT SECONDS FRAMES EACH
   FRAMES is a file of int32-length-prefixed frames, EACH of them for one connection after the other. Each connection sends a
   frame, reads one whole length-prefixed answer, and sends its next one, until SECONDS are over. Prints: answers per second,
   median and 99th percentile of the time to answer in microseconds, answers. Connects to 127.0.0.1 only. */
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
    char **frames;
    size_t *sizes, next, have;
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

static size_t each;

static void ask(struct connection *c) {
    size_t size = c->sizes[c->next];
    c->have = 0;
    c->sent_at = now();
    if (write(c->fd, c->frames[c->next], size) != (ssize_t)size) fail("write");
    c->next = (c->next + 1) % each;
}

static int compare(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    if (argc != 5 || !(each = strtoul(argv[4], NULL, 10)))
        return fprintf(stderr, "usage: load PORT SECONDS FRAMES EACH\n"), 2;
    double seconds = atof(argv[2]);
    FILE *frames = fopen(argv[3], "rb");
    if (!frames) fail(argv[3]);
    size_t count = 0, frame = 0, room = 16, samples = 0, sample_room = 1 << 20;
    struct connection *connections = malloc(room * sizeof *connections);
    float *latencies = malloc(sample_room * sizeof *latencies);
    uint32_t length;
    while (fread(&length, 4, 1, frames) == 1) {
        if (!frame) {
            if (count == room) connections = realloc(connections, (room *= 2) * sizeof *connections);
            connections[count].frames = malloc(each * sizeof(char *));
            connections[count].sizes = malloc(each * sizeof(size_t));
            connections[count++].next = 0;
        }
        struct connection *c = &connections[count - 1];
        size_t size = c->sizes[frame] = ntohl(length) + 4;
        char *bytes = c->frames[frame] = malloc(size);
        memcpy(bytes, &length, 4);
        if (fread(bytes + 4, size - 4, 1, frames) != 1) fail("frames");
        frame = (frame + 1) % each;
    }
    if (frame) return fprintf(stderr, "the last connection has %zu frames of %zu\n", frame, each), 2;
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
    printf("%.0f %.1f %.1f %zu\n", answers / took, latencies[samples / 2], latencies[samples * 99 / 100], answers);
    return 0;
}
