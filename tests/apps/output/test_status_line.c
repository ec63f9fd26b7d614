/* SPDX-License-Identifier: MIT */
/* The status line: only on terminals, and within their width. */
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/output/terminal.h"
#include "apps/program.h"

/* Short runs of the commands that have a status line. */
static const struct {
    const char *says;
    const char *words[16];
} cases[] = {
    {"\rgraph rmat:300,2000", {"gcn", "infer", "--graph", "rmat:300,2000", "--features", "4", "--repeats", "2"}},
    {"\r1 of 1, conv: naive",
     {"bench", "conv", "--shape", "1x3x8x8", "--kernel", "1x3x3", "--repeats", "1", "--copy-size", "64kB"}},
    {"\rreference beside cpu", {"parity", "--net", "lenet5", "--data", "digits:100", "--batch", "2"}},
    {"\rbatch 50 on cpu: a",
     {"bench", "epoch", "--net", "lenet5", "--data", "digits:100", "--batch", "50", "--device-calculator", "cpu"}},
    {"\rgemm, ",
     {"bench", "kernels", "--operation", "gemm", "--elements", "4096", "--repeats", "1", "--copy-size", "64kB"}},
};

enum { CASES = sizeof cases / sizeof cases[0], NARROW = 22 };

static const program *watched(int which, const char *term)
{
    static program p;
    p = (program){.errors_terminal = true, .columns = NARROW};
    setenv("TERM", term, 1);
    program_run(&p, cases[which].words);
    CHECK_EQUAL(p.code, 0);
    return &p;
}

/* The last status is erased. Each begins at the left, and leaves the last column for the cursor. */
static void it_is_one_line(void)
{
    static const char taken[] = "\r\033[K";
    for (int i = 0; i < CASES; i++) {
        const program *p = watched(i, "xterm-256color");
        CHECK_SAYS(p, cases[i].says);
        size_t length = strlen(p->err);
        CHECK(length >= sizeof taken - 1 && strcmp(p->err + length - (sizeof taken - 1), taken) == 0);
        for (const char *at = p->err, *end; *at; at = end) {
            char line[256];
            end = strchr(at + 1, '\r');
            if (!end) end = at + strlen(at);
            snprintf(line, sizeof line, "%.*s", (int)(end - at - 1), at + 1);
            CHECK(terminal_columns(line) < NARROW && strchr(line, '\n') == NULL);
        }
        CHECK(strchr(p->out, '\033') == NULL && strchr(p->out, '\r') == NULL);
    }
}

static void nobody_watches(void)
{
    static program p;
    CHECK_TEXT(watched(0, "dumb")->err, "");
    p = (program){.code = 0};
    setenv("TERM", "xterm-256color", 1);
    program_run(&p, cases[0].words);
    CHECK_TEXT(p.err, "");
}

int main(void)
{
    RUN(it_is_one_line);
    RUN(nobody_watches);
    return test_summary();
}
