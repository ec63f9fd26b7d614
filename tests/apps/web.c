/* SPDX-License-Identifier: MIT */
#include "apps/web.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "testing.h"

int web_port;
char web_token[64];

bool web_open(const char *output)
{
    const char *address = strstr(output, "http://127.0.0.1:");
    if (!CHECK(address != NULL)) return false;
    return CHECK_EQUAL(sscanf(address, "http://127.0.0.1:%d/%32[0-9a-f]/", &web_port, web_token), 2) &&
           CHECK_EQUAL((int64_t)strlen(web_token), 32);
}

const char *web_ask(const void *bytes, size_t length)
{
    static char answer[1 << 21];
    struct sockaddr_in here = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)web_port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = 60}, sizeof(struct timeval));
    answer[0] = '\0';
    if (!CHECK(connect(connection, (struct sockaddr *)&here, sizeof here) == 0)) return answer;
    for (size_t sent = 0; sent < length;) {
        ssize_t count = send(connection, (const char *)bytes + sent, length - sent, MSG_NOSIGNAL);
        if (count <= 0) break; /* the server has closed */
        sent += (size_t)count;
    }
    shutdown(connection, SHUT_WR);
    size_t used = 0;
    for (ssize_t count;
         used + 1 < sizeof answer && (count = recv(connection, answer + used, sizeof answer - 1 - used, 0)) > 0;)
        used += (size_t)count;
    answer[used] = '\0';
    close(connection);
    return answer;
}

const char *web_request(const char *method, const char *path, const char *host, const char *more, const void *body,
                        size_t length)
{
    char *text = malloc(4096 + length);
    int head = snprintf(text, 4096, "%s %s HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %zu\r\nConnection: close\r\n\r\n",
                        method, path, host, more, length);
    if (length > 0) memcpy(text + head, body, length);
    const char *answer = web_ask(text, (size_t)head + length);
    free(text);
    return answer;
}

const char *web_path(const char *name)
{
    static char path[4][128];
    static int next;
    char *at = path[next++ % 4];
    snprintf(at, sizeof path[0], "/%s/%s", web_token, name);
    return at;
}

const char *web_host(void)
{
    static char text[32];
    snprintf(text, sizeof text, "127.0.0.1:%d", web_port);
    return text;
}

bool web_says(const char *answer, const char *text)
{
    if (strstr(answer, text)) return true;
    fprintf(stderr, "expected %s, found %.300s\n", text, answer);
    return false;
}
