/* SPDX-License-Identifier: MIT */
/* Algorithm choices: plans use existing choices and race the algorithms of other operations; files store choices. */
#include <sdlf/sdlf.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "framework/choices.h"
#include "testing.h"

static sdlf_model *convolution(void)
{
    sdlf_model *net = sdlf_model_create("convolution");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(2, 9, 9));
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.name = "conv", .filters = 3, .kernel = {3, 3}});
    sdlf_output(net, "y", x);
    return net;
}

/* Create a plan on cpu, where "direct" and "im2col" are raced; others run on request, or need channels last. */
static sdlf_status make_plan(sdlf_plan **plan, sdlf_model *net, sdlf_calculator *cpu, sdlf_choices *choices)
{
    return sdlf_plan_create(plan, net,
                            &(sdlf_plan_options){.batch = 2, .forward = cpu, .mode = SDLF_INFER, .choices = choices});
}

static const char *algorithm_of(const sdlf_plan *plan)
{
    for (int i = 0; i < sdlf_plan_step_count(plan); i++) {
        sdlf_step_info step = sdlf_plan_step_info(plan, i);
        if (strcmp(step.operation, "conv2d_forward") == 0) return step.algorithm;
    }
    return NULL;
}

typedef struct bench {
    sdlf_model *net;
    sdlf_calculator *cpu;
    sdlf_choices *choices;
    sdlf_plan *plan;
} bench;

static bench set_up(void)
{
    bench b = {.net = convolution(), .choices = sdlf_choices_create()};
    CHECK_OK(sdlf_calculator_open(&b.cpu, "cpu", NULL));
    return b;
}

static void tear_down(bench *b)
{
    sdlf_plan_free(b->plan);
    sdlf_choices_free(b->choices);
    sdlf_model_free(b->net);
    sdlf_calculator_close(b->cpu);
}

static void a_race_is_run_once(void)
{
    bench b = set_up();
    CHECK_OK(make_plan(&b.plan, b.net, b.cpu, b.choices));
    CHECK_EQUAL(sdlf_choices_count(b.choices), 1);
    CHECK(sdlf_choices_changed(b.choices));
    const choice *entry = &b.choices->entries[0];
    CHECK_TEXT(entry->algorithm, algorithm_of(b.plan));
    CHECK(strstr(entry->times, "direct ") != NULL && strstr(entry->times, "im2col ") != NULL);
    CHECK(strstr(entry->times, "naive") == NULL && strstr(entry->times, "winograd-4x4") == NULL); /* only on request */
    CHECK(strncmp(entry->device, "cpu: ", 5) == 0);
    CHECK(strstr(entry->operation, "conv2d_forward float32 x 2,2,9,9 w 3,2,3,3") == entry->operation);
    b.choices->changed = false;
    sdlf_plan *again = NULL;
    CHECK_OK(make_plan(&again, b.net, b.cpu, b.choices));
    CHECK(!sdlf_choices_changed(b.choices));
    CHECK_TEXT(algorithm_of(again), algorithm_of(b.plan));
    sdlf_plan_free(again);
    tear_down(&b);
}

/* An algorithm that the calculator has is used, whatever a race would choose; an unknown one is raced and replaced. */
static void names_are_obeyed(void)
{
    static const char *const names[] = {"direct", "im2col", "abacus"};
    bench b = set_up();
    CHECK_OK(make_plan(&b.plan, b.net, b.cpu, b.choices));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        choice was = b.choices->entries[0];
        CHECK_OK(choices_add(b.choices, "cpu: another machine", was.operation, "direct", ""));
        was = b.choices->entries[b.choices->count - 1];
        for (int e = 0; e < b.choices->count; e++) {
            if (strcmp(b.choices->entries[e].device, "cpu: another machine") != 0) was = b.choices->entries[e];
        }
        CHECK_OK(choices_add(b.choices, was.device, was.operation, names[i], ""));
        b.choices->changed = false;
        sdlf_plan *plan = NULL;
        CHECK_OK(make_plan(&plan, b.net, b.cpu, b.choices));
        bool known = strcmp(names[i], "abacus") != 0;
        CHECK_EQUAL(sdlf_choices_changed(b.choices), !known);
        if (known) CHECK_TEXT(algorithm_of(plan), names[i]);
        if (!known) CHECK(strcmp(algorithm_of(plan), "abacus") != 0);
        CHECK_EQUAL(sdlf_choices_count(b.choices), 2);
        sdlf_plan_free(plan);
    }
    tear_down(&b);
}

/* An algorithm requested by name is neither benchmarked nor recorded. */
static void a_forced_algorithm_wins(void)
{
    bench b = set_up();
    CHECK_OK(sdlf_plan_create(
        &b.plan, b.net,
        &(sdlf_plan_options){.batch = 2, .forward = b.cpu, .conv_algorithm = "im2col", .choices = b.choices}));
    CHECK_TEXT(algorithm_of(b.plan), "im2col");
    CHECK_EQUAL(sdlf_choices_count(b.choices), 0);
    tear_down(&b);
}

/* The same for dense products; "auto" requests none, and they are raced. */
static void products_are_forced_alike(void)
{
    bench b = set_up();
    sdlf_model_free(b.net);
    b.net = sdlf_model_create("product");
    sdlf_fully_connected(b.net, sdlf_input(b.net, "x", SDLF_FLOAT32, sdlf_shape(7)),
                         &(sdlf_fully_connected_options){.units = 5});
    sdlf_plan_options options = {.batch = 2, .forward = b.cpu, .gemm_algorithm = "built-in", .choices = b.choices};
    CHECK_OK(sdlf_plan_create(&b.plan, b.net, &options));
    CHECK_EQUAL(sdlf_choices_count(b.choices), 0);
    sdlf_plan_free(b.plan);
    options.gemm_algorithm = "auto";
    CHECK_OK(sdlf_plan_create(&b.plan, b.net, &options));
    CHECK_EQUAL(sdlf_choices_count(b.choices), 1);
    tear_down(&b);
}

static char *read_all(const char *path)
{
    static char text[4096];
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[length] = '\0';
    if (file) fclose(file);
    return text;
}

static void files_hold_them_in_order(void)
{
    char path[64];
    snprintf(path, sizeof path, "choices-%ld.txt", (long)getpid());
    sdlf_choices *choices = sdlf_choices_create(), *read = sdlf_choices_create();
    CHECK_OK(sdlf_choices_read(choices, path)); /* not there yet */
    CHECK_OK(choices_add(choices, "cuda: B", "y 2", "tiled", ""));
    CHECK_OK(choices_add(choices, "cuda: A", "z 1", "direct", "direct 1.0 us"));
    CHECK_OK(choices_add(choices, "cuda: A", "x [1] = 2 # 3\n", "direct", "one\ntwo"));
    CHECK_OK(choices_add(choices, "cuda: A", "z 1", "tiled", "tiled 0.5 us"));
    CHECK_OK(sdlf_choices_write(choices, path));
    CHECK(!sdlf_choices_changed(choices));
    CHECK_TEXT(read_all(path), "sdlf plan file 1\n"
                               "\n[cuda: A]\n"
                               "x  1    2   3  = direct  # one two\n"
                               "z 1 = tiled  # tiled 0.5 us\n"
                               "\n[cuda: B]\n"
                               "y 2 = tiled\n");
    CHECK_OK(sdlf_choices_read(read, path));
    CHECK(!sdlf_choices_changed(read));
    CHECK_EQUAL(sdlf_choices_count(read), 3);
    CHECK_TEXT(choices_find(read, "cuda: A", "z 1"), "tiled");
    CHECK(choices_find(read, "cuda: A", "y 2") == NULL);
    unlink(path);
    sdlf_choices_free(choices);
    sdlf_choices_free(read);
}

static void broken_files_say_where(void)
{
    static const struct {
        const char *text, *message;
    } broken[] = {
        {"", "f:1: not a plan file: it is empty"},
        {"# a remark\n", "it is empty"},
        {"{}\n", "f:1: not a plan file: it should begin with 'sdlf plan file 1', and begins with '{}'"},
        {"sdlf plan file 2\n", "f:1: not a plan file"},
        {"sdlf plan file 1\nx = y\n", "f:2: expected '[CALCULATOR: DEVICE]' before the first choice, found 'x = y'"},
        {"sdlf plan file 1\n[cpu: a\n", "f:2: expected '[CALCULATOR: DEVICE]', found '[cpu: a'"},
        {"sdlf plan file 1\n\n[cpu: a]\nx y\n", "f:4: expected 'OPERATION = ALGORITHM', found 'x y'"},
        {"sdlf plan file 1\n[cpu: a]\nx = y = z\n", "f:3: expected 'OPERATION = ALGORITHM'"},
        {"sdlf plan file 1\n[cpu: a]\nx =  # y\n", "f:3: expected the name of an algorithm after '='"},
        {"sdlf plan file 1\n[cpu: a]\nx = y z\n", "f:3: expected the name of an algorithm after '=', found 'y z'"},
        {"sdlf plan file 1\n[cpu: a]\nx = y\n[cpu: b]\nx = y\n[cpu: a]\nx = z\n",
         "f:7: 'x' is chosen for a second time"},
    };
    sdlf_choices *choices = sdlf_choices_create();
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        CHECK_FAILS(sdlf_choices_parse(choices, broken[i].text, strlen(broken[i].text), "f"), SDLF_ERROR_FORMAT,
                    broken[i].message);
        CHECK_EQUAL(sdlf_choices_count(choices), 0);
    }
    CHECK_FAILS(sdlf_choices_parse(choices, "sdlf plan file 1\n\0", 18, "f"), SDLF_ERROR_FORMAT, "a byte 0");
    CHECK_FAILS(sdlf_choices_read(choices, "."), SDLF_ERROR_IO, ".");
    sdlf_choices_free(choices);
}

/* Files that are too long: too many choices, which would take long to sort, and long lines, which each choice
 * would copy. */
static void long_files_are_refused(void)
{
    enum { MOST = 1 << 15, LONG = 5000 };
    char *text = malloc(MOST * 16 + LONG + 100), *at = text;
    sdlf_choices *choices = sdlf_choices_create();
    at += sprintf(at, "sdlf plan file 1\n[cpu: a]\n");
    for (int i = 0; i < MOST; i++) at += sprintf(at, "%d = y\n", i);
    CHECK_OK(sdlf_choices_parse(choices, text, (size_t)(at - text), "f"));
    CHECK_EQUAL(sdlf_choices_count(choices), MOST);
    at += sprintf(at, "x = y\n");
    CHECK_FAILS(sdlf_choices_parse(choices, text, (size_t)(at - text), "f"), SDLF_ERROR_FORMAT,
                "f:32771: expected at most 32768 choices, found more");
    at = text + sprintf(text, "sdlf plan file 1\n[cpu: ");
    memset(at, 'a', LONG);
    strcpy(at + LONG, "]\nx = y\n");
    CHECK_FAILS(sdlf_choices_parse(choices, text, strlen(text), "f"), SDLF_ERROR_FORMAT,
                "f:2: expected at most 4096 bytes in a line, found 5007");
    sdlf_choices_free(choices);
    free(text);
}

static sdlf_status choose_and_plan(void *argument)
{
    bench *b = argument;
    static const char text[] = "sdlf plan file 1\n[cpu: a]\nx = y # z\n";
    sdlf_choices *choices = sdlf_choices_create();
    sdlf_plan *plan = NULL;
    if (choices == NULL) return SDLF_ERROR_MEMORY;
    sdlf_status status = sdlf_choices_parse(choices, text, sizeof text - 1, "f");
    if (status == SDLF_OK) status = make_plan(&plan, b->net, b->cpu, choices);
    sdlf_plan_free(plan);
    sdlf_choices_free(choices);
    return status;
}

static void memory_may_run_out(void)
{
    bench b = set_up();
    CHECK_OK(sdlf_model_build(b.net, 1));
    test_every_allocation("choices and a plan", choose_and_plan, &b);
    tear_down(&b);
}

/* Several processes that have raced different operations write to one file, which then has all of them. */
static void processes_add_to_one_file(void)
{
    enum { PROCESSES = 8 };
    const char *path = test_path("shared.plan");
    pid_t child[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        child[i] = fork();
        if (child[i] != 0) continue;
        char operation[16];
        snprintf(operation, sizeof operation, "x %d", i);
        sdlf_choices *choices = sdlf_choices_create();
        sdlf_status status = choices_add(choices, "cpu", operation, "direct", "");
        if (status == SDLF_OK) status = choices_add(choices, "cpu", "of all", "direct", "");
        if (status == SDLF_OK) status = sdlf_choices_write(choices, path);
        _exit(status != SDLF_OK);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int ended = -1;
        CHECK(waitpid(child[i], &ended, 0) == child[i] && ended == 0);
    }
    sdlf_choices *all = sdlf_choices_create();
    CHECK_OK(sdlf_choices_read(all, path));
    CHECK_EQUAL(sdlf_choices_count(all), PROCESSES + 1);
    CHECK_OK(choices_add(all, "cpu", "x 3", "im2col", "")); /* our own choice wins over the file's */
    CHECK_OK(sdlf_choices_write(all, path));
    sdlf_choices *again = sdlf_choices_create();
    CHECK_OK(sdlf_choices_read(again, path));
    CHECK_TEXT(choices_find(again, "cpu", "x 3"), "im2col");
    sdlf_choices_free(again);
    sdlf_choices_free(all);
}

int main(void)
{
    RUN(a_race_is_run_once);
    RUN(names_are_obeyed);
    RUN(a_forced_algorithm_wins);
    RUN(products_are_forced_alike);
    RUN(files_hold_them_in_order);
    RUN(broken_files_say_where);
    RUN(memory_may_run_out);
    RUN(processes_add_to_one_file);
    RUN(long_files_are_refused);
    return test_summary();
}
