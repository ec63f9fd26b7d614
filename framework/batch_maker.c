/* The samples and labels of any batch of any epoch. */
#include "framework/batch_maker.h"

#include <inttypes.h>
#include <stdlib.h>

#include "framework/classifier.h"

static sdlf_status open_calculator(sdlf_calculator **calculator)
{
    const char *usual = sdlf_calculator_class_usual()->name;
    return sdlf_calculator_open(calculator, usual, &(sdlf_calculator_options){.threads = 1});
}

/* Samples in batch `index` of an epoch. */
static int64_t samples_of(const sdlf_batch_maker *maker, int64_t index)
{
    int64_t left = maker->dataset->samples.shape.dim[0] - index * maker->options.batch;
    return left < maker->options.batch ? left : maker->options.batch;
}

/* Bind the gather's index and output: `count` samples of the order from `start`, into memory at `samples`. */
static void bind(sdlf_batch_maker *maker, int64_t start, int64_t count, void *samples)
{
    sdlf_shape shape = maker->dataset->samples.shape;
    shape.dim[0] = count;
    maker->gather.in[1] = sdlf_tensor_view(SDLF_INT32, sdlf_shape(count), maker->order + start);
    maker->gather.out[0] = sdlf_tensor_view(SDLF_FLOAT32, shape, samples);
}

/* Describe the operation, have it checked and accepted for full and for last batches, and take its workspace: afterwards
 * the kernel can be run directly. */
static sdlf_status prepare_gather(sdlf_batch_maker *maker)
{
    const sdlf_dataset *dataset = maker->dataset;
    maker->gather = (sdlf_operation){
        .kind = SDLF_GATHER_BATCH,
        .in = {dataset->samples, [2] = sdlf_tensor_view(SDLF_INT64, sdlf_shape(1), &maker->epoch)},
        .gather = {.mean = dataset->mean,
                   .scale = dataset->scale,
                   .channels = dataset->channels,
                   .augment = maker->options.augment},
    };
    if (maker->options.augment.seed == 0) maker->gather.gather.augment.seed = maker->options.seed;

    int64_t workspace = 0;
    for (int last = 0; last < 2; last++) {
        bind(maker, 0, samples_of(maker, last ? maker->batches - 1 : 0), NULL);
        sdlf_status status = sdlf_operation_check(&maker->gather);
        if (status != SDLF_OK) return sdlf_fail_context(status, "loader");
        if (!sdlf_calculator_supports(maker->calculator, &maker->gather)) {
            return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "loader: calculator '%s' cannot gather samples of shape %s",
                             maker->calculator->type->name, sdlf_shape_print(dataset->samples.shape).text);
        }
        int64_t bytes = sdlf_calculator_workspace(maker->calculator, &maker->gather);
        if (bytes > workspace) workspace = bytes;
    }
    if (workspace == 0) return SDLF_OK;
    sdlf_status status = maker->calculator->type->allocate(maker->calculator, workspace, &maker->workspace);
    if (status != SDLF_OK) return sdlf_fail_context(status, "loader");
    maker->gather.workspace = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(workspace), maker->workspace);
    return SDLF_OK;
}

static sdlf_status allocate_order(sdlf_batch_maker *maker)
{
    int64_t samples = maker->dataset->samples.shape.dim[0];
    if (samples < 1 || samples > INT32_MAX) {
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "loader: expected 1 to %d samples, found %" PRId64, INT32_MAX, samples);
    }
    maker->order = malloc((size_t)samples * sizeof *maker->order);
    if (maker->options.shuffle) maker->keys = malloc((size_t)samples * sizeof *maker->keys);
    if (maker->order == NULL || (maker->options.shuffle && maker->keys == NULL)) {
        return sdlf_fail(SDLF_ERROR_MEMORY, "loader: no memory for the order of %" PRId64 " samples", samples);
    }
    for (int64_t i = 0; i < samples; i++) maker->order[i] = (int32_t)i;
    return SDLF_OK;
}

sdlf_status sdlf_batch_maker_init(sdlf_batch_maker *maker, const sdlf_dataset *dataset,
                                  const sdlf_loader_options *options)
{
    *maker = (sdlf_batch_maker){.dataset = dataset, .options = *options, .epoch = -1};
    if (options->batch < 1) {
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "loader: expected a batch of at least 1 sample, found %" PRId64,
                         options->batch);
    }
    sdlf_status status = allocate_order(maker);
    if (status == SDLF_OK) status = sdlf_dataset_check_parts(dataset);
    if (status != SDLF_OK) goto fail;
    int64_t samples = dataset->samples.shape.dim[0];
    if (maker->options.batch > samples) maker->options.batch = samples;
    maker->batches = (samples - 1) / maker->options.batch + 1;
    status = open_calculator(&maker->calculator);
    if (status == SDLF_OK) status = prepare_gather(maker);
    if (status != SDLF_OK) goto fail;
    return SDLF_OK;
fail:
    sdlf_batch_maker_release(maker);
    return status;
}

void sdlf_batch_maker_release(sdlf_batch_maker *maker)
{
    if (maker->workspace != NULL) maker->calculator->type->deallocate(maker->calculator, maker->workspace);
    sdlf_calculator_close(maker->calculator);
    free(maker->keys);
    free(maker->order);
    *maker = (sdlf_batch_maker){.epoch = -1};
}

sdlf_status sdlf_batch_create(sdlf_batch *batch, const sdlf_batch_maker *maker)
{
    sdlf_shape shape = maker->dataset->samples.shape;
    shape.dim[0] = maker->options.batch;
    *batch = (sdlf_batch){0};
    sdlf_status status = sdlf_tensor_create(&batch->samples, NULL, SDLF_FLOAT32, shape);
    if (status == SDLF_OK) status = sdlf_tensor_create(&batch->labels, NULL, SDLF_INT32, sdlf_shape(shape.dim[0]));
    if (status != SDLF_OK) sdlf_batch_release(batch);
    return sdlf_fail_context(status, "loader");
}

void sdlf_batch_release(sdlf_batch *batch)
{
    sdlf_tensor_release(&batch->samples, NULL);
    sdlf_tensor_release(&batch->labels, NULL);
}

sdlf_status sdlf_batch_maker_make(sdlf_batch_maker *maker, int64_t epoch, int64_t index, sdlf_batch *batch)
{
    const sdlf_dataset *dataset = maker->dataset;
    if (epoch != maker->epoch && maker->options.shuffle) {
        sdlf_shuffle_order(maker->order, maker->keys, dataset->samples.shape.dim[0], maker->options.seed,
                           (uint32_t)epoch);
    }
    maker->epoch = epoch;

    int64_t start = index * maker->options.batch, count = samples_of(maker, index);
    bind(maker, start, count, batch->samples.data);
    batch->samples = maker->gather.out[0];
    batch->labels = sdlf_tensor_view(SDLF_INT32, sdlf_shape(count), batch->labels.data);
    batch->count = count;
    const int32_t *label = dataset->labels.data;
    int32_t *to = batch->labels.data;
    for (int64_t i = 0; i < count; i++) to[i] = label[maker->order[start + i]];

    const sdlf_calculator_class *type = maker->calculator->type;
    sdlf_status status = type->kernel[SDLF_GATHER_BATCH].run(maker->calculator, &maker->gather);
    if (status == SDLF_OK) status = type->synchronize(maker->calculator);
    return sdlf_fail_context(status, "loader: epoch %" PRId64 ", batch %" PRId64, epoch, index);
}
