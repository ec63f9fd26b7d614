/* SPDX-License-Identifier: MIT */
/* sdlf gcn: inference and training on small graphs, on every calculator, and rejected arguments. */
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sdlf/sdlf.h>

#include "apps/program.h"
#include "framework/formats/npy.h"
#include "testing.h"

/* Two groups of 10 nodes: a node is linked to those of its group, and its features say little about the group. */
static const char *write_groups(void)
{
    static char specification[4200];
    char edges[4000] = "", features[2000] = "", labels[200] = "", part[3][200] = {"", "", ""};
    for (int i = 0; i < 20; i++) {
        for (int j = i + 1; j < 20; j++) {
            if (i / 10 == j / 10 && (i + j) % 2 == 0) sprintf(edges + strlen(edges), "%d\t%d\n", i, j);
        }
        sprintf(features + strlen(features), "%d:1 %d:1\n", i / 10, 2 + i % 5);
        sprintf(labels + strlen(labels), "%d\n", i / 10);
        sprintf(part[i % 3] + strlen(part[i % 3]), "%d\n", i);
    }
    test_write_file(test_path("edges.txt"), edges, strlen(edges));
    test_write_file(test_path("features.txt"), features, strlen(features));
    test_write_file(test_path("labels.txt"), labels, strlen(labels));
    test_write_file(test_path("train.txt"), part[0], strlen(part[0]));
    test_write_file(test_path("val.txt"), part[1], strlen(part[1]));
    test_write_file(test_path("test.txt"), part[2], strlen(part[2]));
    snprintf(specification, sizeof specification, "planetoid:%s", test_path(""));
    return specification;
}

static double number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    CHECK(json_is_number(value));
    return json_number_value(value);
}

/* The same results on every calculator, fused or not. */
static void inference_agrees(void)
{
    double expected = 0;
    for (int i = 0; test_calculator_class_at(i); i++) {
        const char *name = test_calculator_class_at(i)->name;
        if (test_calculator_class_at(i) == test_guarded_class()) continue; /* only in tests */
        for (int fused = 0; fused < 2; fused++) {
            const program *p = SDLF(0, "gcn", "infer", "--graph", "rmat:300,2000", "--features", "10", "--hidden", "6",
                                    "--repeats", "2", "--json", "--calculator", name, fused ? NULL : "--no-fusion");
            json_t *result = json_loads(p->out, 0, NULL);
            if (!CHECK(json_is_object(result))) return;
            CHECK_EQUAL(json_integer_value(json_object_get(result, "nodes")), 300);
            CHECK_EQUAL((int64_t)json_array_size(json_object_get(result, "steps")), fused ? 2 : 3);
            if (expected == 0) expected = number(result, "largest_sum");
            CHECK_CLOSE(number(result, "largest_sum"), expected, 1e-9);
            CHECK(number(result, "ms") > 0);
            json_decref(result);
        }
    }
}

static void inference_is_shown(void)
{
    const program *p = SDLF(0, "gcn", "infer", "--graph", "uniform:200,900", "--features", "8", "--repeats", "1",
                            "--dtype", "f32", "--normalize", "row", "--no-self-loops", "--ladder");
    CHECK_SAYS(p, "graph  uniform (200 nodes, 900 edges drawn, seed 1)  200 nodes");
    CHECK_SAYS(p, "net    log_softmax(A (X W))  X 200x8  W 8x16  float32");
    CHECK_SAYS(p, "spmm_csr");
    CHECK_SAYS(p, "check  largest sum of a vertex's outputs -");
    CHECK_SAYS(p, "dense product");
    CHECK_SAYS(SDLF(2, "gcn", "infer", "--graph", "uniform:200,900", "--dense-algorithm", "best"),
               "calculator 'cpu' has no gemm algorithm 'best'");
}

/* Every rung of the ladder can compute X W, with the same result except for rounding; text and JSON have the same
 * checksum. */
static void rungs_can_be_chosen(void)
{
    for (int i = 0; test_calculator_class_at(i); i++) {
        const char *name = test_calculator_class_at(i)->name;
        if (test_calculator_class_at(i) == test_guarded_class()) continue; /* only in tests */
        const program *p = SDLF(0, "gcn", "infer", "--graph", "rmat:300,2000", "--repeats", "1", "--ladder", "--json",
                                "--calculator", name);
        json_t *result = json_loads(p->out, 0, NULL);
        const json_t *rungs = json_object_get(result, "ladder");
        char checksum[40];
        if (!CHECK(json_array_size(rungs) > 0)) return;
        CHECK_EQUAL((int64_t)strlen(json_string_value(json_object_get(result, "checksum"))), 8);
        snprintf(checksum, sizeof checksum, "checksum %s", json_string_value(json_object_get(result, "checksum")));
        CHECK_SAYS(SDLF(0, "gcn", "infer", "--graph", "rmat:300,2000", "--repeats", "1", "--calculator", name),
                   checksum);
        for (size_t r = 0; r < json_array_size(rungs) && json_array_size(rungs) > 1; r++) {
            const char *rung = json_string_value(json_object_get(json_array_get(rungs, r), "algorithm"));
            p = SDLF(0, "gcn", "infer", "--graph", "rmat:300,2000", "--repeats", "1", "--json", "--calculator", name,
                     "--dense-algorithm", rung);
            json_t *chosen = json_loads(p->out, 0, NULL);
            CHECK_CLOSE(number(chosen, "largest_sum"), number(result, "largest_sum"), 1e-9);
            json_decref(chosen);
        }
        json_decref(result);
    }
}

static void features_come_from_files(void)
{
    double values[12] = {0.5, 1, -1, 2, 0, 3, 1, 1, 2, 2, -4, 0};
    const sdlf_tensor good = sdlf_tensor_view(SDLF_FLOAT64, sdlf_shape(4, 3), values),
                      few = sdlf_tensor_view(SDLF_FLOAT64, sdlf_shape(3, 4), values);
    const char *path = test_path("features.npy");
    CHECK_OK(npy_write(&good, path));
    CHECK_SAYS(SDLF(0, "gcn", "infer", "--graph", "uniform:4,6", "--features-file", path, "--repeats", "1"), "X 4x3");
    CHECK_SAYS(SDLF(2, "gcn", "infer", "--graph", "uniform:4,6", "--features-file", path, "--features", "3"),
               "they exclude each other");
    CHECK_SAYS(SDLF(2, "gcn", "infer", "--graph", write_groups(), "--features", "3"),
               "the graph has its own 7 features a node");
    CHECK_SAYS(SDLF(0, "gcn", "infer", "--graph", write_groups(), "--repeats", "1"), "X 20x7");
    CHECK_OK(npy_write(&few, path));
    CHECK_SAYS(SDLF(1, "gcn", "infer", "--graph", "uniform:4,6", "--features-file", path),
               "expected floating-point features of shape 4xN, found float64 3x4");
    for (int i = 0; i < 12; i++) values[i] = (double)NAN;
    CHECK_OK(npy_write(&good, path));
    CHECK_SAYS(SDLF(1, "gcn", "infer", "--graph", "uniform:4,6", "--features-file", path, "--repeats", "1"),
               "no vertex has outputs that are numbers");
}

/* A star with one additional edge: five nodes, four edges and a loop at the centre. */
static void a_graph_is_summed_up(void)
{
    static const char star[] = "0 1\n0 2\n0 3\n0 4\n1 2\n";
    char specification[4200];
    snprintf(specification, sizeof specification, "snap:%s", test_path("star.txt"));
    test_write_file(test_path("star.txt"), star, sizeof star - 1);
    const program *p = SDLF(0, "gcn", "infer", "--graph", specification, "--features", "4", "--repeats", "1");
    CHECK_SAYS(p, "5 nodes  10 elements  longest row 5  ");
}

static void training_learns(void)
{
    char specification[4200], weights[4200];
    snprintf(specification, sizeof specification, "%s", write_groups());
    snprintf(weights, sizeof weights, "%s", test_path("gcn.safetensors"));
    for (int i = 0; test_calculator_class_at(i); i++) {
        const char *name = test_calculator_class_at(i)->name;
        if (test_calculator_class_at(i) == test_guarded_class()) continue; /* only in tests */
        const program *p = SDLF(0, "gcn", "train", "--graph", specification, "--epochs", "60", "--patience", "0",
                                "--seeds", "2", "--learning-rate", "0.05", "--json", "--calculator", name);
        json_t *result = json_loads(p->out, 0, NULL);
        if (!CHECK(json_is_object(result))) return;
        CHECK(number(result, "mean_test") > 0.9);
        CHECK_EQUAL((int64_t)json_array_size(json_object_get(result, "runs")), 2);
        json_decref(result);
    }
    const program *p = SDLF(0, "gcn", "train", "--graph", specification, "--epochs", "40", "--patience", "2", "--seeds",
                            "2", "--out", weights);
    CHECK_SAYS(p, "graph_conv 16, relu, graph_conv 2");
    CHECK_SAYS(p, "of 2 seeds");
    CHECK_SAYS(p, "saved  ");
    sdlf_model *model = NULL;
    if (CHECK_OK(sdlf_model_open(&model, weights)))
        CHECK(sdlf_model_find_parameter(model, "graph_conv_2.weight") != NULL);
    sdlf_model_free(model);
}

static void epochs_are_shown_on_a_terminal(void)
{
    static program p; /* too large for the stack of some */
    p = (program){.errors_terminal = true};
    const char *const words[] = {"gcn", "train", "--graph", write_groups(), "--epochs", "20", NULL};
    setenv("TERM", "xterm-256color", 1);
    program_run(&p, words);
    CHECK_EQUAL(p.code, 0);
    CHECK_SAYS(&p, "\rseed 1  epoch 1 of 20  loss ");
    p = (program){.terminal = true};
    program_run(&p, words);
    CHECK_EQUAL(p.code, 0);
    CHECK(strstr(p.out, "epoch 1 of 20") == NULL && strstr(p.err, "epoch 1 of 20") == NULL);
}

/* Ctrl-C between two training runs, or during one, keeps the completed ones. */
static void a_signal_leaves_what_was_done(void)
{
    static program p;
    char specification[4200], weights[4200];
    snprintf(specification, sizeof specification, "%s", write_groups());
    snprintf(weights, sizeof weights, "%s", test_path("stopped.safetensors"));
    for (int i = 0; i < 5; i++) {
        unlink(weights);
        p = (program){.code = 0};
        program_start(&p, (const char *const[]){"gcn", "train", "--graph", specification, "--epochs", "1", "--patience",
                                                "0", "--seeds", "10000", "--threads", "1", "--out", weights, NULL});
        CHECK(program_wait_for(&p, "seed   3"));
        kill(p.process, SIGINT);
        program_finish(&p);
        CHECK_EQUAL(p.code, 130);
        CHECK_SAYS(&p, "mean   test ");
        CHECK_SAYS(&p, " of the training with seed ");
        CHECK(access(weights, R_OK) == 0);
    }
}

/* The same seed gives the same result with any number of threads. */
static void training_repeats_itself(void)
{
    char specification[4200], first[400] = "";
    snprintf(specification, sizeof specification, "%s", write_groups());
    for (int threads = 1; threads <= 3; threads++) {
        char count[16];
        snprintf(count, sizeof count, "%d", threads);
        const program *p =
            SDLF(0, "gcn", "train", "--graph", specification, "--epochs", "20", "--threads", count, "--json");
        json_t *result = json_loads(p->out, 0, NULL);
        const json_t *run = json_array_get(json_object_get(result, "runs"), 0);
        char *loss = json_dumps(json_object_get(run, "train_loss"), JSON_ENCODE_ANY);
        if (threads == 1) snprintf(first, sizeof first, "%s", loss != NULL ? loss : "");
        CHECK_TEXT(loss != NULL ? loss : "?", first);
        free(loss);
        json_decref(result);
    }
}

/* Cora's published split, if the folder of real data has it. 20 seeds have a mean of 81.67% and a deviation of 0.67, so
 * that the mean of three is below 80.5% for one choice of seeds in a thousand. */
static void cora_is_classified(void)
{
    if (TEST_SANITIZED) {
        test_skip("sanitized code takes minutes for it");
        return;
    }
    const char *folder = test_data("graph/cora");
    if (folder == NULL) {
        test_skip("SDLF_DATA names no folder with graph/cora/ in it");
        return;
    }
    char specification[4200];
    snprintf(specification, sizeof specification, "planetoid:%s", folder);
    double sum = 0;
    for (int seed = 1; seed <= 3; seed++) {
        char number_of[16];
        snprintf(number_of, sizeof number_of, "%d", seed);
        const program *p = SDLF(0, "gcn", "train", "--graph", specification, "--seed", number_of, "--json");
        json_t *result = json_loads(p->out, 0, NULL);
        CHECK_EQUAL(json_integer_value(json_object_get(result, "nodes")), 2708);
        CHECK_EQUAL(json_integer_value(json_object_get(result, "elements")), 13264);
        sum += number(result, "mean_test");
        json_decref(result);
    }
    CHECK(sum / 3 >= 0.805);
}

static void nonsense_is_refused(void)
{
    CHECK_SAYS(SDLF(2, "gcn"), "infer");
    CHECK_SAYS(SDLF(2, "gcn", "infr"), "did you mean 'infer'?");
    CHECK_SAYS(SDLF(2, "gcn", "train"), "--graph");
    CHECK_SAYS(SDLF(2, "gcn", "infer", "--graph", "web"), "known are: snap, planetoid, rmat, uniform");
    CHECK_SAYS(SDLF(2, "gcn", "train", "--graph", "uniform:5,5"), "this one has no features, classes, parts");
    const program *p = SDLF(1, "gcn", "train", "--graph", write_groups(), "--out", "/nowhere/x");
    CHECK_SAYS(p, "the folder /nowhere is not there");
    CHECK_TEXT(p->out, ""); /* reported before training */
    test_write_file(test_path("bad.txt"), "0 1\n0 x\n", 8);
    char specification[4200];
    snprintf(specification, sizeof specification, "snap:%s", test_path("bad.txt"));
    CHECK_SAYS(SDLF(1, "gcn", "infer", "--graph", specification), "bad.txt:2: expected the second node's number");
    CHECK_SAYS(SDLF(0, "gcn", "infer", "--help"), "snap:FILE");
    CHECK_SAYS(SDLF(0, "gcn", "--help"), "classify the nodes");
}

int main(void)
{
    RUN(inference_agrees);
    RUN(inference_is_shown);
    RUN(rungs_can_be_chosen);
    RUN(features_come_from_files);
    RUN(a_graph_is_summed_up);
    RUN(training_learns);
    RUN(epochs_are_shown_on_a_terminal);
    RUN(a_signal_leaves_what_was_done);
    RUN(training_repeats_itself);
    RUN(cora_is_classified);
    RUN(nonsense_is_refused);
    return test_summary();
}
