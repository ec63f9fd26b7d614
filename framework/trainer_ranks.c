/* SPDX-License-Identifier: MIT */
/* A trainer that is one of several ranks: their communication other than gradients, which the plans sum. */
#include "framework/trainer_internal.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <sdlf/version.h>

#include "framework/plan/plan_internal.h"

bool sdlf_trainer_leads(const sdlf_trainer *trainer)
{
    return trainer->options.communicator == NULL || trainer->options.communicator->rank == 0;
}

bool sdlf_trainer_is_stopping(const sdlf_trainer *trainer)
{
    return trainer->options.communicator != NULL ? trainer->stop_agreed : atomic_load(&trainer->stop_requested);
}

sdlf_status sdlf_trainer_sum_metrics(sdlf_trainer *trainer, sdlf_metrics *metrics)
{
    sdlf_communicator *ranks = trainer->options.communicator;
    if (ranks == NULL) return SDLF_OK;
    double sums[] = {metrics->loss_sum, metrics->correct, metrics->samples, atomic_load(&trainer->stop_requested)};
    sdlf_status status = sdlf_communicator_sum(ranks, sums, 4);
    if (status != SDLF_OK) return status;
    *metrics = (sdlf_metrics){.loss_sum = sums[0], .correct = sums[1], .samples = sums[2]};
    trainer->stop_agreed = trainer->stop_agreed || sums[3] > 0;
    return SDLF_OK;
}

sdlf_status sdlf_trainer_share_status(sdlf_trainer *trainer, sdlf_status status)
{
    sdlf_communicator *ranks = trainer->options.communicator;
    double number = status;
    if (ranks == NULL) return status;
    sdlf_status summed = sdlf_communicator_sum(ranks, &number, 1); /* on ranks other than 0 it is SDLF_OK, 0 */
    ranks->agreed = summed == SDLF_OK && number != 0;
    if (summed != SDLF_OK || ranks->rank == 0) return summed != SDLF_OK ? summed : status;
    return number == 0 ? SDLF_OK : sdlf_fail((sdlf_status)number, "rank 0 could not write %s", trainer->checkpoint);
}

/* ---- agreement of all ranks ---- */

/* Checksums of what must be equal. */
typedef struct fingerprint {
    uint32_t build, settings, network, data, test, weights, sums[2];
    int32_t epoch;
    int64_t step;
} fingerprint;

static uint32_t add_bytes(uint32_t sum, const void *bytes, int64_t count)
{
    enum { PIECE = 1 << 30 };
    for (int64_t first = 0; first < count; first += PIECE)
        sum = (uint32_t)crc32(sum, (const Bytef *)bytes + first, (uInt)(count - first < PIECE ? count - first : PIECE));
    return sum;
}

static uint32_t add_text(uint32_t sum, const char *text)
{
    return add_bytes(sum, text, (int64_t)strlen(text) + 1);
}

/* The types of layers, and the shapes and names of parameters. */
static uint32_t sum_network(const sdlf_model *model)
{
    uint32_t sum = 0;
    for (int i = 0; i < sdlf_model_layer_count(model); i++) {
        const sdlf_layer *layer = sdlf_model_layer(model, i);
        sum = add_text(add_text(sum, layer->type->name), layer->name);
    }
    for (int i = 0; i < model->parameter_count; i++) {
        const sdlf_parameter_spec *spec = &model->parameters[i].spec;
        sum = add_text(sum, model->parameters[i].name);
        sum = add_bytes(sum, spec->shape.dim, spec->shape.rank * (int64_t)sizeof *spec->shape.dim);
        sum = add_bytes(sum, &spec->trainable, sizeof spec->trainable);
    }
    return sum;
}

/* Shapes, and labels and samples if they are in memory. */
static uint32_t sum_data(const sdlf_dataset *data)
{
    if (data == NULL) return 0;
    const sdlf_tensor *samples = &data->samples;
    uint32_t sum = add_bytes(1, samples->shape.dim, samples->shape.rank * (int64_t)sizeof *samples->shape.dim);
    sum = add_bytes(sum, &samples->dtype, sizeof samples->dtype);
    if (data->labels.data != NULL) sum = add_bytes(sum, data->labels.data, sdlf_tensor_bytes(&data->labels));
    return data->read != NULL ? sum : add_bytes(sum, samples->data, sdlf_tensor_bytes(samples));
}

static sdlf_status compare(sdlf_communicator *ranks, const void *mine, int64_t bytes, const char *what)
{
    int other;
    sdlf_status status = sdlf_communicator_compare(ranks, mine, bytes, &other);
    if (status != SDLF_OK || other < 0) return status;
    ranks->agreed = true;
    char(*hosts)[sizeof ranks->host] = malloc((size_t)ranks->rank_count * sizeof *hosts);
    if (hosts == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "trainer: no memory");
    status = ranks->type->gather(ranks, ranks->host, sizeof ranks->host, hosts);
    if (status == SDLF_OK)
        status = sdlf_fail(SDLF_ERROR_ARGUMENT,
                           "rank %d on %s has a different %s from rank 0 on %s: all ranks need the same", other,
                           hosts[other], what, hosts[0]);
    free(hosts);
    return status;
}

/* The versions of library and compiler, which determine how sums are rounded. Not the build time: the same sources give
 * the same bits. */
static uint32_t sum_build(void)
{
    return add_text(add_text(0, SDLF_VERSION), __VERSION__);
}

sdlf_status sdlf_trainer_compare_ranks(sdlf_trainer *trainer, const sdlf_dataset *test)
{
    sdlf_communicator *ranks = trainer->options.communicator;
    if (ranks == NULL) return SDLF_OK;
    const sdlf_trainer_options *options = &trainer->options;
    fingerprint mine;
    memset(&mine, 0, sizeof mine);
    mine.build = sum_build();
    mine.settings = add_text(0, trainer->settings);
    mine.settings = add_bytes(mine.settings, &options->batch, sizeof options->batch);
    mine.settings = add_bytes(mine.settings, &options->seed, sizeof options->seed);
    mine.settings = add_bytes(mine.settings, &options->epochs, sizeof options->epochs);
    mine.settings = add_bytes(mine.settings, &options->shard_states, sizeof options->shard_states);
    mine.settings = add_bytes(mine.settings, &options->keep, sizeof options->keep);
    mine.settings = add_bytes(mine.settings, &options->patience, sizeof options->patience);
    mine.settings = add_bytes(mine.settings, &(bool){trainer->checkpoint != NULL}, sizeof(bool));
    mine.network = sum_network(trainer->model);
    mine.data = sum_data(&trainer->train);
    mine.test = sum_data(test);
    mine.weights = sdlf_model_hash(trainer->model);
    mine.sums[0] = plan_sums_fingerprint(trainer->full);
    if (trainer->tail != NULL) mine.sums[1] = plan_sums_fingerprint(trainer->tail);
    mine.epoch = (int32_t)trainer->epoch;
    mine.step = trainer->epoch_step;
    const struct {
        const void *bytes;
        size_t size;
        const char *what;
    } parts[] = {
        {&mine.build, sizeof mine.build, "build of SDLF"},
        {&mine.network, sizeof mine.network, "network"},
        {&mine.settings, sizeof mine.settings, "set of options"},
        {&mine.data, sizeof mine.data, "set of training data"},
        {&mine.test, sizeof mine.test, "set of test data"},
        {&mine.weights, sizeof mine.weights, "set of weights"},
        {mine.sums, sizeof mine.sums, "placement of layers, and so a different order of gradients,"},
        {&mine.epoch, sizeof mine.epoch, "epoch to begin with"},
        {&mine.step, sizeof mine.step, "step to begin with"},
    };
    sdlf_status status = SDLF_OK;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && status == SDLF_OK; i++)
        status = compare(ranks, parts[i].bytes, (int64_t)parts[i].size, parts[i].what);
    return sdlf_fail_context(status, "trainer");
}

/* ---- between epochs ---- */

static sdlf_status average(sdlf_communicator *ranks, sdlf_tensor *value)
{
    int64_t count = sdlf_tensor_count(value);
    float *number = value->data;
    double *sum = malloc((size_t)count * sizeof *sum + 1);
    if (sum == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "trainer: no memory for statistics of all ranks");
    for (int64_t i = 0; i < count; i++) sum[i] = (double)number[i];
    sdlf_status status = sdlf_communicator_sum(ranks, sum, count);
    for (int64_t i = 0; i < count && status == SDLF_OK; i++) number[i] = (float)(sum[i] / ranks->rank_count);
    free(sum);
    return status;
}

sdlf_status sdlf_trainer_meet(sdlf_trainer *trainer)
{
    sdlf_communicator *ranks = trainer->options.communicator;
    sdlf_model *model = trainer->model;
    bool averaged = false;
    if (ranks == NULL) return SDLF_OK;
    for (int i = 0; i < model->parameter_count; i++) {
        sdlf_parameter *parameter = &model->parameters[i];
        if (parameter->spec.trainable) continue;
        sdlf_status status = average(ranks, &parameter->value);
        if (status != SDLF_OK) return status;
        averaged = true;
    }
    sdlf_status status = SDLF_OK;
    if (averaged) {
        model_note_change(model);
        status = sdlf_plan_load_parameters(trainer->full);
        if (status == SDLF_OK && trainer->tail != NULL) status = sdlf_plan_load_parameters(trainer->tail);
    }
    uint32_t weights = sdlf_model_hash(model);
    return status == SDLF_OK ? compare(ranks, &weights, sizeof weights, "set of weights after this epoch") : status;
}
