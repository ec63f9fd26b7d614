/* SPDX-License-Identifier: MIT */
/* A small HTTP server on 127.0.0.1, by libmicrohttpd: one thread, which calls `answer` for each request that may be
 * answered.
 *
 * A request is refused before anybody looks at it where its address does not begin with the token (404), where it names
 * another host than this one, as pages do that have bound a name of theirs to 127.0.0.1 (403), where another site's
 * page has sent it (403), where its method is neither GET nor POST (405), or where its body is too large (413).
 * Connections are few and end when nothing comes. No answer is a file. */
#ifndef SDLF_APPS_SERVE_HTTP_H
#define SDLF_APPS_SERVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include <sdlf/status.h>

enum { HTTP_BODY_MOST = 1 << 24, HTTP_CONNECTIONS = 16, HTTP_SECONDS = 15, HTTP_TOKEN = 33 };

/* `path` is what follows the token, "" or "classify". The answer's body is malloc'ed, and the server's to free. */
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

/* Listen on a port, or, for 0, on a free one. Errors: SDLF_ERROR_IO (a port that is taken), SDLF_ERROR_UNSUPPORTED (a
 * build without libmicrohttpd). */
sdlf_status http_open(http_server **server, int port, http_answerer *answer, void *user);
void http_close(http_server *server); /* accepts NULL; waits for the answer that is being made */

/* The answer is this text, which is copied. */
void http_answer_text(http_answer *answer, int code, const char *type, const char *text);

int http_port(const http_server *server);
const char *http_token(const http_server *server); /* 32 letters of chance */

#endif
