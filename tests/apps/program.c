/* SPDX-License-Identifier: MIT */
/* Runs the sdlf program from a test. */
#include "apps/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "testing.h"

/* The capacity of a pipe, where it can be set. A program whose output is not read blocks when it is full, and so does
 * not end while the test that observes it waits for a CPU core. */
enum { PIPE_BYTES = 4096 };

const char *const program_path = SDLF_PROGRAM;

static bool make_pipe(int ends[2])
{
    if (pipe(ends) != 0) return false;
#ifdef F_SETPIPE_SZ
    (void)fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
#endif
    return true;
}

static void limit(int resource, long bytes)
{
    if (bytes <= 0) return;
    struct rlimit most = {(rlim_t)bytes, (rlim_t)bytes};
    setrlimit(resource, &most);
}

/* In the child: never returns. */
static void become_sdlf(const program *p, const char *const *words, int out, int err)
{
    enum { MOST = 1024 };
    char *argv[MOST] = {(char[]){"sdlf"}};
    int count = 1;
    for (; words[count - 1] && count < MOST - 1; count++) argv[count] = (char *)words[count - 1];
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    dup2(open(p->input ? p->input : "/dev/null", O_RDONLY), STDIN_FILENO);
    for (int i = 3; i < 64; i++) close(i);
    signal(SIGPIPE, SIG_DFL); /* regardless of how the tests were started */
    limit(RLIMIT_FSIZE, p->file_size_limit);
    limit(RLIMIT_AS, p->memory_limit);
    if (p->folder && chdir(p->folder) != 0) _exit(126);
    execv(program_path, argv);
    _exit(127);
}

void program_start(program *p, const char *const *words)
{
    int out[2], err[2];
    p->code = -1;
    p->signal = 0;
    p->out_used = p->err_used = 0;
    p->out[0] = p->err[0] = '\0';
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)(p->columns > 0 ? p->columns : 100)};
    bool made = p->terminal ? openpty(&out[0], &out[1], NULL, NULL, &size) == 0 : make_pipe(out);
    made = made && (p->errors_terminal ? openpty(&err[0], &err[1], NULL, NULL, &size) == 0 : make_pipe(err));
    if (!made) {
        perror("pipe");
        exit(1);
    }
    p->process = fork();
    if (p->process == 0) become_sdlf(p, words, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    p->pipe[0] = out[0];
    p->pipe[1] = err[0];
}

/* Append the available output of one pipe to its text; closes it at the end of the output. */
static void take(int *pipe, char *text, size_t *used)
{
    ssize_t count = read(*pipe, text + *used, PROGRAM_TEXT - 1 - *used);
    if (count <= 0) { /* a pseudo-terminal ends with an error */
        close(*pipe);
        *pipe = -1;
        return;
    }
    *used += (size_t)count;
    text[*used] = '\0';
}

/* Read available output, or wait for some, up to a number of milliseconds; -1: without limit. False: both pipes are
 * closed. */
static bool read_some(program *p, int milliseconds)
{
    struct pollfd wait[2] = {{.fd = p->pipe[0], .events = POLLIN}, {.fd = p->pipe[1], .events = POLLIN}};
    if (p->pipe[0] < 0 && p->pipe[1] < 0) return false;
    if (poll(wait, 2, milliseconds) <= 0) return true;
    if (wait[0].revents) take(&p->pipe[0], p->out, &p->out_used);
    if (wait[1].revents) take(&p->pipe[1], p->err, &p->err_used);
    return true;
}

bool program_wait_for(program *p, const char *text)
{
    while (!strstr(p->out, text) && !strstr(p->err, text)) {
        if (!read_some(p, -1)) return false;
    }
    return true;
}

/* The CPU time that it has used; -1: it has ended. */
static double computed(const program *p)
{
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(p->process, &clock) != 0 || clock_gettime(clock, &time) != 0) return -1;
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void program_compute(program *p, double seconds)
{
    double begun = computed(p), now = begun;
    while (now >= 0 && now < begun + seconds && read_some(p, 10)) now = computed(p);
}

void program_finish(program *p)
{
    int status;
    while (read_some(p, -1)) continue;
    while (waitpid(p->process, &status, 0) < 0 && errno == EINTR) continue;
    p->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    p->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

void program_run(program *p, const char *const *words)
{
    program_start(p, words);
    program_finish(p);
}

static void print_both(const program *p)
{
    fprintf(stderr, "---- exit code %d, signal %d; output:\n%s---- errors:\n%s----\n", p->code, p->signal, p->out,
            p->err);
}

const program *sdlf_run(const char *file, int line, int code, const char *const *words)
{
    static program p;
    p = (program){.code = -1};
    program_run(&p, words);
    if (!test_check_equal(p.code, code, file, line, "exit code")) print_both(&p);
    return &p;
}

bool program_check_says(const char *file, int line, const program *p, const char *text)
{
    bool says = strstr(p->out, text) || strstr(p->err, text);
    if (!test_check(says, file, line, text)) print_both(p);
    return says;
}

int program_widest(const program *p)
{
    int most = 0, columns = 0;
    for (const char *text = p->out; *text; text++) {
        if (*text == '\033') {
            text += strcspn(text, "mK");
            continue;
        }
        columns = *text == '\n' || *text == '\r' ? 0 : columns + 1;
        if (columns > most) most = columns;
    }
    return most;
}

const char *small_network(void)
{
    static const char text[] =
        "{\"name\": \"small\", \"input\": {\"name\": \"image\", \"shape\": [1, 28, 28]}, \"layers\": ["
        "{\"type\": \"max_pool2d\", \"window\": 4}, {\"type\": \"fully_connected\", \"units\": 16},"
        "{\"type\": \"relu\"}, {\"type\": \"dropout\", \"probability\": 0.1},"
        "{\"type\": \"fully_connected\", \"units\": 10}, {\"type\": \"softmax\"}]}\n";
    static char path[512]; /* test_path soon reuses its own storage */
    if (path[0]) return path;
    snprintf(path, sizeof path, "%s", test_path("small.json"));
    test_write_file(path, text, sizeof text - 1);
    return path;
}
