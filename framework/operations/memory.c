/* SPDX-License-Identifier: MIT */
/* fill, copy, gather_batch, next_batch, shuffle: filling and moving elements. Contracts: <sdlf/operation.h>. */
#include "framework/operations/augmented.h"
#include "framework/operations/check.h"
#include "framework/operations/operations.h"

static int64_t no_flops(const sdlf_operation *operation)
{
    (void)operation;
    return 0;
}

static sdlf_status check_fill(const sdlf_operation *operation)
{
    (void)operation; /* any dtype, any value */
    return SDLF_OK;
}

const sdlf_operation_class sdlf_fill_operation = {
    .name = "fill",
    .out = {{.name = "y"}},
    .check = check_fill,
    .flops = no_flops,
};

static sdlf_status check_copy(const sdlf_operation *operation)
{
    sdlf_check check = {.operation = operation};
    sdlf_expect_shape(&check, &operation->out[0], operation->in[0].shape);
    return check.status;
}

const sdlf_operation_class sdlf_copy_operation = {
    .name = "copy",
    .in = {{.name = "x"}},
    .out = {{.name = "y"}},
    .any_strides = 1u << 0 | 1u << SDLF_MAX_INPUTS,
    .reads_parts = 1u << 0,
    .check = check_copy,
    .flops = no_flops,
};

/* The largest side of an image to warp: beyond it a float32 cannot distinguish adjacent pixels. */
enum { LARGEST_SIDE = 1 << 24 };

static void check_normalization(sdlf_check *check, const sdlf_tensor *x)
{
    const sdlf_operation *operation = check->operation;
    const sdlf_channel_normalization *channels = &operation->gather.channels;
    sdlf_expect_between(check, "mean", (double)operation->gather.mean, -1e30, 1e30);
    sdlf_expect_between(check, "scale", (double)operation->gather.scale, -1e30, 1e30);
    if (channels->count == 0) return;
    bool fit = channels->count <= SDLF_NORMALIZED_CHANNELS && x->shape.rank >= 2 && x->shape.dim[1] == channels->count;
    sdlf_expect(check, fit, "operand 'x' has shape %s, and there are means of %d channels (at most %d)",
                sdlf_shape_print(x->shape).text, channels->count, SDLF_NORMALIZED_CHANNELS);
    for (int c = 0; fit && c < channels->count; c++) {
        sdlf_expect_between(check, "mean", (double)channels->mean[c], -1e30, 1e30);
        sdlf_expect_between(check, "scale", (double)channels->scale[c], -1e30, 1e30);
    }
}

static sdlf_status check_gather_batch(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0], *index = &operation->in[1], *epoch = &operation->in[2];
    const sdlf_tensor *y = &operation->out[0];
    const sdlf_augmentation *augment = &operation->gather.augment;
    const sdlf_auto_augment *automatic = &operation->gather.automatic;
    sdlf_check check = {.operation = operation};
    if (x->shape.rank < 1) sdlf_expect_rank(&check, x, 1);
    sdlf_expect_rank(&check, index, 1);
    sdlf_shape batch = x->shape;
    batch.dim[0] = index->shape.dim[0];
    sdlf_expect_operand(&check, index, SDLF_INT32, index->shape);
    sdlf_expect_operand(&check, epoch, SDLF_INT64, sdlf_shape(1));
    sdlf_expect_operand(&check, &operation->in[3], SDLF_INT32, sdlf_shape(x->shape.dim[0]));
    sdlf_expect_shape(&check, y, batch);
    if (sdlf_dtype_is_float(y->dtype)) {
        sdlf_dtype t = sdlf_expect_floating(&check, y);
        if (x->dtype != SDLF_UINT8) sdlf_expect_dtype(&check, x, t);
        check_normalization(&check, x);
    } else {
        sdlf_expect_dtype(&check, x, y->dtype);
    }
    if (sdlf_auto_augment_wanted(automatic)) {
        sdlf_expect_between(&check, "augmentation's rand_augment", automatic->rand_augment, 0, 8);
        sdlf_expect(&check, !automatic->trivial || automatic->rand_augment == 0,
                    "TrivialAugment or RandAugment, not both");
        if (!automatic->trivial)
            sdlf_expect_between(&check, "augmentation's rand_magnitude", automatic->rand_magnitude, 1, 30);
        sdlf_expect(&check, x->dtype == SDLF_UINT8, "operand 'x' is %s: TrivialAugment and RandAugment take uint8",
                    sdlf_dtype_name(x->dtype));
    }
    if (sdlf_augmentation_wanted(augment) || sdlf_auto_augment_wanted(automatic)) {
        sdlf_expect_between(&check, "augmentation's crop", augment->crop, 0, 1e6);
        sdlf_expect_between(&check, "augmentation's shift", (double)augment->shift, 0, 1e6);
        sdlf_expect_between(&check, "augmentation's rotate", (double)augment->rotate, 0, 360);
        sdlf_expect_below(&check, "augmentation's scale", (double)augment->scale, 0, 1);
        sdlf_expect_between(&check, "augmentation's elastic", (double)augment->elastic, 0, 1e6);
        sdlf_expect_between(&check, "augmentation's resized_crop", (double)augment->resized_crop, 0, 1);
        sdlf_expect_between(&check, "augmentation's cutout", augment->cutout, 0, 1e6);
        sdlf_expect_between(&check, "augmentation's brightness", (double)augment->brightness, 0, 1);
        sdlf_expect_between(&check, "augmentation's contrast", (double)augment->contrast, 0, 1);
        sdlf_expect_between(&check, "augmentation's saturation", (double)augment->saturation, 0, 1);
        sdlf_expect_between(&check, "augmentation's hue", (double)augment->hue, 0, 0.5);
        sdlf_expect_rank(&check, x, 4);
        sdlf_expect(&check, x->shape.dim[2] <= LARGEST_SIDE && x->shape.dim[3] <= LARGEST_SIDE,
                    "operand 'x' has shape %s: augmentation takes sides up to %d", sdlf_shape_print(x->shape).text,
                    LARGEST_SIDE);
        sdlf_expect(&check, sdlf_dtype_is_float(y->dtype), "augmentation needs a floating operand 'y', found %s",
                    sdlf_dtype_name(y->dtype));
        sdlf_expect(&check, sdlf_tensor_present(epoch), "augmentation needs operand 'epoch'");
    }
    return check.status;
}

static int64_t gather_batch_flops(const sdlf_operation *operation)
{
    bool moves_only = !sdlf_dtype_is_float(operation->out[0].dtype);
    return moves_only ? 0 : sdlf_product(2, sdlf_tensor_count(&operation->out[0]), 1, 1);
}

/* As many rows of x, and of their indices, as it writes. */
static int64_t gather_batch_reads(const sdlf_operation *operation, int input)
{
    if (input == 0) return sdlf_tensor_count(&operation->out[0]);
    return input == 3 ? sdlf_tensor_count(&operation->in[1]) : -1;
}

const sdlf_operation_class sdlf_gather_batch_operation = {
    .name = "gather_batch",
    .in = {{.name = "x"}, {.name = "index"}, {.name = "epoch", .optional = true}, {.name = "number", .optional = true}},
    .out = {{.name = "y"}},
    .check = check_gather_batch,
    .flops = gather_batch_flops,
    .elements_read = gather_batch_reads,
};

static sdlf_status check_next_batch(const sdlf_operation *operation)
{
    const sdlf_tensor *order = &operation->in[0], *rates = &operation->in[1], *first = &operation->in[2];
    const sdlf_tensor *cursor = &operation->out[0], *index = &operation->out[1];
    sdlf_check check = {.operation = operation};
    sdlf_expect_rank(&check, order, 1);
    sdlf_expect_rank(&check, rates, 1);
    sdlf_expect_rank(&check, index, 1);
    sdlf_expect_dtype(&check, order, SDLF_INT32);
    sdlf_dtype t = sdlf_expect_floating(&check, rates);
    sdlf_expect_operand(&check, first, SDLF_INT64, sdlf_shape(1));
    sdlf_expect_operand(&check, cursor, SDLF_INT64, sdlf_shape(1));
    sdlf_expect_dtype(&check, index, SDLF_INT32);
    sdlf_expect_operand(&check, &operation->out[2], t, sdlf_shape(1));
    sdlf_expect_operand(&check, &operation->out[3], SDLF_INT64, sdlf_shape(1));
    const sdlf_tensor *labels = &operation->in[3], *batch_labels = &operation->out[4];
    sdlf_expect_rank(&check, labels, 1);
    sdlf_expect_dtype(&check, labels, SDLF_INT32);
    sdlf_expect_operand(&check, batch_labels, SDLF_INT32, index->shape);
    sdlf_expect(&check, sdlf_tensor_present(labels) == sdlf_tensor_present(batch_labels),
                "expected both operands 'labels' and 'batch_labels', or neither");
    sdlf_expect(&check, order->shape.dim[0] >= index->shape.dim[0], "an order of %lld holds no batch of %lld",
                (long long)order->shape.dim[0], (long long)index->shape.dim[0]);
    return check.status;
}

/* One batch of the order and of labels, and one rate. */
static int64_t next_batch_reads(const sdlf_operation *operation, int input)
{
    if (input == 2) return -1;
    return sdlf_tensor_count(&operation->out[input == 1 ? 2 : 1]);
}

const sdlf_operation_class sdlf_next_batch_operation = {
    .name = "next_batch",
    .in = {{.name = "order"}, {.name = "rates"}, {.name = "first"}, {.name = "labels", .optional = true}},
    .out = {{.name = "cursor", .updated = true},
            {.name = "index"},
            {.name = "rate"},
            {.name = "step"},
            {.name = "batch_labels", .optional = true}},
    .check = check_next_batch,
    .flops = no_flops,
    .elements_read = next_batch_reads,
};

static sdlf_status check_shuffle(const sdlf_operation *operation)
{
    const sdlf_tensor *order = &operation->out[0];
    sdlf_check check = {.operation = operation};
    sdlf_expect_operand(&check, &operation->in[0], SDLF_INT64, sdlf_shape(1));
    sdlf_expect_rank(&check, order, 1);
    sdlf_expect_dtype(&check, order, SDLF_INT32);
    sdlf_expect(&check, order->shape.dim[0] <= INT32_MAX, "an order of %lld is more than int32 counts",
                (long long)order->shape.dim[0]);
    return check.status;
}

const sdlf_operation_class sdlf_shuffle_operation = {
    .name = "shuffle",
    .in = {{.name = "epoch"}},
    .out = {{.name = "order"}},
    .check = check_shuffle,
    .flops = no_flops,
};
