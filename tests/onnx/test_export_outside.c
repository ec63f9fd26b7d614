/* SPDX-License-Identifier: MIT */
/* Replacing graphs with external weights: at every moment the graph has its own weights, whatever fails, whichever
 * process is killed, and however many write concurrently. */
#include "onnx/fixtures.h"
#include "onnx/outside.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sdlf/sdlf.h>

/* What happens at the n-th rename, or when weights are removed: the test is linked so that these functions replace the
 * system's. */
static int rename_count, rename_fails_at, rename_kills_at;
static const char *other_path; /* another process exports to it, */
static const char *other_seed; /* these weights, */
static enum { NEVER, BEFORE_GRAPH, BEHIND_GRAPH, AT_REMOVAL } other_when;
static pid_t other;

int __real_rename(const char *old, const char *new);
int __wrap_rename(const char *old, const char *new);
int __real_renameat2(int old_folder, const char *old, int new_folder, const char *new, unsigned flags);
int __wrap_renameat2(int old_folder, const char *old, int new_folder, const char *new, unsigned flags);
int __real_unlinkat(int folder, const char *name, int flags);
int __wrap_unlinkat(int folder, const char *name, int flags);

/* Starts a separate program: a child that is only forked would share our locks. */
static void start_other(void)
{
    fflush(stdout);
    other = fork();
    if (other == 0) execl("/proc/self/exe", other_path, other_seed, (char *)NULL);
    if (other <= 0) _exit(1);
}

static void wait_for_other(void)
{
    int result = -1;
    CHECK(waitpid(other, &result, 0) == other);
    CHECK_EQUAL(result, 0);
    other_when = NEVER;
}

static bool rename_fails(void)
{
    rename_count++;
    if (rename_count == rename_kills_at) raise(SIGKILL);
    errno = EIO;
    return rename_count == rename_fails_at;
}

int __wrap_rename(const char *old, const char *new)
{
    if (rename_fails()) return -1;
    bool graph = rename_count == 2;
    if (graph && other_when == BEFORE_GRAPH) start_other(), wait_for_other();
    int result = __real_rename(old, new);
    if (graph && other_when == BEHIND_GRAPH) start_other(), wait_for_other();
    return result;
}

/* Renames weights to a name that does not exist yet. */
int __wrap_renameat2(int old_folder, const char *old, int new_folder, const char *new, unsigned flags)
{
    if (rename_fails()) return -1;
    int result = __real_renameat2(old_folder, old, new_folder, new, flags);
    if (result != 0) rename_count--; /* another try follows */
    return result;
}

int __wrap_unlinkat(int folder, const char *name, int flags)
{
    if (other_when == AT_REMOVAL) {
        start_other();
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL); /* it would be done by now if nothing blocked it */
    }
    return __real_unlinkat(folder, name, flags);
}

static sdlf_model *make(uint64_t seed)
{
    sdlf_model *net = sdlf_model_create("net");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(64));
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 64});
    sdlf_output(net, "y", sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 32}));
    CHECK_OK(sdlf_model_build(net, seed));
    /* a bias is short and stored in the graph: mixing seeds of bias and weights would be detected */
    sdlf_parameter *bias = sdlf_model_find_parameter(net, "fully_connected.bias");
    if (CHECK(bias != NULL)) *(float *)bias->value.data = (float)seed;
    return net;
}

static sdlf_status export_to(const char *path, uint64_t seed, bool outside)
{
    sdlf_model *net = make(seed);
    sdlf_onnx_exported result;
    sdlf_status status = sdlf_model_to_onnx(net, path, &(sdlf_onnx_export_options){.external_data = outside}, &result);
    if (status == SDLF_OK) CHECK((result.external_file[0] != '\0') == outside);
    sdlf_model_free(net);
    return status;
}

/* The seed, 1 or 2, of the graph's weights; 0: it cannot be read; -1: of neither export. */
static int seed_of(const char *path)
{
    sdlf_model *net = NULL;
    if (sdlf_model_from_onnx(&net, path, NULL) != SDLF_OK) return 0;
    uint32_t hash = sdlf_model_hash(net);
    sdlf_model_free(net);
    for (int seed = 1; seed <= 2; seed++) {
        net = make((uint64_t)seed);
        bool same = sdlf_model_hash(net) == hash;
        sdlf_model_free(net);
        if (same) return seed;
    }
    return -1;
}

static int files_like(const char *path)
{
    char pattern[700];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s*", path);
    int count = glob(pattern, 0, NULL, &found) == 0 ? (int)found.gl_pathc : 0;
    if (count > 0) globfree(&found);
    return count;
}

static void old_weights_go_with_their_graph(void)
{
    const char *path = test_path("net.onnx");
    char first[600], second[600], again[600];
    CHECK_OK(export_to(path, 1, true));
    CHECK_EQUAL(outside_files(path, first), 1);
    CHECK_OK(export_to(path, 2, true));
    CHECK_EQUAL(outside_files(path, second), 1);
    CHECK(strcmp(first, second) != 0);
    CHECK_EQUAL(seed_of(path), 2);
    CHECK_OK(export_to(path, 1, true)); /* called after their content */
    CHECK_EQUAL(outside_files(path, again), 1);
    CHECK_TEXT(again, first);
    CHECK_OK(export_to(path, 1, true));
    CHECK_EQUAL(seed_of(path), 1);
    CHECK_OK(export_to(path, 2, false)); /* stored in the graph */
    CHECK_EQUAL(seed_of(path), 2);
    CHECK_EQUAL(files_like(path), 1);
}

/* Files that only have similar names are left alone. */
static void other_files_stay(void)
{
    static const char *const names[] = {"mine.onnx.data",
                                        "mine.onnx.0123456789abcde.data",
                                        "mine.onnx.0123456789abcdef0.data",
                                        "mine.onnx.0123456789ABCDEF.data",
                                        "mine.onnx.0123456789abcdef.data.gz",
                                        "mine.onnx.0123456789abcdef",
                                        "mine.onnx-0123456789abcdef.data",
                                        "amine.onnx.0123456789abcdef.data"};
    enum { NAMES = sizeof names / sizeof names[0] };
    for (int i = 0; i < NAMES; i++) test_write_file(test_path(names[i]), "mine", 4);
    CHECK(mkdir(test_path("mine.onnx.0000000000000000.data"), 0755) == 0);
    test_write_file(test_path("mine.onnx.0123456789abcdef.data"), "left", 4);
    CHECK_OK(export_to(test_path("mine.onnx"), 1, true));
    for (int i = 0; i < NAMES; i++) CHECK(access(test_path(names[i]), F_OK) == 0);
    CHECK_EQUAL(outside_files(test_path("mine.onnx"), NULL), 3); /* its own, the folder, and capitals */
    CHECK(access(test_path("mine.onnx.0123456789abcdef.data"), F_OK) != 0);
}

/* The graph cannot be renamed into place: everything is unchanged. */
static void a_failed_rename_changes_nothing(void)
{
    const char *path = test_path("failed.onnx");
    for (int seed = 0; seed <= 2; seed++) { /* nothing there, the same content, other content */
        for (int at = 1; at <= 2; at++) {
            rename_count = 0;
            rename_fails_at = at;
            CHECK_FAILS(export_to(path, seed == 0 ? 1 : (uint64_t)seed, true), SDLF_ERROR_IO, "Input/output error");
            rename_fails_at = 0;
            CHECK_EQUAL(files_like(path), seed == 0 ? 0 : 2);
            CHECK_EQUAL(seed_of(path), seed == 0 ? 0 : 1);
        }
        CHECK_OK(export_to(path, 1, true));
    }
}

/* Killed before either rename: the old pair is intact, and leftover files are removed by the next export. */
static void a_kill_changes_nothing(void)
{
    const char *path = test_path("killed.onnx");
    CHECK_OK(export_to(path, 1, true));
    for (int at = 1; at <= 2; at++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            rename_count = 0;
            rename_kills_at = at;
            _exit(export_to(path, 2, true) == SDLF_OK);
        }
        int result = 0;
        CHECK(child > 0 && waitpid(child, &result, 0) == child);
        CHECK(WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL);
        CHECK_EQUAL(seed_of(path), 1);
        CHECK(files_like(path) > 2);
    }
    CHECK_OK(export_to(path, 1, true));
    CHECK_EQUAL(outside_files(path, NULL), 1);
    CHECK_OK(export_to(path, 2, true));
    CHECK_EQUAL(outside_files(path, NULL), 1);
    CHECK_EQUAL(seed_of(path), 2);
}

/* A disk that is full after some kilobytes. */
static void a_full_disk_changes_nothing(void)
{
    const char *path = test_path("full.onnx");
    CHECK_OK(export_to(path, 1, true));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        struct rlimit limit = {.rlim_cur = 10000, .rlim_max = 10000};
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(1);
        _exit(export_to(path, 2, true) != SDLF_ERROR_IO || strstr(sdlf_error_message(), "File too large") == NULL);
    }
    int result = -1;
    CHECK(child > 0 && waitpid(child, &result, 0) == child);
    CHECK_EQUAL(result, 0);
    CHECK_EQUAL(seed_of(path), 1);
    CHECK_EQUAL(files_like(path), 2);
}

/* Another export to the same name completes in the middle of one: whichever graph exists afterwards has its own
 * weights. */
static void two_meet(void)
{
#ifdef SDLF_TEST_EMULATED
    test_skip("an emulated program cannot begin itself again");
    return;
#endif
    static const struct {
        int when, before, ours, others, after; /* seeds */
    } meeting[] = {
        {BEFORE_GRAPH, 2, 1, 2, 1}, /* our weights exist, but its graph does not read them */
        {BEHIND_GRAPH, 1, 2, 1, 1}, /* its graph exists, and does not read our weights */
        {AT_REMOVAL, 1, 2, 1, 1},   /* it needs the weights that we are removing */
    };
    const char *path = test_path("meeting.onnx");
    for (size_t i = 0; i < sizeof meeting / sizeof meeting[0]; i++) {
        CHECK_OK(export_to(path, (uint64_t)meeting[i].before, true));
        rename_count = 0;
        other_path = path;
        other_seed = meeting[i].others == 1 ? "1" : "2";
        other_when = meeting[i].when;
        CHECK_OK(export_to(path, (uint64_t)meeting[i].ours, true));
        if (meeting[i].when == AT_REMOVAL) wait_for_other();
        CHECK_EQUAL(other_when, NEVER);
        CHECK_EQUAL(seed_of(path), meeting[i].after);
        CHECK_OK(export_to(path, 1, true));
        CHECK_EQUAL(files_like(path), 2);
    }
}

static void export_for_ever(const char *path, uint64_t seed)
{
    for (;; seed = 3 - seed)
        if (export_to(path, seed, true) != SDLF_OK) {
            printf("%s\n", sdlf_error_message());
            fflush(stdout);
            _exit(1);
        }
}

/* Several processes export to one name, some are killed midway. Concurrent readers find one of the two networks, or
 * that weights have just been removed, and never a mixture; later readers find a complete network. */
static void several_export_at_once(void)
{
    enum { WRITERS = 4, ROUNDS = 6 };
    const char *path = test_path("several.onnx");
    CHECK_OK(export_to(path, 1, true));
    for (int round = 0; round < ROUNDS; round++) {
        pid_t child[WRITERS];
        fflush(stdout);
        for (int i = 0; i < WRITERS; i++)
            if ((child[i] = fork()) == 0) export_for_ever(path, i % 2 ? 1 : 2);
        struct timespec start, now;
        clock_gettime(CLOCK_MONOTONIC, &start);
        do {
            CHECK(seed_of(path) >= 0);
            clock_gettime(CLOCK_MONOTONIC, &now);
        } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 100);
        for (int i = 0; i < WRITERS; i++) {
            int result = 0;
            CHECK(child[i] > 0 && kill(child[i], SIGKILL) == 0);
            CHECK(waitpid(child[i], &result, 0) == child[i] && WIFSIGNALED(result));
        }
        CHECK(seed_of(path) > 0);
    }
    CHECK_OK(export_to(path, 1, true));
    CHECK_EQUAL(outside_files(path, NULL), 1);
    CHECK_EQUAL(seed_of(path), 1);
}

int main(int count, char **words)
{
    if (count == 2) return export_to(words[0], strtoull(words[1], NULL, 10), true) != SDLF_OK; /* start_other */
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(old_weights_go_with_their_graph);
    RUN(other_files_stay);
    RUN(a_failed_rename_changes_nothing);
    RUN(a_kill_changes_nothing);
    RUN(a_full_disk_changes_nothing);
    RUN(two_meet);
    RUN(several_export_at_once);
    return test_summary();
}
