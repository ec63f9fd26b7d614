/* What the program's environment says of how threads wait: its own choice, or the user's. */
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/program.h"

/* The environment of a process, as text with its variables in lines. */
static void environment_of(pid_t process, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/environ", (long)process);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, size - 1, file) : 0;
    if (file) fclose(file);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == 0) text[i] = '\n';
    }
    text[length] = 0;
}

/* With `name` set to `value`, or with no variable at all: is GOMP_SPINCOUNT=5000 there? */
static bool is_set(const char *name, const char *value)
{
    static program p;
    static char text[1 << 17];
    p = (program){.code = 0};
    unsetenv("OMP_WAIT_POLICY");
    unsetenv("GOMP_SPINCOUNT");
    unsetenv("OMP_PROC_BIND");
    if (name) setenv(name, value, 1);
    program_start(&p, (const char *const[]){"train", "--net", small_network(), "--data", "digits:60", "--epochs", "100",
                                            "--no-save", NULL});
    CHECK(program_wait_for(&p, "epoch   1/100"));
    environment_of(p.process, text, sizeof text);
    program_finish(&p);
    CHECK_EQUAL(p.code, 0);
    if (*text == 0) test_skip("there is no /proc");
    return strstr(text, "\nGOMP_SPINCOUNT=5000\n") != NULL;
}

static void threads_that_wait_sleep_soon(void)
{
    if (!is_set(NULL, NULL)) test_skip("OpenMP is not libgomp's");
}

static void the_user_is_obeyed(void)
{
    CHECK(!is_set("OMP_WAIT_POLICY", "passive"));
    CHECK(!is_set("OMP_PROC_BIND", "true"));
}

int main(void)
{
    RUN(threads_that_wait_sleep_soon);
    RUN(the_user_is_obeyed);
    return test_summary();
}
