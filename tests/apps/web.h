/* SPDX-License-Identifier: MIT */
/* Requests to a page that the program serves, for tests. */
#ifndef SDLF_TESTS_APPS_WEB_H
#define SDLF_TESTS_APPS_WEB_H

#include <stdbool.h>
#include <stddef.h>

extern int web_port;
extern char web_token[64];

/* Take the page's address out of what the program has printed. */
bool web_open(const char *output);

/* The answer to these bytes, on a new connection; static. */
const char *web_ask(const void *bytes, size_t length);

/* The answer to METHOD /PATH with the host, one more header line and a body. */
const char *web_request(const char *method, const char *path, const char *host, const char *more, const void *body,
                        size_t length);

const char *web_path(const char *name); /* "/TOKEN/NAME"; good until the fourth call from now */
const char *web_host(void);             /* "127.0.0.1:8000" */

/* Is `text` in the answer? If not, both are printed. */
bool web_says(const char *answer, const char *text);

#endif
