/* SPDX-License-Identifier: MIT */
/* sdlf train --serve: the content of its page, its buttons, and rejected requests. */
#include "testing.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/program.h"
#include "apps/web.h"

#ifdef SDLF_HAVE_MICROHTTPD
enum { SERVES = true };
#else
enum { SERVES = false };
#endif

enum { TRIES = 600 };

static program served;

static const char *get(const char *name)
{
    return web_request("GET", web_path(name), web_host(), "", NULL, 0);
}

static const char *post(const char *name)
{
    return web_request("POST", web_path(name), web_host(), "", NULL, 0);
}

/* Request the page until it contains the text. */
static bool comes(const char *text)
{
    for (int i = 0; i < TRIES; i++) {
        if (strstr(get("live"), text)) return true;
        usleep(50000);
    }
    return web_says(get("live"), text);
}

/* Start `sdlf train --serve` with additional words, and more epochs than the test waits for. */
static bool start(const char *const *more)
{
    const char *words[32] = {"train", "--net", "lenet5", "--data", "digits:600", "--epochs", "100000", "--serve"};
    for (int i = 8; *more; i++) words[i] = *more++;
    served = (program){.file_size_limit = served.file_size_limit};
    program_start(&served, words);
    return CHECK(program_wait_for(&served, "\npage ")) && CHECK(program_wait_for(&served, "/\n")) &&
           CHECK(web_open(served.out));
}

static void stop(void)
{
    CHECK(web_says(post("stop"), "HTTP/1.1 200"));
    program_finish(&served);
    CHECK_EQUAL(served.code, 130);
    CHECK(web_says(served.out, "stopped by the page in epoch"));
}

static void shows_curves_and_saves_and_stops(void)
{
    const char *weights = test_path("curves.safetensors");
    if (!start((const char *const[]){"--out", weights, NULL})) return;
    CHECK(web_says(get(""), "<button type=\"button\" id=\"save\">"));
    CHECK(web_says(get("curves.js"), "fetch('live')"));
    CHECK(comes("<figcaption>Loss</figcaption>")); /* epochs are shorter than the time between requests */
    CHECK(comes("<figcaption>Accuracy</figcaption>"));
    CHECK(web_says(post("save"), "HTTP/1.1 200"));
    CHECK(comes("Saved after step"));
    CHECK_EQUAL(access(weights, R_OK), 0);
    CHECK(comes("Epoch ")); /* continues */
    CHECK(web_says(get("save"), "HTTP/1.1 404"));
    CHECK(web_says(post("live"), "HTTP/1.1 404"));
    CHECK(web_says(web_request("POST", "/stop", web_host(), "", NULL, 0), "HTTP/1.1 404"));
    CHECK(web_says(web_request("POST", web_path("stop"), web_host(), "Origin: http://evil.example\r\n", NULL, 0),
                   "HTTP/1.1 403"));
    stop();
    CHECK_TEXT(served.err, "");
    CHECK(web_says(served.out, "saved  "));
}

/* The checksum of the weights after the last epoch. */
static const char *weights_of(const program *p)
{
    static char sum[2][9];
    static int next;
    char *at = sum[next++ % 2];
    const char *found = NULL;
    for (const char *place = p->out; (place = strstr(place, "  weights ")); place++) found = place;
    snprintf(at, sizeof sum[0], "%.8s", found ? found + strlen("  weights ") : "");
    return at;
}

static void saving_changes_nothing(void)
{
    const char *words[] = {
        "train",   "--net", "lenet5", "--data", "digits:6000", "--epochs", "4", "--out", test_path("saved.safetensors"),
        "--serve", NULL};
    program run = {0};
    program_start(&run, words);
    if (!CHECK(program_wait_for(&run, "\npage ")) || !CHECK(program_wait_for(&run, "/\n")) || !CHECK(web_open(run.out)))
        return;
    CHECK(web_says(post("save"), "HTTP/1.1 200"));
    program_finish(&run);
    CHECK_EQUAL(run.code, 0);
    const char *sum = weights_of(&run);
    words[9] = NULL;
    program_run(&run, words);
    CHECK_EQUAL(run.code, 0);
    CHECK_TEXT(sum, weights_of(&run));
}

static void says_why_it_cannot_save(void)
{
    const char *const none[] = {"--no-save", NULL};
    const char *const best[] = {"--keep", "best", "--out", test_path("best.safetensors"), NULL};
    if (!start(none)) return;
    CHECK(web_says(post("save"), "HTTP/1.1 409"));
    CHECK(web_says(get(""), "Nothing is kept"));
    stop();
    if (!start(best)) return;
    CHECK(web_says(post("save"), "The file holds the best epoch"));
    stop();
}

static void a_disk_that_is_full_stops_nothing(void)
{
    served.file_size_limit = 4096;
    bool started = start((const char *const[]){"--data", "digits:6000", "--out", test_path("full.safetensors"), NULL});
    served.file_size_limit = 0;
    if (!started) return;
    CHECK(web_says(post("save"), "HTTP/1.1 200"));
    CHECK(comes("Not saved: "));
    kill(served.process, SIGINT);
    program_finish(&served);
    CHECK(served.code != 0);
    CHECK_SAYS(&served, "training goes on");
}

static void refuses_contradictions(void)
{
    CHECK_SAYS(SDLF(2, "train", "--port", "8000"), "needs --serve");
    CHECK_SAYS(SDLF(2, "train", "--serve", "--quiet"), "--serve and --quiet contradict each other");
    CHECK_EQUAL(SDLF(0, "train", "--serve", "--dry-run", "--data", "digits:600")->code, 0); /* no page */
}

int main(void)
{
    if (!SERVES) {
        puts("skipped: this build has no libmicrohttpd");
        return 77;
    }
    RUN(shows_curves_and_saves_and_stops);
    RUN(saving_changes_nothing);
    RUN(says_why_it_cannot_save);
    RUN(a_disk_that_is_full_stops_nothing);
    RUN(refuses_contradictions);
    return test_summary();
}
