/* SPDX-License-Identifier: MIT */
/* sdlf train --devices: ranks that are threads of one process train like a single rank; a failing rank or a signal ends
 * all. */
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/train/ranks.h"

static curve train(int ranks, const char *options)
{
    char words[512];
    snprintf(words, sizeof words, "%s train --devices %s", program_path, ranks == 2 ? "0,0" : "0,0,0");
    return train_with(words, ranks, options);
}

static void same_training(void)
{
    if (!write_networks()) return;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        curve alone = train_alone(cases[c]);
        for (int ranks = 2; ranks <= 3; ranks++) {
            curve several = train(ranks, cases[c]);
            check_same_curve(&several, &alone);
        }
    }
}

/* Sharded optimizer states, and a second run: the same bits. */
static void same_bits(void)
{
    static const char options[] = "--no-save --net lenet5 --data digits:301 --batch 50 --optimizer adamw --epochs 2";
    char text[256];
    snprintf(text, sizeof text, "--shard-states %s", options);
    curve first = train(3, options), second = train(3, options), parts = train(3, text);
    for (int e = 0; e < EPOCHS; e++) CHECK(strcmp(first.weights[e], second.weights[e]) == 0);
    for (int e = 0; e < EPOCHS; e++) CHECK(strcmp(first.weights[e], parts.weights[e]) == 0);
}

/* Only one rank prints. */
static int count_lines(const char *begin)
{
    int count = 0;
    for (const char *at = output; at != NULL && *at != '\0'; at = strchr(at, '\n'), at += at != NULL)
        count += strncmp(at, begin, strlen(begin)) == 0;
    return count;
}

static void one_tells(void)
{
    remove("told.safetensors");
    CHECK_EQUAL(shell("%s train --devices 0,0 --net lenet5 --data digits:60 --epochs 2 --out told.safetensors "
                      "--log told.jsonl",
                      program_path),
                0);
    SAYS("ranks  2 of threads; devices 0,0 of ");
    CHECK_EQUAL(count_lines("epoch 1/2"), 1);
    CHECK_EQUAL(count_lines("data "), 1);
    CHECK_EQUAL(count_lines("saved "), 1);
    CHECK_EQUAL(shell("grep -c epoch..1,.epochs told.jsonl"), 0);
    CHECK(strcmp(output, "1\n") == 0);
    CHECK_EQUAL(shell("%s train --resume told.safetensors --epochs 3 --devices 0,0,0", program_path), 0);
    SAYS("epoch 3/3");
}

/* Impossible combinations: one line, before anything is done. */
static void refusals(void)
{
    static const struct {
        const char *words, *says;
    } wrong[] = {
        {"train --devices 0,1", "--devices 0,1: expected device 0, the only one the cpu calculator has here, found 1"},
        {"train --devices 0,x", "--devices 0,x: expected numbers separated by commas, like 0,1, found 'x'"},
        {"train --devices ,0", "expected numbers separated by commas, like 0,1, found ',0'"},
        {"train --devices 0,", "expected numbers separated by commas, like 0,1, found ''"},
        {"train --devices 0,0 --device 0", "--devices 0,0 and --device contradict each other"},
        {"train --devices 0,0 --communicator mpi", "--devices 0,0 and --communicator contradict each other"},
        {"train --devices 0,0 --communicator-timeout 3", "--communicator-timeout contradict each other"},
        {"train --communicator threads", "--communicator threads is chosen by --devices"},
        {"train --devices 0 --shard-states", "--shard-states needs --devices LIST"},
        {"train --devices 0,0,0 --data digits:60 --batch 2 --no-save", "3 ranks need a batch of at least 3 samples"},
        {"bench scaling --devices 0", "--devices 0: expected two devices at least"},
        {"eval --devices 0,1 --weights none", "--devices 0,1: expected device 0, the only one"},
        {"run --devices 0,1 none", "--devices 0,1: expected device 0, the only one"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK(shell("%s %s", program_path, wrong[i].words) != 0);
        SAYS(wrong[i].says);
        const char *error = strstr(output, ": error: ");
        CHECK(error != NULL && strstr(error + 1, ": error: ") == NULL);
    }
    CHECK(shell("OMPI_COMM_WORLD_SIZE=2 %s train --devices 0,0", program_path) != 0);
    SAYS("--devices 0,0 is for one process, but mpirun has started 2: run without mpirun");
}

/* A failing rank names itself and ends all; saved files stay complete. */
static void one_fails(void)
{
    CHECK_EQUAL(shell("%s train --quiet --net lenet5 --data digits:60 --epochs 1 --out kept.safetensors", program_path),
                0);
    CHECK(shell("%s train --devices 0,0 --net absent.json --data digits:60", program_path) != 0);
    SAYS("cannot open 'absent.json'"); /* all detect it: one reports it */
    CHECK_EQUAL(count_lines("sdlf train: error:"), 1);
    CHECK(shell("%s train --devices 0,0 --net lenet5 --data digits:60 --out absent/a.safetensors", program_path) != 0);
    SAYS("sdlf train: error: rank 0 on "); /* only one: no other keeps files */
    CHECK_EQUAL(count_lines("sdlf train: error:"), 1);
    CHECK(shell("%s train --devices 0,0,0 --net lenet5 --data digits:60 --epochs 3 --learning-rate 1e30 --out "
                "kept.safetensors",
                program_path) != 0);
    CHECK_EQUAL(count_lines("sdlf train: error:"), 1);
    sdlf_model *model = NULL;
    CHECK_OK(sdlf_model_open(&model, "kept.safetensors"));
    sdlf_model_free(model);
}

/* Ctrl-C stops all ranks after the same step, with a checkpoint. */
static void interrupted(void)
{
    remove("stopped.safetensors");
    shell("(%s train --devices 0,0,0 --net lenet5 --data digits:300 --epochs 100000 --out stopped.safetensors "
          "> stopped.log 2>&1 & m=$!; for i in $(seq 3000); do [ -e stopped.safetensors ] && break; sleep 0.1; done; "
          "kill -TERM $m; for i in $(seq 300); do kill -0 $m 2> /dev/null || break; sleep 0.1; done; "
          "kill -0 $m 2> /dev/null && echo still there && kill -9 $m; wait $m; echo code $?; cat stopped.log)",
          program_path);
    CHECK(strstr(output, "still there") == NULL); /* within 30 seconds */
    SAYS("code 143\n");
    SAYS("stopped by Terminated in epoch");
    CHECK_EQUAL(count_lines("stopped by"), 1);
    CHECK_EQUAL(shell("%s train --resume stopped.safetensors --devices 0,0 --epochs 100000 --dry-run", program_path),
                0);
}

/* Random samples with the shape of digits. */
static bool write_samples(const char *path, int64_t count)
{
    sdlf_tensor samples;
    if (!CHECK_OK(sdlf_tensor_create(&samples, NULL, SDLF_FLOAT32, sdlf_shape(count, 1, 28, 28)))) return false;
    float *value = samples.data;
    for (int64_t i = 0; i < sdlf_tensor_count(&samples); i++) value[i] = (float)(i * 7919 % 1000) / 1000;
    bool good = CHECK_OK(sdlf_tensor_write_file(&samples, path));
    sdlf_tensor_release(&samples, NULL);
    return good;
}

/* Tests and runs divided among several devices give the results of one. */
static void inference(void)
{
    CHECK_EQUAL(
        shell("%s train --quiet --net lenet5 --data digits:300 --epochs 1 --out infer.safetensors", program_path), 0);
    static char alone[sizeof output];
    static const char *const commands[] = {
        "eval --weights infer.safetensors --data digits:301 | grep -v -e time -e sdlf -e ranks",
        "eval --weights infer.safetensors --data digits:12 --tta shift | grep -v -e time -e sdlf -e ranks",
        "run infer.safetensors --input seven.npy --top 1 | cut -c 1-16", /* sums in another order differ */
        "run infer.safetensors --input seven.npy | cut -c 1-30",
        "run infer.safetensors --input one.npy --top 1",
    };
    if (!write_samples("seven.npy", 7) || !write_samples("one.npy", 1)) return;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        const char *bar = strstr(commands[i], " |");
        int length = bar != NULL ? (int)(bar - commands[i]) : (int)strlen(commands[i]);
        CHECK_EQUAL(shell("%s %s", program_path, commands[i]), 0);
        memcpy(alone, output, sizeof output);
        CHECK(alone[0] != '\0');
        for (int ranks = 2; ranks <= 3; ranks++) {
            shell("%s %.*s --devices %s%s", program_path, length, commands[i], ranks == 2 ? "0,0" : "0,0,0",
                  bar != NULL ? bar : "");
            if (!CHECK(strcmp(output, alone) == 0)) printf("%s:\n%s\n%s\n", commands[i], alone, output);
        }
    }
    CHECK(shell("%s run infer.safetensors --devices 0,0 --input absent.npy", program_path) != 0);
    SAYS("cannot open 'absent.npy'");
    CHECK(shell("%s run infer.safetensors --devices 0,0 --input wrong=seven.npy", program_path) != 0);
    SAYS("device 0: --input wrong=seven.npy: the model has no input 'wrong'");
}

int main(void)
{
    if (!shell_begin("devices")) return test_summary();
    RUN(same_training);
    RUN(same_bits);
    RUN(one_tells);
    RUN(refusals);
    RUN(one_fails);
    RUN(interrupted);
    RUN(inference);
    return test_summary();
}
