/* SPDX-License-Identifier: MIT */
/* See http.h. */
#include "apps/serve/http.h"

#include <stdlib.h>
#include <string.h>

#include "apps/system/memory.h"

void http_answer_text(http_answer *answer, int code, const char *type, const char *text)
{
    *answer = (http_answer){.code = code, .type = type, .body = memory_copy_text(text), .length = strlen(text)};
}

#ifdef SDLF_HAVE_MICROHTTPD
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

struct http_server {
    struct MHD_Daemon *daemon;
    http_answerer *answer;
    void *user;
    int port;
    char token[HTTP_TOKEN];
};

/* A request body being received. */
typedef struct incoming {
    unsigned char *bytes;
    size_t length, capacity;
    int refused; /* an HTTP status; 0: accepted */
} incoming;

static enum MHD_Result send_body(struct MHD_Connection *connection, int code, const char *type, char *body,
                                 size_t length)
{
    static const char *const headers[][2] = {
        {"Cache-Control", "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data: "
                                    "blob:; connect-src 'self'; frame-ancestors 'none'; "
                                    "base-uri 'none'; form-action 'none'"},
    };
    struct MHD_Response *response = MHD_create_response_from_buffer(length, body, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(body);
        return MHD_NO;
    }
    MHD_add_response_header(response, "Content-Type", type);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        MHD_add_response_header(response, headers[i][0], headers[i][1]);
    enum MHD_Result result = MHD_queue_response(connection, (unsigned)code, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, int code)
{
    const char *text = code == 403   ? "refused: another host or another site\n"
                       : code == 405 ? "refused: neither GET nor POST\n"
                       : code == 413 ? "refused: too large\n"
                       : code == 503 ? "refused: out of memory\n"
                                     : "not found\n";
    return send_body(connection, code, "text/plain; charset=utf-8", memory_copy_text(text), strlen(text));
}

static bool is_this_host(const http_server *s, const char *host)
{
    char address[32], name[32];
    snprintf(address, sizeof address, "127.0.0.1:%d", s->port);
    snprintf(name, sizeof name, "localhost:%d", s->port);
    return host && (strcmp(host, address) == 0 || strcmp(host, name) == 0);
}

/* Returns 0, or the HTTP status of a refusal. The token is checked first: a client without it learns nothing. */
static int check(const http_server *s, struct MHD_Connection *connection, const char *url, const char *method)
{
    size_t length = strlen(s->token);
    unsigned different = url[0] != '/';
    for (size_t i = 0; i < length && url[0]; i++) { /* in constant time */
        different |= (unsigned char)url[1 + i] ^ (unsigned char)s->token[i];
        if (url[1 + i] == '\0') break;
    }
    if (different || url[1 + length] != '/') return 404;
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    const char *origin = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Origin");
    const char *site = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site");
    if (!is_this_host(s, host)) return 403;
    if (origin && (strncmp(origin, "http://", 7) != 0 || strcmp(origin + 7, host) != 0)) return 403;
    if (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0) return 403;
    return strcmp(method, "GET") == 0 || strcmp(method, "POST") == 0 ? 0 : 405;
}

static void take(incoming *in, const char *data, size_t size)
{
    if (in->length + size > HTTP_BODY_MOST) in->refused = 413;
    if (in->refused) return;
    if (in->length + size > in->capacity) {
        in->capacity = 2 * (in->length + size);
        unsigned char *more = realloc(in->bytes, in->capacity);
        if (!more) {
            in->refused = 503;
            return;
        }
        in->bytes = more;
    }
    memcpy(in->bytes + in->length, data, size);
    in->length += size;
}

/* Called when the headers have arrived, for each part of the body, and at its end. */
static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *data, size_t *size, void **state)
{
    (void)version;
    http_server *s = user;
    incoming *in = *state;
    if (!in) {
        *state = in = calloc(1, sizeof *in);
        if (!in) return MHD_NO;
        in->refused = check(s, connection, url, method);
        const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
        if (!in->refused && length && strtoull(length, NULL, 10) > HTTP_BODY_MOST) in->refused = 413;
        return in->refused ? refuse(connection, in->refused) : MHD_YES;
    }
    if (*size > 0) {
        take(in, data, *size);
        *size = 0;
        return MHD_YES;
    }
    if (in->refused) return refuse(connection, in->refused);
    http_answer answer = {.code = 404};
    const http_request request = {.path = url + 2 + strlen(s->token),
                                  .post = strcmp(method, "POST") == 0,
                                  .body = in->bytes,
                                  .length = in->length};
    s->answer(&answer, &request, s->user);
    return answer.body ? send_body(connection, answer.code, answer.type, answer.body, answer.length)
                       : refuse(connection, answer.code);
}

static void on_end(void *user, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode code)
{
    (void)user;
    (void)connection;
    (void)code;
    incoming *in = *state;
    if (in) free(in->bytes);
    free(in);
    *state = NULL;
}

static sdlf_status make_token(char *token)
{
    unsigned char chance[HTTP_TOKEN / 2];
    if (getentropy(chance, sizeof chance) != 0)
        return sdlf_fail(SDLF_ERROR_IO, "no random numbers for the page's address: %s", strerror(errno));
    for (size_t i = 0; i < sizeof chance; i++) snprintf(token + 2 * i, 3, "%02x", chance[i]);
    return SDLF_OK;
}

/* Discards libmicrohttpd's messages about connections. */
static void ignore_message(void *user, const char *format, va_list values)
{
    (void)user;
    (void)format;
    (void)values;
}

sdlf_status http_open(http_server **server, int port, http_answerer *answer, void *user)
{
    http_server *s = *server = memory_allocate(sizeof *s);
    s->answer = answer;
    s->user = user;
    sdlf_status status = make_token(s->token);
    struct sockaddr_in here = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (status == SDLF_OK) {
        s->daemon =
            MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request, s,
                             MHD_OPTION_EXTERNAL_LOGGER, ignore_message, NULL, MHD_OPTION_SOCK_ADDR, &here,
                             MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
                             (unsigned)HTTP_SECONDS, MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL, MHD_OPTION_END);
        if (!s->daemon) status = sdlf_fail(SDLF_ERROR_IO, "cannot listen on 127.0.0.1:%d: %s", port, strerror(errno));
    }
    if (status != SDLF_OK) {
        free(s);
        *server = NULL;
        return status;
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    s->port = info ? info->port : port;
    return SDLF_OK;
}

void http_close(http_server *s)
{
    if (!s) return;
    MHD_stop_daemon(s->daemon);
    free(s);
}

int http_port(const http_server *s)
{
    return s->port;
}

const char *http_token(const http_server *s)
{
    return s->token;
}

#else

sdlf_status http_open(http_server **server, int port, http_answerer *answer, void *user)
{
    (void)port;
    (void)answer;
    (void)user;
    *server = NULL;
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "this build serves no pages: it has no libmicrohttpd (libmicrohttpd-dev)");
}

void http_close(http_server *server)
{
    free(server);
}

int http_port(const http_server *server)
{
    (void)server;
    return 0;
}

const char *http_token(const http_server *server)
{
    (void)server;
    return "";
}
#endif
