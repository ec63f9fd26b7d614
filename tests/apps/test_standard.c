/* SPDX-License-Identifier: MIT */
/* "-" instead of a file name, for all commands: standard input, standard output, or a clear rejection. */
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/program.h"
#include "onnx/fixtures.h"

#define CALCULATOR "--calculator", "reference"

static char weights[512], picture[512], net[512];

/* Trained weights, the same in an ONNX file, and an image: an IDX file, which every build reads. */
static void prepare(void)
{
    unsigned char idx[16 + 28 * 28] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 28, 0, 0, 0, 28};
    for (int y = 4; y < 24; y++) idx[16 + 28 * y + 14] = 255;
    snprintf(weights, sizeof weights, "%s", test_path("small.safetensors"));
    snprintf(net, sizeof net, "%s", small_network());
    snprintf(picture, sizeof picture, "%s", test_path("one"));
    test_write_file(picture, idx, sizeof idx);
    SDLF(0, "train", "--net", net, "--data", "digits:200", "--epochs", "1", CALCULATOR, "--out", weights);
}

/* ---- every option that takes a file ---- */

typedef enum meaning { INPUT, OUTPUT, REFUSED } meaning;

/* The words of a command with "-" instead of a file name. Inputs are empty, and the message names them. */
static const struct {
    const char *command, *option; /* "": an operand */
    meaning meaning;
    const char *words[16]; /* NULL ends them */
} cases[] = {
    {"train", "data", REFUSED, {"train", "--data", "-"}},
    {"train", "test-data", REFUSED, {"train", "--test-data", "-"}},
    {"train", "net", INPUT, {"train", "--net", "-", "--no-save"}},
    {"train", "from", INPUT, {"train", "--from", "-", "--no-save"}},
    {"train", "plan-file", REFUSED, {"train", "--plan-file", "-"}},
    {"train", "out", REFUSED, {"train", "-o", "-"}},
    {"train", "resume", REFUSED, {"train", "--resume", "-"}},
    {"train", "log", REFUSED, {"train", "--log", "-"}},
    {"train", "tensorboard", REFUSED, {"train", "--tensorboard", "-"}},
    {"eval", "weights", INPUT, {"eval", "--weights", "-"}},
    {"eval", "net", INPUT, {"eval", "--weights", weights, "--net", "-"}},
    {"eval", "data", REFUSED, {"eval", "--weights", weights, "--data", "-"}},
    {"predict", "weights", INPUT, {"predict", "--weights", "-", picture}},
    {"predict", "net", INPUT, {"predict", "--weights", weights, "--net", "-", picture}},
    {"predict", "labels", INPUT, {"predict", "--weights", weights, "--labels", "-", picture}},
    {"predict", "", INPUT, {"predict", "--weights", weights, "-"}},
    {"run", "input", INPUT, {"run", weights, "--input", "-"}},
    {"run", "input", INPUT, {"run", weights, "--input", "image=-"}},
    {"run", "output", OUTPUT, {"run", weights, "--input", picture, "--output", "-"}},
    {"run", "output", OUTPUT, {"run", weights, "--input", picture, "--output", "output=-"}},
    {"run", "labels", INPUT, {"run", weights, "--input", picture, "--labels", "-"}},
    {"run", "", INPUT, {"run", "-", "--input", picture}},
    {"export", "out", OUTPUT, {"export", "--c", weights, "--out", "-"}},
    {"export", "weights", INPUT, {"export", "--weights", "-", "--c", "--out", "x.c"}},
    {"export", "net", INPUT, {"export", "--net", "-", "--c", "--out", "x.c"}},
    {"export", "", INPUT, {"export", "-", "--c", "--out", "x.c"}},
    {"doctor", "", INPUT, {"doctor", "-"}},
    {"info", "net", INPUT, {"info", "--net", "-"}},
    {"info", "weights", INPUT, {"info", "--weights", "-"}},
    {"info", "graph", OUTPUT, {"info", "--net", net, "--graph", "-"}},
    {"info", "plan-file", REFUSED, {"info", "--plan-file", "-"}},
    {"bench network", "net", INPUT, {"bench", "network", "--net", "-"}},
    {"bench network", "weights", INPUT, {"bench", "network", "--weights", "-"}},
    {"bench network", "data", REFUSED, {"bench", "network", "--data", "-"}},
    {"bench network", "plan-file", REFUSED, {"bench", "network", "--plan-file", "-"}},
    {"bench model", "plan-file", REFUSED, {"bench", "model", "--plan-file", "-", weights}},
    {"bench model", "", INPUT, {"bench", "model", "-"}},
    {"bench epoch", "net", INPUT, {"bench", "epoch", "--net", "-", "--device-calculator", "reference"}},
    {"bench epoch", "data", REFUSED, {"bench", "epoch", "--data", "-"}},
    {"bench placement", "net", INPUT, {"bench", "placement", "--net", "-"}},
    {"bench placement", "data", REFUSED, {"bench", "placement", "--data", "-"}},
    {"bench placement",
     "svg",
     OUTPUT,
     {"bench", "placement", "--svg", "-", "--net", net, "--data", "digits:100", "--batch", "16", "--iterations", "1",
      "--device-calculator", "reference"}},
    {"bench conv", "from", INPUT, {"bench", "conv", "--from", "-"}},
    {"bench conv",
     "json",
     OUTPUT,
     {"bench", "conv", "--json", "-", "--shape", "1x1x3x3", "--kernel", "1x1x1", CALCULATOR, "--copy-size=64kB",
      "--repeats=1"}},
    {"bench conv",
     "svg",
     OUTPUT,
     {"bench", "conv", "--svg", "-", "--shape", "1x1x3x3", "--kernel", "1x1x1", CALCULATOR, "--copy-size=64kB",
      "--repeats=1"}},
    {"bench kernels",
     "json",
     OUTPUT,
     {"bench", "kernels", "--json", "-", "--operation", "add", CALCULATOR, "--copy-size=64kB", "--elements=1024",
      "--repeats=1"}},
    {"gcn infer", "graph", REFUSED, {"gcn", "infer", "--graph", "-"}},
    {"gcn infer", "features-file", INPUT, {"gcn", "infer", "--features-file", "-", "--graph", "uniform:4,4,1"}},
    {"gcn train", "graph", REFUSED, {"gcn", "train", "--graph", "-"}},
    {"gcn train", "out", REFUSED, {"gcn", "train", "--graph", "planetoid:/none", "--out", "-"}},
    {"parity", "net", INPUT, {"parity", "--net", "-"}},
    {"parity", "weights", INPUT, {"parity", "--weights", "-"}},
    {"parity", "data", REFUSED, {"parity", "--data", "-"}},
    {"compare", "", REFUSED, {"compare", "-"}},
    {"report", "out", OUTPUT, {"report", weights, "--no-time", "--out", "-"}},
    {"report", "data", REFUSED, {"report", weights, "--data", "-"}},
    {"report", "picture", REFUSED, {"report", weights, "--picture", "-"}},
    {"report", "", REFUSED, {"report", "-"}},
    {"serve", "weights", REFUSED, {"serve", "--weights", "-"}},
    {"serve", "net", REFUSED, {"serve", "--weights", weights, "--net", "-"}},
    {"serve", "labels", REFUSED, {"serve", "--weights", weights, "--labels", "-"}},
    {"sweep", "folder", REFUSED, {"sweep", "--try", "batch=1", "--folder", "-"}},
    {"train", "config", REFUSED, {"train", "--config", "-"}},
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* Run in a separate folder, where no file "-" may appear. */
static const program *in_a_folder(const char *const *words, const char *input)
{
    static program p;
    static char folder[512];
    snprintf(folder, sizeof folder, "%s", test_path("."));
    p = (program){.folder = folder, .input = input};
    program_run(&p, words);
    CHECK(access(test_path("-"), F_OK) != 0);
    return &p;
}

static void every_option(void)
{
    for (int i = 0; i < CASES; i++) {
        const program *p = in_a_folder(cases[i].words, NULL);
        bool good = cases[i].meaning == OUTPUT ? CHECK_EQUAL(p->code, 0) && CHECK(p->out[0] != '\0')
                    : cases[i].meaning == REFUSED
                        ? CHECK_EQUAL(p->code, 2) && CHECK_SAYS(p, "which cannot be used here")
                        : CHECK(p->code == 1 || p->code == 2) && CHECK_SAYS(p, "/dev/stdin");
        if (!good) printf("  sdlf %s, %s: %s\n", cases[i].command, cases[i].option, p->err);
    }
}

/* All options that accept a file, by the name of the value in the command's help, are listed above. */
static void no_option_is_left_out(void)
{
    static const char *const values[] = {"FILE",      "[FILE]", "[NAME=]FILE", "FILE.npy", "FILE.svg",
                                         "FILE.html", "DIR",    "SET",         "GRAPH"};
    char command[24] = "";
    int found = 0;
    for (int i = 0; i < CASES; i++) {
        if (strcmp(command, cases[i].command) == 0) continue;
        snprintf(command, sizeof command, "%s", cases[i].command);
        const char *words[5] = {"help", command};
        char *space = strchr(command, ' ');
        if (space) {
            *space = '\0';
            words[2] = space + 1;
        }
        const program *p = in_a_folder(words, NULL);
        if (space) *space = ' ';
        CHECK_EQUAL(p->code, 0);
        const char *examples = strstr(p->out, "\nExamples");
        for (const char *at = p->out; (at = strstr(at, " --")) != NULL && (!examples || at < examples);) {
            char name[32] = "", value[32] = "";
            sscanf(at += 3, "%31s %31s", name, value);
            bool file = strcmp(name, "net") == 0;
            for (size_t j = 0; j < sizeof values / sizeof values[0]; j++) file = file || strcmp(value, values[j]) == 0;
            bool listed = false;
            for (int j = 0; j < CASES; j++)
                listed = listed || (strcmp(cases[j].command, command) == 0 && strcmp(cases[j].option, name) == 0);
            found += file;
            listed = listed || strcmp(name, "config") == 0; /* every command has it; one is tested */
            if (file && !CHECK(listed)) printf("  sdlf %s --%s %s\n", command, name, value);
        }
    }
    CHECK(found > 30);
}

/* ---- what comes through ---- */

/* An image, an array, weights and a network from standard input are treated as from a file. */
static void inputs(void)
{
    char text[64];
    const program *p =
        in_a_folder((const char *const[]){"predict", "--weights", weights, CALCULATOR, picture, NULL}, NULL);
    CHECK_EQUAL(p->code, 0);
    snprintf(text, sizeof text, "%s", strstr(p->out, "   ") ? strstr(p->out, "   ") : "nothing");
    p = in_a_folder((const char *const[]){"predict", "--weights", weights, CALCULATOR, "-", NULL}, picture);
    CHECK_SAYS(p, text);
    p = in_a_folder((const char *const[]){"predict", "--weights", "-", CALCULATOR, picture, NULL}, weights);
    CHECK_SAYS(p, text);
    p = in_a_folder((const char *const[]){"run", weights, CALCULATOR, "--input", "-", "--top", "1", NULL}, picture);
    CHECK_EQUAL(p->code, 0);
    p = in_a_folder((const char *const[]){"info", "--net", "-", CALCULATOR, NULL}, net);
    CHECK_EQUAL(p->code, 0);
    p = in_a_folder((const char *const[]){"predict", "--weights", "-", CALCULATOR, "-", NULL}, picture);
    CHECK_EQUAL(p->code, 2);
    CHECK_SAYS(p, "'-' is given for two inputs, but standard input can be read only once");
    p = in_a_folder((const char *const[]){"run", "-", "--input", "image=-", NULL}, weights);
    CHECK_EQUAL(p->code, 2);
    CHECK_SAYS(p, "'-' is given for two inputs");
}

/* Standard output has only the file, which can be used from there: an array, a C file, a model. */
static void outputs(void)
{
    const program *p =
        in_a_folder((const char *const[]){"run", weights, CALCULATOR, "--input", picture, "--output", "-", NULL}, NULL);
    CHECK_EQUAL(p->code, 0);
    CHECK(p->out_used == 128 + 4 * 10 && memcmp(p->out, "\x93NUMPY", 6) == 0);
    char array[512];
    snprintf(array, sizeof array, "%s", test_path("y"));
    test_write_file(array, p->out, p->out_used);
    static const char text[] = "{\"name\": \"same\", \"input\": {\"name\": \"x\", \"shape\": [10]}, \"layers\": "
                               "[{\"type\": \"relu\"}], \"outputs\": {\"y\": \"relu\"}}";
    char same[512], saved[512];
    snprintf(same, sizeof same, "%s", test_path("same.json"));
    snprintf(saved, sizeof saved, "%s", test_path("same.onnx"));
    test_write_file(same, text, sizeof text - 1);
    p = in_a_folder((const char *const[]){"export", "--c", weights, "-o", "-", NULL}, NULL);
    CHECK(strstr(p->out, "_run(const float *input, float *output)") != NULL);
    CHECK(strstr(p->out, "saved") == NULL);
    p = in_a_folder((const char *const[]){"run", weights, "--input", picture, "--output", "-", "--json", NULL}, NULL);
    CHECK_EQUAL(p->code, 2);
    CHECK_SAYS(p, "--output - and --json: only one of the two can go to standard output");
    if (!onnx_available()) return;
    SDLF(0, "export", "--net", same, "-o", saved);
    p = in_a_folder((const char *const[]){"run", saved, "--input", "-", NULL}, array); /* an array, by its content */
    CHECK_SAYS(p, "y  float32 1x10");
    char command[2048];
    snprintf(command, sizeof command, "'%s' export '%s' -o - | '%s' predict --weights - '%s' > '%s'", program_path,
             weights, program_path, picture, test_path("piped"));
    CHECK(system(command) == 0);
}

int main(void)
{
    RUN(prepare);
    RUN(every_option);
    RUN(no_option_is_left_out);
    RUN(inputs);
    RUN(outputs);
    return test_summary();
}
