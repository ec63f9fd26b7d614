/* What begins a command's output, on terminals and in files. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#include "apps/program.h"

/* Columns of the widest line of a terminal's output, without escape sequences; its lines end with CR and LF. */
static int widest(const char *text)
{
    int most = 0, columns = 0;
    for (; *text; text++) {
        if (*text == '\033') {
            text += strcspn(text, "mK");
            continue;
        }
        columns = *text == '\n' || *text == '\r' ? 0 : columns + 1;
        if (columns > most) most = columns;
    }
    return most;
}

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
    CHECK(widest(p.out) <= WIDTH);
    p = (program){.columns = WIDTH}; /* a file has whole lines */
    program_run(&p, words);
    CHECK(strstr(p.out, "Activations, gradients and workspaces share their memory by lifetime; apart they would") !=
          NULL);
    CHECK(widest(p.out) > WIDTH);
}

int main(void)
{
    RUN(lines_fit_a_terminal);
    return test_summary();
}
