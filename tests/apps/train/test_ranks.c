/* SPDX-License-Identifier: MIT */
/* sdlf train --communicator mpi: several ranks train like one; differences between them are reported; a rank that dies
 * or hangs ends all. */
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/mpirun.h"
#include "apps/train/ranks.h"

/* The words that precede a rank's own. */
static const char *mpirun(int ranks)
{
    return mpirun_words(ranks, "train --communicator mpi");
}

/* Train with that many ranks. */
static curve train(int ranks, const char *options)
{
    return train_with(mpirun(ranks), ranks, options);
}

static void same_training(void)
{
    if (!write_networks()) return;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        curve alone = train_alone(cases[c]);
        for (int ranks = 1; ranks <= 3; ranks++) {
            curve several = train(ranks, cases[c]);
            check_same_curve(&several, &alone);
        }
    }
}

/* Rounded gradients give about the same result, and a checkpoint records the type they were rounded to. */
static void gradient_dtypes(void)
{
    static const char options[] = "--net lenet5 --data digits:301 --batch 50 --epochs 2 --schedule constant";
    char text[256];
    curve exact = train(2, "--no-save --net lenet5 --data digits:301 --batch 50 --epochs 2 --schedule constant");
    for (int half = 0; half < 2; half++) {
        snprintf(text, sizeof text, "%s --out ranks16.safetensors --gradient-dtype %s", options,
                 half ? "float16" : "bfloat16");
        curve rounded = train(3, text);
        CHECK_EQUAL(rounded.epochs, EPOCHS);
        for (int e = 0; e < EPOCHS; e++) CHECK_CLOSE(rounded.loss[e], exact.loss[e], 0.02 * exact.loss[e]);
        CHECK(rounded.loss[1] != exact.loss[1]);
    }
    CHECK(shell("%s --resume ranks16.safetensors --epochs 3 --dry-run", mpirun(2)) == 0);
    SAYS("--gradient-dtype float16");
    CHECK(shell("%s --resume ranks16.safetensors --epochs 3 --gradient-dtype bfloat16", mpirun(2)) != 0);
    SAYS("gradient_dtype is not what the checkpoint was trained with (float16)");
    CHECK(shell("%s train --gradient-dtype bfloat16 --no-save", program_path) != 0);
    SAYS("--gradient-dtype needs --devices LIST or --communicator NAME");
}

/* Megabytes of memory for a training, from its first lines. */
static double memory_of(const char *words)
{
    double found = 0;
    CHECK(shell("%s --no-save --epochs 1 --no-test --data digits:20 --batch 10 --optimizer adam %s", mpirun(2),
                words) == 0);
    const char *memory = strstr(output, "memory ");
    CHECK(memory != NULL && sscanf(memory, "memory %lf MB", &found) == 1);
    return found;
}

/* Sharded optimizer states give the same bits and the same checkpoints, from which any number of ranks can
 * resume. */
static void sharded_states(void)
{
    static const char options[] = "--net lenet5 --data digits:301 --batch 50 --optimizer adamw --schedule constant";
    char text[512];
    for (int ranks = 1; ranks <= 3; ranks++) {
        snprintf(text, sizeof text, "--epochs 2 --out whole.safetensors %s", options);
        curve whole = train(ranks, text);
        snprintf(text, sizeof text, "--epochs 2 --out parts.safetensors --shard-states %s", options);
        curve parts = train(ranks, text);
        for (int e = 0; e < EPOCHS; e++) CHECK(strcmp(whole.weights[e], parts.weights[e]) == 0);
        CHECK_EQUAL(shell("cmp whole.safetensors parts.safetensors"), 0);
    }
    curve whole = train(
        2, "--no-save --epochs 4 --net lenet5 --data digits:301 --batch 50 --optimizer adamw --schedule constant");
    static const char *const others[] = {"--shard-states --keep best", ""};
    for (int i = 0; i < 2; i++) {
        shell("cp parts.safetensors going.safetensors");
        snprintf(text, sizeof text, "--resume going.safetensors --epochs 4 %s", others[i]);
        curve rest = train(2 + i, text);
        CHECK_EQUAL(rest.epochs, 2);
        for (int e = 0; e < rest.epochs; e++) CHECK_CLOSE(rest.loss[e], whole.loss[2 + e], 1e-4 * whole.loss[2 + e]);
    }
    /* simple_cnn's 6.4 million parameters have two states of 4 bytes; each is reduced by half, give or take the gaps
     * between buffers */
    double more = memory_of("--net simple_cnn"), less = memory_of("--net simple_cnn --shard-states");
    CHECK_CLOSE(more - less, 6.434634 * 4, 1);
    static const struct {
        const char *words, *says;
    } refused[] = {
        {"--ema 0.9", "shard_states is for updates, and without ema"},
        {"--optimizer lars", "lars cannot update a shard of a parameter"},
        {"--optimizer muon", "muon cannot update a shard of a parameter"},
    };
    for (int i = 0; i < 3; i++) {
        CHECK(shell("%s --shard-states --no-save --net lenet5 --data digits:60 %s", mpirun(2), refused[i].words) != 0);
        SAYS(refused[i].says);
    }
}

static void same_bits(void)
{
    curve first = train(3, cases[0]), second = train(3, cases[0]);
    for (int e = 0; e < EPOCHS; e++) CHECK(strcmp(first.weights[e], second.weights[e]) == 0);
}

/* Statistics of batch normalisation are separate on each rank, and the same on all after an epoch: otherwise the run
 * would fail. */
static void batch_norm(void)
{
    curve norm = train(2, "--no-save --net resnet20 --data digits:40 --batch 20 --epochs 1");
    CHECK_EQUAL(norm.epochs, 1);
}

static void resumed_by_more(void)
{
    remove("ranks.safetensors");
    curve whole = train(1, "--no-save --net lenet5 --data digits:301 --batch 50 --epochs 4 --schedule constant");
    train(2, "--out ranks.safetensors --net lenet5 --data digits:301 --batch 50 --epochs 2 --schedule constant");
    curve rest = train(3, "--resume ranks.safetensors --epochs 4");
    CHECK_EQUAL(rest.epochs, 2);
    for (int e = 0; e < rest.epochs; e++) CHECK_CLOSE(rest.loss[e], whole.loss[2 + e], 1e-4 * whole.loss[2 + e]);
}

/* One message, from rank 0, and all ranks end. */
static void differences(void)
{
    static const struct {
        const char *first, *second, *says;
    } different[] = {
        {"--data digits:60", "--data digits:61", "rank 1 on"},
        {"--data digits:60", "--data digits:61", "has a different set of training data from rank 0"},
        {"--net lenet5", "--net fast_cnn", "has a different network from rank 0"},
        {"--batch 30", "--batch 32", "has a different set of options from rank 0"},
        {"--seed 1", "--seed 2", "has a different set of options from rank 0"},
        {"--net lenet5", "--net absent.json", "cannot open 'absent.json'"},
        {"--seed 1", "--seed 1 --place conv2d=reference",
         "has a different placement of layers, and so a different order of gradients"},
        {"--seed 1", "--seed 1 --sync-batch-norm", "has a different set of options from rank 0"},
    };
    for (size_t i = 0; i < sizeof different / sizeof different[0]; i++) {
        const char *common = "--no-save --epochs 1 --data digits:60 --net lenet5";
        int code = shell("%s %s %s : -n 1 %s train --communicator mpi %s %s", mpirun(1), common, different[i].first,
                         program_path, common, different[i].second);
        CHECK(code != 0);
        SAYS(different[i].says);
        const char *error = strstr(output, "train: error:");
        CHECK(error != NULL && strstr(error + 1, "train: error:") == NULL);
    }
    CHECK(shell("%s --no-save --data digits:60 --net lenet5 --batch 2", mpirun(3)) != 0);
    SAYS("3 ranks need a batch of at least 3 samples, one for each; found 2");
}

/* Start two ranks that train for ever, wait for a checkpoint, and send a signal to the second; `output` gets their
 * output. */
static void strike(const char *signal_name)
{
    remove("struck.safetensors");
    shell("(%s --communicator-timeout 2 --net lenet5 --data digits:300 --epochs 100000 --out struck.safetensors "
          "> struck.log 2>&1 & m=$!; for i in $(seq 3000); do [ -e struck.safetensors ] && break; sleep 0.1; done; "
          "kill -%s $(cat /proc/$m/task/*/children | tr ' ' '\\n' | grep . | tail -n 1); "
          "for i in $(seq 300); do kill -0 $m 2> /dev/null || break; sleep 0.1; done; "
          "kill -0 $m 2> /dev/null && echo still there && kill -9 $m; wait $m; echo code $?; cat struck.log)",
          mpirun(2), signal_name);
    CHECK(strstr(output, "still there") == NULL); /* within 30 seconds */
    CHECK(strstr(output, "code 0\n") == NULL);
    sdlf_model *model = NULL;
    CHECK_OK(sdlf_model_open(&model, "struck.safetensors"));
    if (model != NULL) CHECK(sdlf_model_training_state(model)->present);
    sdlf_model_free(model);
}

static void killed(void)
{
    strike("KILL");
    SAYS("rank 1"); /* mpirun's own words: who, and which signal */
    SAYS("signal 9");
}

static void stopped(void)
{
    strike("STOP");
    SAYS("rank 0 on");
    SAYS("rank 1 on ");
    SAYS(" has not answered for 2 seconds");
    SAYS("struck.safetensors still holds the state after epoch");
}

/* A signal to one rank, as from a batch system, stops all ranks after the same step, with a checkpoint. */
static void interrupted(void)
{
    strike("INT");
    SAYS("stopped by a signal to another rank in epoch");
    SAYS("continue with --resume struck.safetensors");
    SAYS("code 130\n");
    CHECK(strstr(output, "train: error:") == NULL);
    CHECK(shell("%s --resume struck.safetensors --epochs 100000 --dry-run", mpirun(2)) == 0);
}

int main(void)
{
    if (!mpirun_begin("ranks")) return test_summary();
    RUN(same_training);
    RUN(gradient_dtypes);
    RUN(sharded_states);
    RUN(same_bits);
    RUN(batch_norm);
    RUN(resumed_by_more);
    RUN(differences);
    RUN(killed);
    RUN(stopped);
    RUN(interrupted);
    return test_summary();
}
