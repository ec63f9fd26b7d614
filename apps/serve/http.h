/* SPDX-License-Identifier: MIT */
/* A small HTTP server on 127.0.0.1, by libmicrohttpd: one thread, which calls `answer` for each request that is
 * accepted.
 *
 * A request is refused before it reaches `answer` if its path does not begin with the token (404), if it names another
 * host than this one, as in DNS rebinding (403), if another site's page sent it (403), if its method is neither GET nor
 * POST (405), or if its body is too large (413). Connections are limited in number and time out when idle. No file is
 * ever served. */
#ifndef SDLF_APPS_SERVE_HTTP_H
#define SDLF_APPS_SERVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include <sdlf/status.h>

enum { HTTP_BODY_MOST = 1 << 24, HTTP_CONNECTIONS = 16, HTTP_SECONDS = 15, HTTP_TOKEN = 33 };

/* `path` is the part after the token, "" or "classify". The answer's body is malloc'ed; the server frees it. */
typedef struct http_request {
    const char *path;
    bool post;
    const unsigned char *body;
    size_t length;
} http_request;
typedef struct http_answer {
    int code; /* 200 */
    const char *type;
    char *body;
    size_t length;
} http_answer;
typedef void http_answerer(http_answer *answer, const http_request *request, void *user);

typedef struct http_server http_server;

/* Listen on a port, or, for 0, on a free one. Errors: SDLF_ERROR_IO (the port is in use), SDLF_ERROR_UNSUPPORTED (a
 * build without libmicrohttpd). */
sdlf_status http_open(http_server **server, int port, http_answerer *answer, void *user);
void http_close(http_server *server); /* accepts NULL; waits for an answer in progress */

/* Set the answer to this text, which is copied. */
void http_answer_text(http_answer *answer, int code, const char *type, const char *text);

int http_port(const http_server *server);
const char *http_token(const http_server *server); /* 32 random letters */

#endif
