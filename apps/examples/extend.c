/* SPDX-License-Identifier: MIT */
/* A custom layer and a custom calculator, using only the public headers: both are registered, a network file names the
 * layer, a trainer the calculator, and the network is reloaded from the weights file.
 *
 *     extend            learns 3,000 digits that SDLF draws itself
 *
 * Prints how many matrix products the custom calculator has computed. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

/* ---- the layer: y = h up^T with h = x down^T, a fully connected layer whose weight is a product of two thin matrices
 * ---- */

typedef struct low_rank_options {
    const char *name; /* first in every layer's options */
    int units, rank;
} low_rank_options;

static const sdlf_field low_rank_fields[] = {
    {.name = "units", .offset = offsetof(low_rank_options, units), .minimum = 1, .maximum = 65536, .help = "outputs"},
    {.name = "rank", .offset = offsetof(low_rank_options, rank), .minimum = 1, .maximum = 65536, .help = "inner size"},
    {.name = NULL},
};

enum { DOWN, UP };

static sdlf_status low_rank_infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const low_rank_options *options = layer->options;
    sdlf_shape x = signature->input_shape[0];
    if (x.rank != 2) return sdlf_fail(SDLF_ERROR_SHAPE, "expected an input (N,I), found %s", sdlf_shape_print(x).text);
    int64_t samples = x.dim[0], inputs = x.dim[1], rank = options->rank, units = options->units;
    sdlf_parameter_spec down = {.name = "down", .shape = sdlf_shape(rank, inputs), .initializer = SDLF_INIT_HE_UNIFORM};
    sdlf_parameter_spec up = {.name = "up", .shape = sdlf_shape(units, rank), .initializer = SDLF_INIT_HE_UNIFORM};
    down.fan_in = inputs, down.fan_out = rank, down.trainable = down.decay = true;
    up.fan_in = rank, up.fan_out = units, up.trainable = up.decay = true;
    sdlf_status status = sdlf_signature_add_parameter(signature, down);
    if (status == SDLF_OK) status = sdlf_signature_add_parameter(signature, up);
    if (status == SDLF_OK) status = sdlf_signature_add_output(signature, signature->dtype, sdlf_shape(samples, units));
    if (status == SDLF_OK && signature->training)
        status = sdlf_signature_add_saved(signature, signature->dtype, sdlf_shape(samples, rank)); /* h */
    return status;
}

static sdlf_status product(sdlf_layer_context *context, sdlf_tensor a, bool turn_a, sdlf_tensor b, bool turn_b,
                           sdlf_tensor c)
{
    sdlf_operation gemm = {.kind = SDLF_GEMM, .in = {a, b}, .out = {c}};
    gemm.gemm.transpose_a = turn_a, gemm.gemm.transpose_b = turn_b, gemm.gemm.alpha = 1;
    return sdlf_emit(context, &gemm);
}

static sdlf_status low_rank_forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const low_rank_options *options = layer->options;
    sdlf_tensor x = context->input[0];
    sdlf_tensor h = context->training ? context->saved[0]
                                      : sdlf_scratch(context, x.dtype, sdlf_shape(x.shape.dim[0], options->rank));
    sdlf_status status = product(context, x, false, context->parameter[DOWN], true, h);
    return status == SDLF_OK ? product(context, h, false, context->parameter[UP], true, context->output[0]) : status;
}

static sdlf_status low_rank_backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    sdlf_tensor x = context->input[0], h = context->saved[0], dy = context->output_gradient[0];
    sdlf_tensor dh = sdlf_scratch(context, h.dtype, h.shape);
    sdlf_status status = product(context, dy, true, h, false, context->parameter_gradient[UP]);
    if (status == SDLF_OK) status = product(context, dy, false, context->parameter[UP], false, dh);
    if (status == SDLF_OK) status = product(context, dh, true, x, false, context->parameter_gradient[DOWN]);
    return status == SDLF_OK ? product(context, dh, false, context->parameter[DOWN], false, context->input_gradient[0])
                             : status;
}

static const sdlf_layer_class low_rank_class = {
    .name = "low_rank",
    .summary = "a fully connected layer with a weight of low rank",
    .options_size = sizeof(low_rank_options),
    .fields = low_rank_fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = low_rank_infer,
    .forward = low_rank_forward,
    .backward = low_rank_backward,
};

/* ---- the calculator: matrix products in plain loops, counted; all other kinds are those of "cpu" ---- */

static atomic_int products;

static float element(const sdlf_tensor *matrix, bool turned, int64_t row, int64_t column)
{
    int64_t width = matrix->shape.dim[1];
    return ((const float *)matrix->data)[turned ? column * width + row : row * width + column];
}

static sdlf_status gemm_counting(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *a = &operation->in[0], *b = &operation->in[1], *c = &operation->out[0];
    const float *bias = operation->in[2].data, *residual = operation->in[3].data; /* NULL where absent */
    bool turn_a = operation->gemm.transpose_a, turn_b = operation->gemm.transpose_b;
    int64_t rows = c->shape.dim[0], columns = c->shape.dim[1], depth = a->shape.dim[turn_a ? 0 : 1];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            float sum = 0;
            for (int64_t k = 0; k < depth; k++) sum += element(a, turn_a, i, k) * element(b, turn_b, k, j);
            sum = operation->gemm.alpha * sum + (bias != NULL ? bias[j] : 0);
            ((float *)c->data)[i * columns + j] = sum + (residual != NULL ? residual[i * columns + j] : 0);
        }
    atomic_fetch_add(&products, 1);
    return SDLF_OK;
}

/* Operations that it declines are not inherited, so plans do not fuse activations into products, and use float32. */
static bool gemm_counting_supports(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return operation->out[0].dtype == SDLF_FLOAT32 && operation->gemm.activation.function == SDLF_IDENTITY;
}

static sdlf_calculator_class counting_class = {
    .name = "counting",
    .summary = "counts its matrix products",
    .size = sizeof(sdlf_calculator),
    .inherits = "cpu", /* memory, and every kind without a kernel here */
};

/* ---- the program ---- */

static const char network[] =
    "{\"name\": \"thin\", \"input\": {\"name\": \"image\", \"shape\": [1, 28, 28]}, \"layers\": ["
    "{\"type\": \"flatten\"}, {\"type\": \"low_rank\", \"units\": 64, \"rank\": 16}, {\"type\": \"relu\"},"
    "{\"type\": \"fully_connected\", \"units\": 10}, {\"type\": \"softmax\"}]}";

static void show(const sdlf_progress *now, void *user)
{
    (void)user;
    if (now->event == SDLF_PROGRESS_EPOCH)
        printf("epoch %d/%d  loss %.3f  test %.1f%%\n", now->epoch, now->epochs, now->loss, 100 * now->test_accuracy);
}

static sdlf_status train(sdlf_model *net, const sdlf_dataset *samples, const sdlf_dataset *test)
{
    sdlf_trainer *trainer = NULL;
    sdlf_trainer_options options = {.batch = 20, .epochs = 2, .forward = "counting", .callback = show};
    options.optimizer = sdlf_adam(.beta1 = 0.9);
    options.schedule = sdlf_one_cycle(.peak = 0.01f);
    sdlf_status status = sdlf_trainer_create(&trainer, net, samples, test, &options);
    if (status == SDLF_OK) status = sdlf_trainer_run(trainer);
    sdlf_trainer_free(trainer);
    return status;
}

int main(void)
{
    sdlf_model *net = NULL, *again = NULL;
    sdlf_dataset *samples = NULL, *test = NULL;
    counting_class.kernel[SDLF_GEMM].run = gemm_counting;
    counting_class.kernel[SDLF_GEMM].supports = gemm_counting_supports;
    sdlf_status status = sdlf_register_layer(&low_rank_class);
    if (status == SDLF_OK) status = sdlf_register_calculator(&counting_class);
    if (status == SDLF_OK) status = sdlf_network_parse(&net, network, strlen(network), NULL);
    if (status == SDLF_OK) status = sdlf_dataset_open(&samples, "digits:3000", SDLF_SPLIT_TRAIN);
    if (status == SDLF_OK) status = sdlf_dataset_open(&test, "digits:3000", SDLF_SPLIT_TEST);
    if (status == SDLF_OK) status = train(net, samples, test);
    if (status == SDLF_OK) status = sdlf_model_save(net, "extend.safetensors");
    if (status == SDLF_OK) status = sdlf_model_open(&again, "extend.safetensors"); /* its network names low_rank */
    if (status == SDLF_OK)
        printf("%d products; '%s' is back with %d layers\n", atomic_load(&products), sdlf_model_name(again),
               sdlf_model_layer_count(again));
    else
        fprintf(stderr, "extend: %s\n", sdlf_error_message());
    sdlf_model_free(again);
    sdlf_model_free(net);
    sdlf_dataset_free(samples);
    sdlf_dataset_free(test);
    return status == SDLF_OK ? 0 : 1;
}
