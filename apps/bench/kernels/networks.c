/* SPDX-License-Identifier: MIT */
/* Rows of `sdlf bench kernels`: pooling, normalisation, and batch drawing. */
#include "apps/bench/kernels/kernels.h"

static void add_pooling(kernel_rows *rows, int size, int stride)
{
    sdlf_window2d window = {.size = {size, size}, .stride = {stride, stride}, .dilation = {1, 1}};
    for (int i = 0; i < 2; i++) window.padding_before[i] = window.padding_after[i] = size % 2;
    sdlf_tensor x = kernel_rows_image(rows);
    int64_t side = sdlf_window2d_output(&window, 0, 64);
    sdlf_tensor y = kernel_rows_tensor(rows, sdlf_shape(x.shape.dim[0], 128, side, side));
    sdlf_operation forward = {.kind = SDLF_MAX_POOL2D_FORWARD, .in = {x}, .out = {y}};
    sdlf_operation backward = {.kind = SDLF_MAX_POOL2D_BACKWARD, .in = {x, y, y}, .out = {x}};
    forward.pool2d.window = backward.pool2d.window = window;
    kernel_rows_add(rows, &forward, false, "%dx%d, stride %d", size, size, stride);
    kernel_rows_add(rows, &backward, false, "%dx%d, stride %d", size, size, stride);
    forward.kind = SDLF_AVG_POOL2D_FORWARD;
    kernel_rows_add(rows, &forward, false, "%dx%d, stride %d", size, size, stride);
    backward = (sdlf_operation){.kind = SDLF_AVG_POOL2D_BACKWARD, .in = {y}, .out = {x}};
    backward.pool2d.window = window;
    kernel_rows_add(rows, &backward, false, "%dx%d, stride %d", size, size, stride);
}

static void add_global_pooling(kernel_rows *rows)
{
    sdlf_tensor x = kernel_rows_image(rows), y = kernel_rows_tensor(rows, sdlf_shape(x.shape.dim[0], 128, 1, 1));
    sdlf_operation forward = {.kind = SDLF_GLOBAL_AVG_POOL2D_FORWARD, .in = {x}, .out = {y}};
    kernel_rows_add(rows, &forward, false, "128 channels of 64x64");
    sdlf_operation backward = {.kind = SDLF_GLOBAL_AVG_POOL2D_BACKWARD, .in = {y}, .out = {x}};
    kernel_rows_add(rows, &backward, false, "128 channels of 64x64");
}

static void add_batch_norm(kernel_rows *rows)
{
    sdlf_tensor x = kernel_rows_image(rows), c = kernel_rows_tensor(rows, sdlf_shape(128));
    sdlf_operation forward = {.kind = SDLF_BATCH_NORM2D_FORWARD, .in = {x, c, c}, .out = {x, c, c, c, c}};
    sdlf_operation infer = {.kind = SDLF_BATCH_NORM2D_INFER, .in = {x, c, c, c, c}, .out = {x}};
    sdlf_operation backward = {.kind = SDLF_BATCH_NORM2D_BACKWARD, .in = {x, c, c, c, x}, .out = {x, c, c}};
    forward.batch_norm.epsilon = infer.batch_norm.epsilon = backward.batch_norm.epsilon = 1e-5f;
    forward.batch_norm.momentum = 0.1f;
    kernel_rows_add(rows, &forward, false, "128 channels of 64x64");
    kernel_rows_add(rows, &infer, false, "128 channels of 64x64");
    kernel_rows_add(rows, &backward, false, "128 channels of 64x64");
}

/* Layer normalisation: rows of 1024, with a scale for each element; and groups of 8 channels of images. */
static void add_normalize(kernel_rows *rows)
{
    int64_t lines = rows->elements / 1024 < 1 ? 1 : rows->elements / 1024;
    sdlf_tensor layer = kernel_rows_tensor(rows, sdlf_shape(lines, 1024)), image = kernel_rows_image(rows);
    for (int groups = 0; groups < 2; groups++) {
        sdlf_tensor x = groups ? image : layer, scale = kernel_rows_tensor(rows, sdlf_shape(groups ? 128 : 1024));
        int64_t length = groups ? 8 * 4096 : 1024;
        sdlf_tensor row = kernel_rows_tensor(rows, sdlf_shape(sdlf_tensor_count(&x) / length));
        sdlf_operation forward = {.kind = SDLF_NORMALIZE_FORWARD, .in = {x, scale, scale}, .out = {x, row, row}};
        sdlf_operation backward = {
            .kind = SDLF_NORMALIZE_BACKWARD, .in = {x, scale, row, row, x}, .out = {x, scale, scale}};
        forward.normalize.length = backward.normalize.length = length;
        forward.normalize.inner = backward.normalize.inner = groups ? 4096 : 1;
        forward.normalize.epsilon = 1e-5f;
        const char *text = groups ? "groups of 8 channels of 64x64" : "rows of 1024";
        kernel_rows_add(rows, &forward, false, "%s", text);
        kernel_rows_add(rows, &backward, false, "%s", text);
    }
}

static void add_batches(kernel_rows *rows)
{
    enum { BATCH = 16, STEPS = 1 << 16 }; /* more than are measured: each step advances the cursor */
    int64_t images = rows->elements / 1024 < 1 ? 1 : rows->elements / 1024;
    sdlf_tensor order = sdlf_tensor_view(SDLF_INT32, sdlf_shape(BATCH * STEPS), NULL);
    sdlf_tensor one = sdlf_tensor_view(SDLF_INT64, sdlf_shape(1), NULL);
    sdlf_tensor batch = sdlf_tensor_view(SDLF_INT32, sdlf_shape(BATCH), NULL);
    sdlf_operation next = {.kind = SDLF_NEXT_BATCH,
                           .in = {order, kernel_rows_tensor(rows, sdlf_shape(STEPS)), one},
                           .out = {one, batch, kernel_rows_tensor(rows, sdlf_shape(1)), one}};
    kernel_rows_add(rows, &next, false, "16 samples");
    sdlf_tensor set = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(images, 1, 28, 28), NULL);
    sdlf_tensor index = sdlf_tensor_view(SDLF_INT32, sdlf_shape(images), NULL);
    sdlf_tensor made = kernel_rows_tensor(rows, sdlf_shape(images, 1, 28, 28));
    sdlf_operation gather = {.kind = SDLF_GATHER_BATCH, .in = {set, index}, .out = {made}};
    gather.gather.mean = 33;
    gather.gather.scale = 0.0127f;
    kernel_rows_add(rows, &gather, false, "%lld images of 28x28", (long long)images);
    gather.in[2] = one;
    gather.gather.augment = (sdlf_augmentation){.shift = 2, .rotate = 10, .scale = 0.1f, .elastic = 1};
    kernel_rows_add(rows, &gather, false, "%lld images of 28x28, warped", (long long)images);
    sdlf_operation shuffle = {.kind = SDLF_SHUFFLE,
                              .in = {one},
                              .out = {sdlf_tensor_view(SDLF_INT32, sdlf_shape(60000), NULL)},
                              .shuffle = {.seed = 1}};
    kernel_rows_add(rows, &shuffle, false, "60000 samples");
}

void kernel_rows_networks(kernel_rows *rows)
{
    add_pooling(rows, 2, 2);
    add_pooling(rows, 3, 2);
    add_global_pooling(rows);
    add_batch_norm(rows);
    add_normalize(rows);
    add_batches(rows);
}
