/* How the built-in networks are best trained. Chosen on 10,000 of MNIST's training pictures that were kept apart (docs/guides/train.md). */
#include <sdlf/trainer.h>

#include <string.h>

static const struct {
    const char *network;
    int64_t batch;
    sdlf_sgd_options sgd;
    sdlf_schedule schedule;
    float label_smoothing;
    sdlf_augmentation augment;
} own[] = {
    {.network = "fast_cnn",
     .batch = 32,
     .sgd = {.momentum = 0.9, .nesterov = true, .weight_decay = 0.001},
     .schedule = {.kind = SDLF_SCHEDULE_ONE_CYCLE, .peak = 0.06f},
     .label_smoothing = 0.1f,
     .augment = {.shift = 1}},
};

bool sdlf_network_builtin_training(sdlf_trainer_options *options, const char *name)
{
    if (options == NULL || name == NULL) return false;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (strcmp(own[i].network, name) != 0) continue;
        options->batch = own[i].batch;
        options->optimizer = sdlf_sgd_make(own[i].sgd);
        options->schedule = own[i].schedule;
        options->label_smoothing = own[i].label_smoothing;
        options->augment = own[i].augment;
        return true;
    }
    return false;
}
