/* SPDX-License-Identifier: MIT */
/* Creating a trainer: options, calculators, plans, loaders; all the memory that training will use. */
#include "framework/trainer_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/auto_augment.h"
#include "framework/mixing.h"
#include "framework/model_internal.h"
#include "framework/require.h"
#include "framework/whitening.h"

enum {
    TEST_BATCH = 64, /* at least, so that testing is not slowed by small training batches */
    STAGED = 4,      /* batches kept on a device that cannot hold the data set */
};

static void free_plans(sdlf_trainer *trainer)
{
    sdlf_evaluator_free(trainer->test);
    sdlf_plan_free(trainer->tail);
    sdlf_plan_free(trainer->full);
    trainer->test = NULL;
    trainer->full = trainer->tail = NULL;
}

void sdlf_trainer_free(sdlf_trainer *trainer)
{
    if (trainer == NULL) return;
    sdlf_loader_free(trainer->loader);
    if (trainer->sender != NULL) trainer->sender->type->queues->fence_free(trainer->sender, trainer->sent);
    sdlf_trainer_release_feed(trainer);
    sdlf_trainer_release_best(trainer);
    sdlf_trainer_release_weights(trainer);
    free_plans(trainer);
    if (trainer->model->shards > 0) (void)model_shard_states(trainer->model, 0, 0); /* frees, so it cannot fail */
    sdlf_communicator *ranks = trainer->options.communicator;
    for (int index = 0; index < trainer->calculator_count; index++) {
        if (ranks != NULL && ranks->type->forget != NULL) ranks->type->forget(ranks, trainer->calculators[index]);
        sdlf_calculator_close(trainer->calculators[index]);
    }
    free(trainer->rate_scales);
    free(trainer->rate_offsets);
    free(trainer->weight_decays);
    free(trainer->checkpoint);
    free(trainer);
}

/* The trainer's calculator of that name, opened when first requested. NULL for NULL. */
static sdlf_status use_calculator(sdlf_trainer *trainer, const char *name, sdlf_calculator **calculator)
{
    *calculator = NULL;
    if (name == NULL) return SDLF_OK;
    for (int index = 0; index < trainer->calculator_count; index++)
        if (strcmp(trainer->calculators[index]->type->name, name) == 0) *calculator = trainer->calculators[index];
    if (*calculator != NULL) return SDLF_OK;
    if (trainer->calculator_count == TRAINER_MAX_CALCULATORS)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "trainer: more than %d calculators", TRAINER_MAX_CALCULATORS);
    sdlf_calculator_options options = {
        .threads = trainer->options.threads, .device = trainer->options.device, .math = trainer->options.math};
    sdlf_status status = sdlf_calculator_open(calculator, name, &options);
    if (status != SDLF_OK) return status;
    trainer->calculators[trainer->calculator_count++] = *calculator;
    trainer->host_only = trainer->host_only && sdlf_calculator_is_on_host(*calculator);
    return SDLF_OK;
}

/* Opens the calculators of individual layers. `placement` has space for placement_count. */
static sdlf_status place_layers(sdlf_trainer *trainer, sdlf_placement *placement)
{
    sdlf_status status = SDLF_OK;
    if (trainer->options.placement_count > 0 && trainer->options.placement == NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "trainer: options->placement is NULL");
    for (int index = 0; index < trainer->options.placement_count && status == SDLF_OK; index++) {
        const sdlf_trainer_placement *wanted = &trainer->options.placement[index];
        if (wanted->layer == NULL)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "trainer: options->placement[%d].layer is NULL", index);
        placement[index] = (sdlf_placement){.layer = wanted->layer};
        status = use_calculator(trainer, wanted->forward, &placement[index].forward);
        if (status == SDLF_OK) status = use_calculator(trainer, wanted->backward, &placement[index].backward);
    }
    return status;
}

/* Sets the options for this rank's part of a batch of `count`. Returns the number of samples in it. */
static int64_t take_part(sdlf_plan_options *options, const sdlf_communicator *ranks, int64_t count)
{
    int64_t share = sdlf_communicator_share(ranks, count);
    options->batch = share > 0 ? share : 1; /* a rank without samples processes one that is not counted */
    options->first_sample = sdlf_communicator_first(ranks, count);
    options->samples_of_all = count;
    options->samples_that_count = share;
    options->rank_fraction =
        options->weighted ? 1 : (double)share / (double)count; /* weights are shares of all ranks' */
    return share;
}

/* Creates the plans for full batches, for a last one and for testing; `feed` is the source of training data, NULL:
 * batches are written. */
static sdlf_status make_plans(sdlf_trainer *trainer, const sdlf_dataset *test, sdlf_plan_options options,
                              const sdlf_feed *feed)
{
    int64_t last = trainer->train.samples.shape.dim[0] % trainer->batch;
    const sdlf_communicator *ranks = trainer->options.communicator;
    options.mode = SDLF_TRAIN;
    take_part(&options, ranks, trainer->batch);
    options.feed = feed;
    sdlf_status status = sdlf_plan_create(&trainer->full, trainer->model, &options);
    if (status != SDLF_OK) return status;
    options.reuse = trainer->full;
    if (last != 0) {
        sdlf_feed tail = {.samples = NULL};
        if (feed != NULL) tail = sdlf_trainer_tail_feed(trainer, feed);
        options.feed = feed != NULL ? &tail : NULL;
        trainer->tail_share = take_part(&options, ranks, last);
        status = sdlf_plan_create(&trainer->tail, trainer->model, &options);
    }
    options.feed = NULL;
    options.accumulate = false;
    if (status != SDLF_OK || test == NULL) return status;
    options.batch = sdlf_communicator_share(ranks, trainer->batch);
    if (options.batch < TEST_BATCH && !sdlf_dataset_has_pixel_labels(test)) options.batch = TEST_BATCH;
    return sdlf_evaluator_create(&trainer->test, trainer->model, test, &options);
}

/* True if the device has memory for the data set beside the network, and the options allow it. */
static bool data_fit(const sdlf_trainer *trainer, const sdlf_plan_options *options, const sdlf_feed *staged)
{
    int64_t bytes = sdlf_tensor_bytes(&staged->sample_data) + sdlf_tensor_bytes(&staged->label_data);
    if (trainer->options.device_data > 0 && bytes > trainer->options.device_data) return false;
    sdlf_calculator *calculator = options->forward;
    int64_t available, total;
    if (calculator->type->memory_info == NULL) return true; /* the allocation fails if there is not enough */
    if (calculator->type->memory_info(calculator, &available, &total) != SDLF_OK) return true;
    sdlf_plan_options without = *options;
    without.mode = SDLF_TRAIN;
    without.batch = sdlf_communicator_share(trainer->options.communicator, trainer->batch);
    without.feed = staged;
    sdlf_memory_info memory;
    if (sdlf_plan_measure(&memory, trainer->model, &without) != SDLF_OK) return true; /* creating it reports why */
    return bytes <= available - memory.arena - memory.parameters - memory.states;
}

/* A loader is required for what a device's steps cannot draw themselves: samples that are read one by one, float
 * targets, weights, steps of several batches, labels of positions, mixed samples, a part of each batch. */
static bool must_load(const sdlf_trainer *trainer)
{
    return trainer->train.read != NULL || trainer->train.labels.data == NULL ||
           sdlf_dataset_has_targets(&trainer->train) || sdlf_dataset_positions(&trainer->train) > 0 ||
           trainer->weights != NULL || trainer->options.accumulate > 1 ||
           sdlf_mixing_wanted(&trainer->options.mixing) || trainer->options.communicator != NULL;
}

/* On a device the training data are resident if they fit, else staged. */
static sdlf_status choose_plans(sdlf_trainer *trainer, const sdlf_dataset *test, const sdlf_plan_options *options)
{
    if (sdlf_calculator_is_on_host(options->forward) || must_load(trainer))
        return make_plans(trainer, test, *options, NULL);
    sdlf_feed feed = sdlf_trainer_make_feed(trainer);
    feed.staged = STAGED;
    sdlf_status status = SDLF_ERROR_MEMORY;
    if (data_fit(trainer, options, &feed)) {
        feed.staged = 0;
        trainer->data_place = SDLF_DATA_RESIDENT;
        status = make_plans(trainer, test, *options, &feed);
    }
    if (status != SDLF_ERROR_MEMORY) return status;
    free_plans(trainer);
    feed.staged = STAGED;
    trainer->data_place = SDLF_DATA_STAGED;
    return make_plans(trainer, test, *options, &feed);
}

/* Names of parameters, and values that are measured from the data, require a built model; building gives it the values
 * that the first plan would draw. */
static sdlf_status prepare_parameters(sdlf_trainer *trainer)
{
    sdlf_model *model = trainer->model;
    const sdlf_trainer_options *options = &trainer->options;
    bool measured = !model->built && sdlf_is_whitened(model);
    if (!measured && options->rate_scales[0] == '\0' && options->weight_decays[0] == '\0') return SDLF_OK;
    sdlf_status status = model->built ? SDLF_OK : sdlf_model_build(model, options->seed);
    if (status == SDLF_OK && measured) status = sdlf_whiten(model, &trainer->train);
    return status == SDLF_OK ? sdlf_trainer_prepare_groups(trainer) : status;
}

static sdlf_status prepare_plans(sdlf_trainer *trainer, const sdlf_dataset *test)
{
    const sdlf_trainer_options *wanted = &trainer->options;
    size_t count = wanted->placement_count > 0 ? (size_t)wanted->placement_count : 1;
    sdlf_placement *placement = calloc(count, sizeof *placement);
    if (placement == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "trainer: no memory");
    sdlf_plan_options options = {
        .placement = placement,
        .placement_count = wanted->placement_count,
        .no_fusion = wanted->no_fusion,
        .optimizer = wanted->optimizer,
        .clip_norm = wanted->clip_norm,
        .loss_scale = wanted->loss_scale != 1 ? wanted->loss_scale : 0,
        .label_smoothing = wanted->label_smoothing,
        .loss = wanted->loss,
        .weighted = trainer->weights != NULL,
        .mixed = trainer->mixed,
        .ema = (double)wanted->ema,
        .lookahead = wanted->lookahead,
        .lookahead_share = (double)wanted->lookahead_share,
        .accumulate = wanted->accumulate > 1,
        .seed = wanted->seed,
        .conv_algorithm = wanted->conv_algorithm,
        .choices = wanted->choices,
        .communicator = wanted->communicator,
        .sync_batch_norm = wanted->sync_batch_norm,
        .gradient_dtype = wanted->gradient_dtype,
        .shard_states = wanted->shard_states,
    };
    const char *forward = wanted->forward != NULL ? wanted->forward : sdlf_calculator_class_default()->name;
    sdlf_status status = use_calculator(trainer, forward, &options.forward);
    if (status == SDLF_OK)
        status = use_calculator(trainer, wanted->backward != NULL ? wanted->backward : forward, &options.backward);
    if (status == SDLF_OK) status = prepare_parameters(trainer);
    if (status == SDLF_OK) status = place_layers(trainer, placement);
    options.rate_scales = trainer->rate_scales;
    options.rate_offsets = trainer->rate_offsets;
    options.weight_decays = trainer->weight_decays;
    if (status == SDLF_OK) status = choose_plans(trainer, test, &options);
    if (status == SDLF_OK && trainer->scale.scale > 0 && options.loss_scale != 0)
        status = sdlf_plan_set_loss_scale(trainer->full, &trainer->scale);
    free(placement);
    return status;
}

/* Infers shapes (the first plan allocates parameters, unless they exist), and sets the samples' normalisation. */
static sdlf_status prepare_model(sdlf_trainer *trainer, const sdlf_dataset *train)
{
    sdlf_model *model = trainer->model;
    sdlf_normalization *normalization = sdlf_model_normalization(model);
    sdlf_status status = model->built ? SDLF_OK : model_infer(model);
    if (status == SDLF_OK && train->class_names != NULL && !trainer->options.resume)
        status = sdlf_model_set_classes(model, (const char *const *)train->class_names, train->class_count);
    if (status == SDLF_OK) status = sdlf_classifier_find(&trainer->classifier, model, train);
    if (status != SDLF_OK) return status;
    if (trainer->options.label_smoothing > 0 && trainer->classifier.labels != NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "trainer: label_smoothing is for networks without a loss layer of their own; "
                         "'%s' has one: give it there",
                         sdlf_model_name(model));
    status = sdlf_trainer_prepare_weights(trainer);
    if (status != SDLF_OK) return status;
    sdlf_dataset *view = &trainer->train;
    sdlf_dataset_normalize_for(view, model);
    if (!normalization->known)
        *normalization = (sdlf_normalization){
            .mean = view->mean, .scale = view->scale, .channels = view->channels, .fit = view->fit, .known = true};
    trainer->labels = trainer->classifier.labels != NULL ? trainer->classifier.labels : "labels";
    if (trainer->options.resume) return sdlf_trainer_take_state(trainer);
    sdlf_model_training_state(model)->present = false;
    return sdlf_model_require_states(model, 0); /* drop the states of an earlier training */
}

/* The requested loss becomes the model's; a loss layer of the model takes precedence. */
static sdlf_status choose_loss(sdlf_trainer *trainer)
{
    sdlf_loss *loss = &trainer->options.loss;
    sdlf_status status = SDLF_OK;
    trainer->model->loss = SDLF_LOSS_CROSS_ENTROPY;
    if (*loss != SDLF_LOSS_CROSS_ENTROPY)
        status = sdlf_model_set_loss(trainer->model, *loss);
    else
        *loss = sdlf_model_loss(trainer->model);
    if (status == SDLF_OK && *loss == SDLF_LOSS_HUBER)
        status = sdlf_model_set_huber_delta(trainer->model, trainer->options.huber_delta);
    return status;
}

/* Batches are in the memory that is fastest to upload, if they are uploaded. */
static sdlf_status prepare_loader(sdlf_trainer *trainer)
{
    const sdlf_trainer_options *options = &trainer->options;
    const sdlf_communicator *ranks = options->communicator;
    sdlf_calculator *uploads = sdlf_classifier_uploads(&trainer->classifier, trainer->full);
    if (uploads != NULL && uploads->type->queues != NULL) {
        sdlf_status status = uploads->type->queues->fence_create(uploads, &trainer->sent);
        if (status != SDLF_OK) return status;
        trainer->sender = uploads;
        sdlf_trainer_pin_weights(trainer);
    }
    return sdlf_loader_create(&trainer->loader, &trainer->train,
                              &(sdlf_loader_options){.batch = trainer->batch,
                                                     .shuffle = true,
                                                     .augment = options->augment,
                                                     .mixing = options->mixing,
                                                     .automatic = options->automatic,
                                                     .rank = ranks != NULL ? ranks->rank : 0,
                                                     .ranks = ranks != NULL ? ranks->rank_count : 0,
                                                     .seed = options->seed,
                                                     .calculator = uploads});
}

static sdlf_status set_up(sdlf_trainer *trainer, const sdlf_dataset *train, const sdlf_dataset *test)
{
    const sdlf_trainer_options *options = &trainer->options;
    int64_t count = train->samples.shape.dim[0];
    const sdlf_communicator *ranks = options->communicator;
    if (ranks != NULL && (options->batch < count ? options->batch : count) < ranks->rank_count)
        return sdlf_fail(
            SDLF_ERROR_ARGUMENT, "trainer: %d ranks need a batch of at least %d samples, one for each; found %lld",
            ranks->rank_count, ranks->rank_count, (long long)(options->batch < count ? options->batch : count));
    if (options->checkpoint != NULL) {
        trainer->checkpoint = strdup(options->checkpoint);
        if (trainer->checkpoint == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "trainer: no memory");
        sdlf_status writable = sdlf_trainer_leads(trainer) ? sdlf_can_write_file(trainer->checkpoint) : SDLF_OK;
        if (writable != SDLF_OK) return writable;
    }
    snprintf(trainer->data, sizeof trainer->data, "%s",
             options->data != NULL ? options->data : sdlf_dataset_title(train));
    trainer->train = *train;
    trainer->batch = options->batch < count ? options->batch : count;
    int64_t full = count / trainer->batch, each = options->accumulate;
    trainer->steps = (full + each - 1) / each + (count % trainer->batch != 0);
    trainer->host_only = true;
    sdlf_status status = choose_loss(trainer);
    if (status == SDLF_OK)
        status = sdlf_fail_context(sdlf_auto_augment_complete(&trainer->options.automatic, &train->samples), "trainer");
    if (status == SDLF_OK) status = sdlf_trainer_write_settings(options, trainer->settings, sizeof trainer->settings);
    if (status == SDLF_OK) status = prepare_model(trainer, train);
    if (status == SDLF_OK && options->shard_states && ranks != NULL)
        status = model_shard_states(trainer->model, ranks->rank, ranks->rank_count);
    if (status == SDLF_OK) status = prepare_plans(trainer, test);
    if (status == SDLF_OK) status = sdlf_trainer_prepare_average(trainer);
    if (status == SDLF_OK) status = sdlf_trainer_prepare_best(trainer);
    if (status != SDLF_OK) return status;
    if (trainer->data_place != SDLF_DATA_LOADED) return sdlf_trainer_prepare_feed(trainer);
    return prepare_loader(trainer);
}

static sdlf_status create(sdlf_trainer **trainer, sdlf_model *model, const sdlf_dataset *train,
                          const sdlf_dataset *test, const sdlf_trainer_options *options)
{
    sdlf_status status = sdlf_model_status(model);
    if (status != SDLF_OK) return status;
    if (train->samples.shape.dim[0] < 1)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "trainer: data set %s has no samples", sdlf_dataset_title(train));
    sdlf_trainer *made = calloc(1, sizeof *made);
    if (made == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "trainer: no memory");
    made->model = model;
    if (options != NULL) made->options = *options;
    status = sdlf_trainer_complete_options(&made->options);
    if (status == SDLF_OK) status = set_up(made, train, test);
    if (status != SDLF_OK) {
        sdlf_trainer_free(made);
        return status;
    }
    *trainer = made;
    return SDLF_OK;
}

sdlf_status sdlf_trainer_create(sdlf_trainer **trainer, sdlf_model *model, const sdlf_dataset *train,
                                const sdlf_dataset *test, const sdlf_trainer_options *options)
{
    SDLF_REQUIRE(trainer);
    *trainer = NULL;
    if (model == NULL) return sdlf_model_status(NULL);
    SDLF_REQUIRE(train);
    sdlf_status status = create(trainer, model, train, test, options);
    if (options != NULL && options->communicator != NULL)
        status = sdlf_communicator_agree(options->communicator, status);
    if (status == SDLF_OK) status = sdlf_trainer_compare_ranks(*trainer, test);
    if (status == SDLF_OK) status = sdlf_trainer_begin_best(*trainer);
    if (status == SDLF_OK) return SDLF_OK;
    sdlf_trainer_free(*trainer);
    *trainer = NULL;
    return status;
}

sdlf_data_place sdlf_trainer_data_place(const sdlf_trainer *trainer, const char **space)
{
    if (trainer == NULL) return SDLF_DATA_LOADED;
    if (space != NULL) *space = trainer->calculators[0]->space; /* that of the forward pass is opened first */
    return trainer->data_place;
}

const sdlf_plan *sdlf_trainer_plan(const sdlf_trainer *trainer)
{
    if (trainer == NULL) return NULL;
    return trainer->full;
}

int64_t sdlf_trainer_memory(const sdlf_trainer *trainer)
{
    if (trainer == NULL) return 0;
    sdlf_memory_info full = sdlf_plan_memory(trainer->full);
    int64_t bytes = full.parameters + full.states + full.arena;
    bytes += trainer->best.bytes;
    if (trainer->loader != NULL) bytes += sdlf_loader_memory(trainer->loader);
    if (trainer->tail != NULL) bytes += sdlf_plan_memory(trainer->tail).arena;
    if (trainer->test != NULL) bytes += sdlf_evaluator_memory(trainer->test);
    return bytes;
}
