/* SPDX-License-Identifier: MIT */
/* Rows of `sdlf bench kernels`: element-wise operations, copies, random values, and weight updates. */
#include "apps/bench/kernels/kernels.h"

static sdlf_tensor of_dtype(sdlf_tensor like, sdlf_dtype dtype)
{
    return sdlf_tensor_view(dtype, like.shape, NULL);
}

static void add_memory(kernel_rows *rows, sdlf_tensor x)
{
    sdlf_operation fill = {.kind = SDLF_FILL, .out = {x}, .fill = {.value = 0.5}};
    kernel_rows_add(rows, &fill, false, "one value");
    sdlf_operation copy = {.kind = SDLF_COPY, .in = {x}, .out = {x}};
    kernel_rows_add(rows, &copy, true, "plain");
    sdlf_tensor last = sdlf_tensor_channels_last(x);
    sdlf_operation to_nhwc = {.kind = SDLF_COPY, .in = {x}, .out = {last}};
    kernel_rows_add(rows, &to_nhwc, true, "to channels last");
    sdlf_operation from_nhwc = {.kind = SDLF_COPY, .in = {last}, .out = {x}};
    kernel_rows_add(rows, &from_nhwc, true, "from channels last");
    sdlf_tensor matrix = kernel_rows_tensor(rows, sdlf_shape(x.shape.dim[0] * 1024, 512));
    sdlf_tensor turned = kernel_rows_tensor(rows, sdlf_shape(512, x.shape.dim[0] * 1024));
    sdlf_operation transpose = {.kind = SDLF_COPY, .in = {sdlf_tensor_transpose(matrix, 0, 1)}, .out = {turned}};
    kernel_rows_add(rows, &transpose, true, "of a transposed matrix");
    sdlf_tensor wide = kernel_rows_tensor(rows, sdlf_shape(x.shape.dim[0], 256, 64, 64));
    sdlf_operation part = {.kind = SDLF_COPY, .in = {x}, .out = {sdlf_tensor_narrow(wide, 1, 64, 128)}};
    kernel_rows_add(rows, &part, true, "into some of the channels");
    sdlf_operation convert = {.kind = SDLF_COPY, .in = {of_dtype(x, SDLF_UINT8)}, .out = {x}};
    kernel_rows_add(rows, &convert, true, "from uint8");
}

static void add_functions(kernel_rows *rows, sdlf_tensor x)
{
    static const struct {
        const char *name;
        sdlf_activation_function function;
    } functions[] = {{"relu", SDLF_RELU}, {"tanh", SDLF_TANH}, {"silu", SDLF_SILU}, {"gelu", SDLF_GELU}};
    sdlf_operation add = {.kind = SDLF_ADD, .in = {x, x}, .out = {x}, .add = {{.function = SDLF_RELU}}};
    kernel_rows_add(rows, &add, false, "relu");
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        sdlf_operation forward = {.kind = SDLF_ACTIVATION_FORWARD, .in = {x}, .out = {x}};
        forward.activation.function = functions[i].function;
        kernel_rows_add(rows, &forward, false, "%s", functions[i].name);
        sdlf_operation backward = {.kind = SDLF_ACTIVATION_BACKWARD, .in = {x, x}, .out = {x}};
        backward.activation.function = functions[i].function;
        kernel_rows_add(rows, &backward, false, "%s", functions[i].name);
    }
    sdlf_tensor step = sdlf_tensor_view(SDLF_INT64, sdlf_shape(1), NULL);
    sdlf_operation dropout = {.kind = SDLF_DROPOUT_FORWARD, .in = {x, step}, .out = {x}};
    dropout.dropout.probability = 0.5f;
    kernel_rows_add(rows, &dropout, false, "half");
    dropout.kind = SDLF_DROPOUT_BACKWARD;
    kernel_rows_add(rows, &dropout, false, "half");
}

static void add_pairs(kernel_rows *rows, sdlf_tensor x)
{
    sdlf_tensor channel = sdlf_tensor_broadcast(kernel_rows_tensor(rows, sdlf_shape(1, x.shape.dim[1], 1, 1)), x.shape);
    sdlf_operation multiply = {.kind = SDLF_BINARY, .in = {x, x}, .out = {x}};
    multiply.binary.function = SDLF_BINARY_MULTIPLY;
    kernel_rows_add(rows, &multiply, false, "a b");
    multiply.in[1] = channel;
    kernel_rows_add(rows, &multiply, false, "a b, b one number a channel");
    sdlf_operation backward = {.kind = SDLF_BINARY_BACKWARD, .in = {x, x, x}, .out = {x, x}};
    backward.binary.function = SDLF_BINARY_MULTIPLY;
    kernel_rows_add(rows, &backward, false, "a b");
    sdlf_operation choose = {.kind = SDLF_SELECT, .in = {of_dtype(x, SDLF_BOOL), x, x}, .out = {x}};
    kernel_rows_add(rows, &choose, false, "a or b");
}

static void add_random(kernel_rows *rows, sdlf_tensor x)
{
    sdlf_operation uniform = {.kind = SDLF_RANDOM_UNIFORM, .out = {x}, .random = {.seed = 1, .a = -1, .b = 1}};
    kernel_rows_add(rows, &uniform, false, "[-1, 1)");
    uniform.kind = SDLF_RANDOM_NORMAL;
    kernel_rows_add(rows, &uniform, false, "deviation 1");
}

static void add_updates(kernel_rows *rows, sdlf_tensor x)
{
    sdlf_tensor one = kernel_rows_tensor(rows, sdlf_shape(1)), none = {.dtype = SDLF_NONE};
    sdlf_tensor step = sdlf_tensor_view(SDLF_INT64, sdlf_shape(1), NULL);
    sdlf_operation sgd = {.kind = SDLF_SGD_UPDATE, .in = {x, one}, .out = {x}};
    kernel_rows_add(rows, &sgd, false, "plain");
    sgd.out[1] = x;
    sgd.sgd = (sdlf_sgd_rule){.momentum = 0.9f, .decay = 1e-4f};
    kernel_rows_add(rows, &sgd, false, "momentum, decay");
    sdlf_operation adam = {.kind = SDLF_ADAM_UPDATE, .in = {x, one, none, step}, .out = {x, x, x}};
    adam.adam.beta1 = 0.9;
    adam.adam.beta2 = 0.999;
    adam.adam.epsilon = 1e-8;
    kernel_rows_add(rows, &adam, false, "plain");
    sdlf_operation rmsprop = {.kind = SDLF_RMSPROP_UPDATE, .in = {x, one}, .out = {x, x, x}};
    rmsprop.rmsprop.rho = 0.9;
    rmsprop.rmsprop.epsilon = 1e-8;
    rmsprop.rmsprop.momentum = 0.9;
    kernel_rows_add(rows, &rmsprop, false, "momentum");
    sdlf_tensor squares = kernel_rows_tensor(rows, sdlf_shape(64));
    sdlf_operation clip = {.kind = SDLF_CLIP_SCALE, .in = {squares}, .out = {one}, .clip = {.max_norm = 1}};
    kernel_rows_add(rows, &clip, false, "of 64 parameters");
    sdlf_operation check = {.kind = SDLF_CHECK_FINITE, .in = {x}, .out = {one}};
    kernel_rows_add(rows, &check, false, "one gradient");
    sdlf_tensor state = kernel_rows_tensor(rows, sdlf_shape(3));
    sdlf_operation scale = {.kind = SDLF_LOSS_SCALE_UPDATE, .in = {one, step}, .out = {state, one, step}};
    scale.loss_scale = (sdlf_loss_scale_rule){.growth = 2, .backoff = 0.5f, .interval = 2000};
    kernel_rows_add(rows, &scale, false, "dynamic");
}

void kernel_rows_elements(kernel_rows *rows)
{
    sdlf_tensor x = kernel_rows_image(rows);
    add_memory(rows, x);
    add_functions(rows, x);
    add_pairs(rows, x);
    add_random(rows, x);
    add_updates(rows, x);
}
