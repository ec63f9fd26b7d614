/* SPDX-License-Identifier: MIT */
/* The first lines of a command's output, on terminals and in files. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#include "apps/program.h"

static void lines_fit_a_terminal(void)
{
    enum { WIDTH = 80 };
    static program p;
    const char *const words[] = {"info", "--net", small_network(), "--steps", NULL};
    setenv("TERM", "xterm-256color", 1);
    p = (program){.terminal = true, .columns = WIDTH};
    program_run(&p, words);
    CHECK_EQUAL(p.code, 0);
    CHECK(strstr(p.out, "bytes.") != NULL);
    CHECK(program_widest(&p) <= WIDTH);
    p = (program){.columns = WIDTH}; /* a file has unbroken lines */
    program_run(&p, words);
    CHECK(strstr(p.out, "Activations, gradients and workspaces share their memory by lifetime; apart they would") !=
          NULL);
    CHECK(program_widest(&p) > WIDTH);
}

int main(void)
{
    RUN(lines_fit_a_terminal);
    return test_summary();
}
