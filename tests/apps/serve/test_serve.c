/* SPDX-License-Identifier: MIT */
/* sdlf serve: its answers, who gets them, and rejected requests. */
#include "testing.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/program.h"
#include "apps/web.h"

#ifdef SDLF_HAVE_MICROHTTPD
enum { SERVES = true };
#else
enum { SERVES = false };
#endif

static program served;
static char weights[512];

static void starts(void)
{
    snprintf(weights, sizeof weights, "%s", test_path("lenet5.safetensors"));
    SDLF(0, "train", "--net", "lenet5", "--data", "digits:2000", "--epochs", "2", "--quiet", "--out", weights);
    program_start(&served, (const char *const[]){"serve", "--weights", weights, NULL});
    if (!CHECK(program_wait_for(&served, "Ctrl-C ends."))) return;
    CHECK(web_open(served.out));
}

static void shows_its_page(void)
{
    const char *answer = web_request("GET", web_path(""), web_host(), "", NULL, 0);
    CHECK(web_says(answer, "HTTP/1.1 200"));
    CHECK(web_says(answer, "<canvas"));
    CHECK(web_says(answer, "Content-Security-Policy: default-src 'none'"));
    CHECK(web_says(answer, "X-Content-Type-Options: nosniff"));
    CHECK(web_says(web_request("GET", web_path("page.js"), web_host(), "", NULL, 0), "fetch('classify'"));
    CHECK(web_says(web_request("GET", web_path(""), "localhost:0", "", NULL, 0), "HTTP/1.1 403")); /* another port */
}

static void classifies_pictures(void)
{
#if !defined SDLF_HAVE_PNG
    test_skip("built without libpng");
    return;
#endif
    FILE *file = fopen(SDLF_PICTURE, "rb");
    char *bytes = malloc(1 << 20);
    size_t length = file ? fread(bytes, 1, 1 << 20, file) : 0;
    if (file) fclose(file);
    const char *answer = web_request("POST", web_path("classify"), web_host(), "", bytes, length),
               *body = strstr(answer, "\r\n\r\n");
    CHECK(web_says(answer, "HTTP/1.1 200"));
    json_t *result = json_loads(body ? body + 4 : "", 0, NULL), *classes = json_object_get(result, "classes");
    CHECK_EQUAL((int64_t)json_array_size(classes), 10);
    CHECK_EQUAL(json_integer_value(json_object_get(json_array_get(classes, 0), "class")), 2);
    CHECK((int64_t)json_array_size(json_object_get(result, "layers")) >= 3); /* the picture, and layers of lenet5 */
    json_decref(result);
    free(bytes);
    answer = web_request("POST", web_path("classify"), web_host(), "", "no picture", 10);
    CHECK(web_says(answer, "HTTP/1.1 400"));
    CHECK(web_says(answer, "\"error\":\"the picture"));
    CHECK(web_says(web_request("POST", web_path("classify"), web_host(), "", NULL, 0), "HTTP/1.1 400"));
}

static void refuses_what_is_not_its_own(void)
{
    char wrong[128], origin[128];
    snprintf(wrong, sizeof wrong, "/%.31s%c/", web_token, web_token[31] == '0' ? '1' : '0');
    CHECK(web_says(web_request("GET", wrong, web_host(), "", NULL, 0), "HTTP/1.1 404"));
    CHECK(web_says(web_request("GET", "/", web_host(), "", NULL, 0), "HTTP/1.1 404"));
    wrong[0] = '\0';
    snprintf(wrong, sizeof wrong, "/%.10s", web_token);
    CHECK(web_says(web_request("GET", wrong, web_host(), "", NULL, 0), "HTTP/1.1 404"));
    CHECK(web_says(web_request("GET", web_path("../../etc/passwd"), web_host(), "", NULL, 0), "HTTP/1.1 404"));
    CHECK(web_says(web_request("GET", web_path("classify"), web_host(), "", NULL, 0), "HTTP/1.1 404"));
    CHECK(web_says(web_request("GET", web_path(""), "evil.example", "", NULL, 0), "HTTP/1.1 403"));
    CHECK(web_says(web_request("POST", web_path("classify"), web_host(), "Origin: http://evil.example\r\n", "x", 1),
                   "HTTP/1.1 403"));
    CHECK(web_says(web_request("POST", web_path("classify"), web_host(), "Sec-Fetch-Site: cross-site\r\n", "x", 1),
                   "HTTP/1.1 403"));
    snprintf(origin, sizeof origin, "Origin: http://%s\r\n", web_host());
    CHECK(web_says(web_request("POST", web_path("classify"), web_host(), origin, "x", 1),
                   "HTTP/1.1 400")); /* its own page, which is no image */
    CHECK(web_says(web_request("DELETE", web_path(""), web_host(), "", NULL, 0), "HTTP/1.1 405"));
    CHECK(web_says(web_request("PUT", web_path("classify"), web_host(), "", "x", 1), "HTTP/1.1 405"));
}

static void bodies_have_a_limit(void)
{
    char text[512];
    int length = snprintf(text, sizeof text, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 99999999999\r\n\r\n",
                          web_path("classify"), web_host());
    CHECK(web_says(web_ask(text, (size_t)length), "HTTP/1.1 413"));
    /* one without a length */
    enum { CHUNK = 1 << 20, CHUNKS = 20 };
    char *all = malloc(512 + (size_t)CHUNKS * (CHUNK + 32));
    size_t used = (size_t)snprintf(
        all, 512, "POST %s HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
        web_path("classify"), web_host());
    for (int i = 0; i < CHUNKS; i++) {
        used += (size_t)sprintf(all + used, "%x\r\n", CHUNK);
        memset(all + used, 'x', CHUNK);
        used += CHUNK;
        used += (size_t)sprintf(all + used, "\r\n");
    }
    used += (size_t)sprintf(all + used, "0\r\n\r\n");
    CHECK(web_says(web_ask(all, used), "HTTP/1.1 413"));
    free(all);
}

/* Random bytes, and requests truncated anywhere: the next request is answered. */
static void lives_through_nonsense(void)
{
    char text[600];
    int whole = snprintf(text, sizeof text, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 5\r\n\r\nab",
                         web_path("classify"), web_host());
    for (int length = 0; length < whole; length += 7) web_ask(text, (size_t)length);
    unsigned seed = 1;
    for (int i = 0; i < 40; i++) {
        for (size_t k = 0; k < sizeof text; k++) {
            seed = seed * 1664525 + 1013904223;
            text[k] = (char)(seed >> 24);
        }
        web_ask(text, sizeof text);
    }
    CHECK(web_says(web_request("GET", web_path(""), web_host(), "", NULL, 0), "HTTP/1.1 200"));
}

static void ends_by_a_signal(void)
{
    kill(served.process, SIGINT);
    program_finish(&served);
    CHECK_EQUAL(served.code, 130);
    CHECK_TEXT(served.err, "");
}

static void says_what_is_wrong(void)
{
    int taken = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof here;
    CHECK(bind(taken, (struct sockaddr *)&here, size) == 0 && listen(taken, 1) == 0);
    CHECK(getsockname(taken, (struct sockaddr *)&here, &size) == 0);
    char number[16];
    snprintf(number, sizeof number, "%d", ntohs(here.sin_port));
    CHECK_SAYS(SDLF(1, "serve", "--weights", weights, "--port", number), "cannot listen on");
    close(taken);
    CHECK_SAYS(SDLF(2, "serve"), "--weights FILE is missing");
    CHECK_SAYS(SDLF(1, "serve", "--weights", test_path("none.safetensors")), "none.safetensors");
}

int main(void)
{
    if (!SERVES) {
        puts("skipped: this build has no libmicrohttpd");
        return 77;
    }
    RUN(starts);
    if (web_port > 0) {
        RUN(shows_its_page);
        RUN(classifies_pictures);
        RUN(refuses_what_is_not_its_own);
        RUN(bodies_have_a_limit);
        RUN(lives_through_nonsense);
        RUN(ends_by_a_signal);
    }
    RUN(says_what_is_wrong);
    return test_summary();
}
