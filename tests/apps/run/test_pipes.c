/* SPDX-License-Identifier: MIT */
/* sdlf run: arrays from pipes, which can be read only once and in order. */
#include "testing.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sdlf/sdlf.h>

#include "apps/program.h"
#include "onnx/fixtures.h"
#include "tests/onnx/bytes.h"

/* y = a OPERATOR b, both of `side` x `side` pixels; y has the same size, or one element. */
static const char *write_model(const char *operator, int64_t side, int64_t result)
{
    const char *path = test_path("model.onnx"), *const names[] = {"a", "b"};
    const int64_t in[] = {1, 1, side, side}, out[] = {1, 1, result, result};
    bytes node = {.size = 0}, graph = {.size = 0}, set = {.size = 0}, model = {.size = 0};
    for (int i = 0; i < 2; i++) bytes_text(&node, 1, names[i]);
    bytes_text(&node, 2, "y");
    bytes_text(&node, 4, operator);
    bytes_message(&graph, 1, &node);
    for (int i = 0; i < 2; i++) bytes_value_info(&graph, 11, names[i], in, 4);
    bytes_value_info(&graph, 12, "y", out, 4);
    bytes_number(&set, 2, 13);
    bytes_message(&model, 8, &set);
    bytes_message(&model, 7, &graph);
    test_write_file(path, (const char *)model.data, model.size);
    return path;
}

/* Ones in a .npy file. */
static void write_ones(const char *path, int64_t side)
{
    float *ones = malloc((size_t)(side * side) * sizeof *ones);
    for (int64_t i = 0; i < side * side; i++) ones[i] = 1;
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, 1, side, side), ones);
    CHECK_OK(sdlf_tensor_write_file(&tensor, path));
    free(ones);
}

/* A process that writes `count` bytes of the file to one pipe, and then to the other, if given. */
static pid_t feed(const char *file, long count, const char *const *pipes)
{
    fflush(NULL);
    pid_t writer = fork();
    if (writer != 0) return writer;
    char *text = malloc((size_t)count);
    FILE *from = fopen(file, "rb");
    if (from == NULL || fread(text, 1, (size_t)count, from) != (size_t)count) _exit(1);
    for (; *pipes; pipes++) {
        int to = open(*pipes, O_WRONLY);
        long written = 0;
        while (to >= 0 && written < count) {
            ssize_t more = write(to, text + written, (size_t)(count - written));
            if (more <= 0) _exit(1);
            written += more;
        }
        close(to);
    }
    _exit(0);
}

static void end(pid_t writer)
{
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
}

static const char *new_pipe(char *path, size_t size, const char *name)
{
    snprintf(path, size, "%s", test_path(name));
    unlink(path);
    CHECK(mkfifo(path, 0600) == 0);
    return path;
}

/* Arrays needed to build the model, such as the weights of convolutions, may come from a pipe; if it ends too early,
 * nothing is computed. */
static void pipes_may_end_too_early(void)
{
    enum { HEADER = 128, ALL = HEADER + 64 };
    char model[512], pipe[512], file[512], a[600], b[600];
    snprintf(model, sizeof model, "%s", write_model("Conv", 4, 1));
    snprintf(file, sizeof file, "%s", test_path("ones.npy"));
    write_ones(file, 4);
    snprintf(a, sizeof a, "a=%s", file);
    snprintf(b, sizeof b, "b=%s", new_pipe(pipe, sizeof pipe, "pipe.npy"));
    for (int whole = 0; whole < 2; whole++) {
        pid_t writer = feed(file, whole ? ALL : ALL - 20, (const char *const[]){pipe, NULL});
        const program *p = SDLF(whole ? 0 : 1, "run", model, "--input", a, "--input", b);
        CHECK_SAYS(p, whole ? "mean 16" : "pipe.npy: .npy: float32 of shape 1x1x4x4 takes 64 bytes, found 44");
        end(writer);
    }
    unlink(pipe);
}

/* One program fills two pipes in turn, each with more than its capacity: they are read in that order, each to its
 * end. */
static void one_pipe_after_the_other(void)
{
    enum { SIDE = 200, HEADER = 128, ALL = HEADER + 4 * SIDE * SIDE };
    char model[512], pipes[2][512], file[512], a[600], b[600];
    snprintf(model, sizeof model, "%s", write_model("Add", SIDE, SIDE));
    snprintf(file, sizeof file, "%s", test_path("many.npy"));
    write_ones(file, SIDE);
    snprintf(a, sizeof a, "a=%s", new_pipe(pipes[0], sizeof pipes[0], "first.npy"));
    snprintf(b, sizeof b, "b=%s", new_pipe(pipes[1], sizeof pipes[1], "second.npy"));
    pid_t writer = feed(file, ALL, (const char *const[]){pipes[0], pipes[1], NULL});
    CHECK_SAYS(SDLF(0, "run", model, "--input", a, "--input", b), "mean 2");
    end(writer);
    for (int i = 0; i < 2; i++) unlink(pipes[i]);
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(pipes_may_end_too_early);
    RUN(one_pipe_after_the_other);
    return test_summary();
}
