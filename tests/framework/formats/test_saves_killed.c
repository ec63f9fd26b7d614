/* SPDX-License-Identifier: MIT */
/* For every kind of save, killed at any system call: either the old file or the new one exists, complete, and leftover
 * temporary files are removed by the next save. */
#include "testing.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sdlf/sdlf.h>

#include "framework/formats/killed_calls.h"

/* ---- what is saved: two contents ---- */

static sdlf_model *model_of(int seed)
{
    sdlf_model *model = sdlf_model_create("net");
    sdlf_node x = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(40));
    sdlf_output(model, "y", sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.units = 40}));
    CHECK_OK(sdlf_model_build(model, (uint64_t)seed));
    /* a bias is short and stored in the graph: mixing seeds of bias and weights would be detected */
    sdlf_parameter *bias = sdlf_model_find_parameter(model, "fully_connected.bias");
    if (CHECK(bias != NULL)) *(float *)bias->value.data = (float)seed;
    return model;
}

/* Which of the two contents the file has; -1: neither. */
static int seed_of(sdlf_model *found)
{
    int seed = -1;
    for (int i = 1; i <= 2 && found != NULL; i++) {
        sdlf_model *model = model_of(i);
        if (sdlf_model_hash(model) == sdlf_model_hash(found)) seed = i;
        sdlf_model_free(model);
    }
    sdlf_model_free(found);
    return seed;
}

static sdlf_status save_weights(const char *path, int seed)
{
    sdlf_model *model = model_of(seed);
    sdlf_status status = sdlf_model_save(model, path);
    sdlf_model_free(model);
    return status;
}

static int read_weights(const char *path)
{
    sdlf_model *model = NULL;
    CHECK_OK(sdlf_model_open(&model, path));
    return seed_of(model);
}

static sdlf_status save_graph(const char *path, int seed)
{
    sdlf_model *model = model_of(seed);
    sdlf_status status = sdlf_model_to_onnx(model, path, &(sdlf_onnx_export_options){.external_data = true}, NULL);
    sdlf_model_free(model);
    return status;
}

static int read_graph(const char *path)
{
    sdlf_model *model = NULL;
    CHECK_OK(sdlf_model_from_onnx(&model, path, NULL));
    return seed_of(model);
}

static sdlf_status save_c(const char *path, int seed)
{
    sdlf_model *model = model_of(seed);
    sdlf_status status =
        sdlf_model_to_c(model, path, &(sdlf_c_export_options){.name = seed == 1 ? "one" : "two"}, NULL);
    sdlf_model_free(model);
    return status;
}

static int read_c(const char *path)
{
    static char text[1 << 20];
    FILE *file = fopen(path, "rb");
    size_t size = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file != NULL) fclose(file);
    text[size] = '\0';
    if (size < 2 || strcmp(text + size - 2, "}\n") != 0) return -1;
    return strstr(text, "void one_run(") != NULL ? 1 : strstr(text, "void two_run(") != NULL ? 2 : -1;
}

enum { ELEMENTS = 5000 };

static sdlf_status save_array(const char *path, int seed)
{
    static float values[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++) values[i] = (float)(seed * i);
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(ELEMENTS), values);
    return sdlf_tensor_write_file(&tensor, path);
}

static int read_array(const char *path)
{
    sdlf_tensor tensor;
    if (!CHECK_OK(sdlf_tensor_read_file(&tensor, path))) return -1;
    const float *values = tensor.data;
    int seed = (int)values[1];
    for (int i = 0; i < ELEMENTS; i++)
        if (values[i] != (float)(seed * i)) seed = -1;
    sdlf_tensor_release(&tensor, NULL);
    return seed;
}

static sdlf_status save_choices(const char *path, int seed)
{
    static const char *const text[] = {"sdlf plan file 1\n[cpu: it]\ngemm = one\n",
                                       "sdlf plan file 1\n[cpu: it]\ngemm = two\n"};
    sdlf_choices *choices = sdlf_choices_create();
    sdlf_status status = sdlf_choices_parse(choices, text[seed - 1], strlen(text[seed - 1]), "text");
    if (status == SDLF_OK) status = sdlf_choices_write(choices, path);
    sdlf_choices_free(choices);
    return status;
}

static int read_choices(const char *path)
{
    char text[256] = "";
    FILE *file = fopen(path, "rb");
    if (file == NULL) return -1;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return strstr(text, "gemm = one\n") != NULL ? 1 : strstr(text, "gemm = two\n") != NULL ? 2 : -1;
}

/* ---- killing ---- */

typedef struct subject {
    const char *name;
    sdlf_status (*save)(const char *path, int seed);
    int (*read)(const char *path);
    int files; /* that it is */
} subject;

/* True if the child was killed. */
static bool save_in_child(const subject *s, const char *path, int seed, int at)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        killed_calls_begin(at);
        _exit(s->save(path, seed) != SDLF_OK);
    }
    int result = -1;
    CHECK(child > 0 && waitpid(child, &result, 0) == child);
    if (WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL) return true;
    CHECK_EQUAL(result, 0);
    return false;
}

static void kill_everywhere(const subject *s)
{
    char folder[256], path[300];
    snprintf(folder, sizeof folder, "%s", test_path(s->name));
    snprintf(path, sizeof path, "%s/file", folder);
    CHECK(mkdir(folder, 0755) == 0);
    int at = 1, left = 0, old = 0, new = 0;
    while (save_in_child(s, path, 1, at) && at < 1000) { /* without an old file */
        CHECK(access(path, F_OK) != 0 || s->read(path) == 1);
        at++;
    }
    CHECK_OK(s->save(path, 1));
    CHECK_EQUAL(test_count_files(folder), s->files);
    for (at = 1; save_in_child(s, path, 2, at) && at < 1000; at++) {
        int seed = s->read(path);
        CHECK(seed == 1 || seed == 2);
        *(seed == 1 ? &old : &new) += 1;
        left += test_count_files(folder) > s->files;
        if (seed == 2) CHECK_OK(s->save(path, 1));
    }
    printf("%s: killed at %d calls; the old file %d times, the new one %d; something left %d times\n", s->name, at - 1,
           old, new, left);
    CHECK(old > 3 && new > 0 && left > 1);
    CHECK_OK(s->save(path, 1)); /* the other content's leftovers go, too */
    CHECK_EQUAL(s->read(path), 1);
    CHECK_EQUAL(test_count_files(folder), s->files);
}

static bool onnx_is_there(void)
{
    return save_graph(test_path("probe.onnx"), 1) == SDLF_OK || strstr(sdlf_error_message(), "protobuf-c") == NULL;
}

static void every_call(void)
{
    static const subject subjects[] = {{"weights", save_weights, read_weights, 1},
                                       {"c", save_c, read_c, 1},
                                       {"array", save_array, read_array, 1},
                                       {"choices", save_choices, read_choices, 1},
                                       {"graph", save_graph, read_graph, 2}};
    int count = (int)(sizeof subjects / sizeof subjects[0]) - !onnx_is_there();
    for (int i = 0; i < count; i++) kill_everywhere(&subjects[i]);
}

int main(void)
{
    RUN(every_call);
    return test_summary();
}
