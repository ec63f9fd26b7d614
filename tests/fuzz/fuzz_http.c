/* SPDX-License-Identifier: MIT */
/* The page's server on arbitrary bytes: it answers only requests with the token and this host's name, and continues. A
 * byte 1 stands for the token, a byte 2 for the host. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/serve/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 16 };

static http_server *server;
static volatile int answered;
static char host[2][32];

static void answer(http_answer *made, const http_request *request, void *user)
{
    unsigned sum = 0;
    (void)user;
    for (size_t i = 0; i < request->length; i++) sum += request->body[i];
    for (const char *at = request->path; *at; at++) sum += (unsigned char)*at;
    answered = 1;
    if (request->path[0] != '?') http_answer_text(made, 200, "text/plain", sum % 2 ? "odd" : "even");
}

static void open_server(void)
{
    if (http_open(&server, 0, answer, NULL) != SDLF_OK) {
        printf("skipped: %s\n", sdlf_error_message());
        exit(77);
    }
    snprintf(host[0], sizeof host[0], "127.0.0.1:%d", http_port(server));
    snprintf(host[1], sizeof host[1], "localhost:%d", http_port(server));
}

static size_t add(char *text, size_t used, const char *more)
{
    size_t length = strlen(more);
    if (used + length > MOST) return used;
    memcpy(text + used, more, length);
    return used + length;
}

/* Connect to the server from another loopback address each time: a closed connection keeps its port for a minute, and
 * one address has fewer ports than a minute has requests. */
static int connect_to_server(void)
{
    static uint32_t count;
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = {htonl(0x7f010000 + count++ % 0x10000)}};
    struct sockaddr_in here = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)http_port(server)), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connection < 0 || bind(connection, (struct sockaddr *)&from, sizeof from) != 0 ||
        connect(connection, (struct sockaddr *)&here, sizeof here) != 0) {
        perror("connecting to the server");
        abort();
    }
    return connection;
}

/* Send it all, say that this was all, and read to the end. */
static void send_request(const char *text, size_t length)
{
    char reply[4096];
    int connection = connect_to_server();
    for (size_t sent = 0; sent < length;) {
        ssize_t count = send(connection, text + sent, length - sent, MSG_NOSIGNAL);
        if (count <= 0) break; /* it has heard enough */
        sent += (size_t)count;
    }
    shutdown(connection, SHUT_WR);
    while (recv(connection, reply, sizeof reply, 0) > 0) continue;
    close(connection);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[MOST + 1];
    if (server == NULL) open_server();
    size_t used = 0;
    for (size_t i = 0; i < size && used < MOST; i++) {
        if (data[i] == 1)
            used = add(text, used, http_token(server));
        else if (data[i] == 2)
            used = add(text, used, host[0]);
        else
            text[used++] = (char)data[i];
    }
    answered = 0;
    send_request(text, used);
    bool named = memmem(text, used, host[0], strlen(host[0])) || memmem(text, used, host[1], strlen(host[1]));
    if (answered && (!named || !memmem(text, used, http_token(server), strlen(http_token(server))))) abort();
    return 0;
}
