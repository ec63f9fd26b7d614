/* SPDX-License-Identifier: MIT */
/* Running the sdlf program from a test: its output, its exit code, and what it does when signals come. */
#ifndef SDLF_TESTS_APPS_PROGRAM_H
#define SDLF_TESTS_APPS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { PROGRAM_TEXT = 1 << 18 };

typedef struct program {
    /* wishes, zero for none */
    bool terminal;        /* standard output is a pseudo-terminal of 100 columns, or of so many: */
    bool errors_terminal; /* so is standard error, another one */
    int columns;
    long file_size_limit; /* bytes that a file may have: a disk that fills up */
    long memory_limit;    /* bytes of address space */
    const char *folder;   /* to run in */
    const char *input;    /* the file that is standard input; NULL: an empty one */
    /* what came of it */
    int code;   /* exit code; -1: it ended by a signal, or never began */
    int signal; /* that signal */
    char out[PROGRAM_TEXT], err[PROGRAM_TEXT];
    /* while it runs */
    pid_t process;
    int pipe[2];
    size_t out_used, err_used;
} program;

/* The path of this build's `sdlf`, for a command of one's own. */
extern const char *const program_path;

/* Run `sdlf` with these words (NULL-terminated) to its end, however long that takes: how soon depends on what else the
 * machine does. One that hangs ends with the test, at CTest's limit. */
void program_run(program *program, const char *const *words);

/* The same in parts: start it; wait until `text` is in its output (false: it ended without); let it go on until it has
 * had so many seconds of processor time more, or has ended; wait for its end. */
void program_start(program *program, const char *const *words);
bool program_wait_for(program *program, const char *text);
void program_compute(program *program, double seconds);
void program_finish(program *program);

/* sdlf with these words, checked to end with `code`. The program's state is static: good until the next call. */
#define SDLF(code, ...) sdlf_run(__FILE__, __LINE__, (code), (const char *const[]){__VA_ARGS__, NULL})
const program *sdlf_run(const char *file, int line, int code, const char *const *words);

/* Does `text` occur in output or errors? Prints both where not. */
#define CHECK_SAYS(program, text) program_check_says(__FILE__, __LINE__, (program), (text))
bool program_check_says(const char *file, int line, const program *program, const char *text);

/* Columns of the widest line of its output, without escape sequences. */
int program_widest(const program *program);

/* A network that trains in no time, in a file of this test's folder. */
const char *small_network(void);

#endif
