/* SPDX-License-Identifier: MIT */
/* The training settings of built-in networks. */
#include <string.h>

#include <sdlf/sdlf.h>

#include "testing.h"

static void a_network_may_bring_its_own(void)
{
    sdlf_trainer_options options = {.epochs = 7, .seed = 5, .forward = "reference", .clip_norm = 2};
    CHECK(sdlf_network_builtin_training(&options, "fast_cnn"));
    CHECK_EQUAL(options.epochs, 7); /* options unrelated to the network are kept */
    CHECK_EQUAL((int64_t)options.seed, 5);
    CHECK_TEXT(options.forward, "reference");
    CHECK(options.clip_norm == 2);
    CHECK_OK(sdlf_optimizer_complete(&options.optimizer));
    CHECK_OK(sdlf_schedule_complete(&options.schedule));
    CHECK(options.batch > 0 && options.schedule.peak > 0 && options.optimizer.options.sgd.weight_decay > 0);
}

static void a_network_may_bring_epochs_and_groups(void)
{
    sdlf_trainer_options options = {.epochs = 3};
    CHECK(sdlf_network_builtin_training(&options, "cifar_fast"));
    CHECK(options.epochs == 8 && options.batch == 2000);
    CHECK_TEXT(options.optimizer.type->name, "muon");
    CHECK(strstr(options.rate_scales, "whiten.bias=") != NULL);
    CHECK(strstr(options.weight_decays, "head=") != NULL);
    CHECK(sdlf_network_builtin_training(&options, "fast_cnn")); /* and another none */
    CHECK(options.rate_scales[0] == '\0' && options.weight_decays[0] == '\0');
}

static void others_bring_nothing(void)
{
    const sdlf_trainer_options none = {.epochs = 3};
    sdlf_trainer_options options;
    memcpy(&options, &none, sizeof options);
    CHECK(!sdlf_network_builtin_training(&options, "simple_cnn"));
    CHECK(!sdlf_network_builtin_training(&options, "fast_cnn.json"));
    CHECK(memcmp(&options, &none, sizeof options) == 0);
}

int main(void)
{
    RUN(a_network_may_bring_its_own);
    RUN(a_network_may_bring_epochs_and_groups);
    RUN(others_bring_nothing);
    return test_summary();
}
