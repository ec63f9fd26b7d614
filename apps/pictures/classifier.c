/* SPDX-License-Identifier: MIT */
/* See classifier.h. */
#include "apps/pictures/classifier.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/input/network.h"
#include "apps/output/report.h"
#include "apps/output/scores.h"
#include "apps/system/memory.h"

static const double worth_threads = 1e9; /* FLOPs */

static sdlf_status open_calculator(classifier *c, int threads, sdlf_calculator **calculator)
{
    machine_choice choice = c->request.choice;
    choice.threads = threads;
    machine_close(&c->machine);
    return machine_open_one(&c->machine, &choice, c->request.calculator, calculator);
}

/* Creates a plan for one image at a time, which takes the least memory and starts soonest. It uses one thread, unless a
 * number was given or the work is large enough to pay for starting others. */
static sdlf_status make_plan(classifier *c)
{
    int threads = (int)c->request.choice.threads;
    sdlf_plan_options options = {
        .batch = 1, .consume_parameters = true, .keep_activations = c->request.keep_activations};
    sdlf_status status = open_calculator(c, threads > 0 ? threads : 1, &options.forward);
    if (status == SDLF_OK && threads == 0 && sdlf_calculator_is_on_host(options.forward)) {
        sdlf_plan *outline = NULL;
        status = sdlf_plan_outline(&outline, c->model, &options);
        double flops = status == SDLF_OK ? (double)report_plan_cost(outline).flops * c->request.samples : 0;
        sdlf_plan_free(outline);
        if (flops > worth_threads) status = open_calculator(c, 0, &options.forward);
    }
    return status == SDLF_OK ? sdlf_plan_create(&c->plan, c->model, &options) : status;
}

/* Checks that the input is one image and the output a list of scores. Files from elsewhere may contain any network. */
static sdlf_status check_network(classifier *c)
{
    sdlf_binding input, output;
    if (sdlf_model_input_count(c->model) != 1)
        return sdlf_fail(SDLF_ERROR_SHAPE, "%s: its network has %d inputs, expected one for a picture",
                         c->request.weights, sdlf_model_input_count(c->model));
    c->input = sdlf_model_layer(c->model, sdlf_model_input(c->model, 0).layer)->name;
    c->output = sdlf_model_output_name(c->model, 0);
    sdlf_shape shape = network_sample_shape(c->model);
    sdlf_status status = sdlf_plan_input(c->plan, c->input, &input);
    if (status == SDLF_OK) status = sdlf_plan_output(c->plan, c->output, &output);
    if (status != SDLF_OK) return sdlf_fail_context(status, "%s", c->request.weights);
    bool fits =
        input.tensor.dtype == SDLF_FLOAT32 || (c->request.no_pictures && !sdlf_dtype_is_float(input.tensor.dtype));
    if (!fits || sdlf_tensor_count(&input.tensor) != sdlf_shape_count(shape))
        return sdlf_fail(SDLF_ERROR_SHAPE, "%s: its input '%s' is %s %s, expected one %s of float32",
                         c->request.weights, c->input, sdlf_dtype_name(input.tensor.dtype),
                         sdlf_shape_print(input.tensor.shape).text, c->request.no_pictures ? "sample" : "picture");
    int64_t classes = sdlf_tensor_count(&output.tensor);
    if (output.tensor.dtype != SDLF_FLOAT32 || output.tensor.shape.rank < 2 || classes < 1 || classes > 1 << 24)
        return sdlf_fail(SDLF_ERROR_SHAPE, "%s: its network outputs %s %s, expected classes", c->request.weights,
                         sdlf_dtype_name(output.tensor.dtype), sdlf_shape_print(output.tensor.shape).text);
    const int64_t *dim = output.tensor.shape.dim;
    if (output.tensor.shape.rank == 4 && dim[2] * dim[3] > 1)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED,
                         "%s: its network gives classes for each of %" PRId64 "x%" PRId64
                         " pixels: sdlf eval tests it, sdlf run writes its scores",
                         c->request.weights, dim[2], dim[3]);
    c->class_count = (int)classes;
    c->loss = sdlf_model_loss(c->model);
    c->sample_count = sdlf_shape_count(shape);
    if (c->request.no_pictures) return SDLF_OK;
    return sdlf_fail_context(preprocess_frame_of(&c->frame, shape, c->preprocess), "%s", c->request.weights);
}

sdlf_status classifier_open(classifier *c, const classifier_request *request, preprocess_settings *preprocess)
{
    *c = (classifier){.request = *request, .preprocess = preprocess};
    sdlf_status status = network_open_to_take(&c->model, request->weights, request->net, request->dimensions);
    if (status == SDLF_OK) status = make_plan(c);
    if (status == SDLF_OK) status = check_network(c);
    if (status == SDLF_OK && !request->no_pictures)
        status = preprocess_complete(preprocess, sdlf_model_normalization(c->model), request->weights);
    if (status != SDLF_OK) return status;
    size_t values = (size_t)c->sample_count;
    c->pixels = memory_allocate(values * sizeof *c->pixels);
    c->sample = memory_allocate(values * sizeof *c->sample);
    c->score = memory_allocate((size_t)c->class_count * sizeof *c->score);
    c->probability = memory_allocate((size_t)c->class_count * sizeof *c->probability);
    return SDLF_OK;
}

void classifier_release(classifier *c)
{
    free(c->pixels);
    free(c->sample);
    free(c->score);
    free(c->probability);
    sdlf_plan_free(c->plan);
    sdlf_model_free(c->model);
    machine_close(&c->machine);
}

sdlf_status classifier_take(classifier *c, const float *sample, const char *name)
{
    sdlf_status status = sdlf_plan_write_converted(c->plan, c->input, sample, SDLF_FLOAT32, c->sample_count);
    if (status != SDLF_OK) return sdlf_fail_context(status, "%s", name);
    status = sdlf_plan_forward(c->plan);
    if (status == SDLF_OK) status = sdlf_plan_synchronize(c->plan);
    if (status == SDLF_OK)
        status = sdlf_plan_read(c->plan, c->output, c->score, SDLF_FLOAT32, c->class_count * (int64_t)sizeof *c->score);
    if (status != SDLF_OK) return status;
    for (int i = 0; i < c->class_count; i++) c->probability[i] = (double)c->score[i];
    status = scores_check(c->probability, c->class_count);
    if (status != SDLF_OK) return sdlf_fail_context(status, "%s", name);
    if (c->loss == SDLF_LOSS_CROSS_ENTROPY) scores_to_probabilities(c->probability, c->class_count);
    for (int i = 0; c->loss == SDLF_LOSS_BCE && i < c->class_count; i++)
        c->probability[i] = 1 / (1 + exp(-c->probability[i]));
    return SDLF_OK;
}

sdlf_status classifier_read(classifier *c, const char *path, int64_t index)
{
    sdlf_status status = preprocess_read(c->sample, c->pixels, c->frame, path, index, c->preprocess);
    return status == SDLF_OK ? classifier_take(c, c->sample, path) : status;
}

sdlf_status classifier_look(classifier *c, const sdlf_image *picture, const char *name)
{
    sdlf_status status = preprocess_image(c->sample, c->pixels, c->frame, picture, c->preprocess);
    return status == SDLF_OK ? classifier_take(c, c->sample, name) : status;
}

bool classifier_gives_values(const classifier *c)
{
    return c->loss != SDLF_LOSS_CROSS_ENTROPY && c->loss != SDLF_LOSS_BCE;
}

/* Insertion sort: few are wanted. */
void classifier_order(const classifier *c, int *order, int count)
{
    int found = 0;
    for (int i = 0; i < c->class_count; i++) {
        int at = found;
        while (at > 0 && c->probability[order[at - 1]] < c->probability[i]) at--;
        if (at == count) continue;
        if (found < count) found++;
        memmove(order + at + 1, order + at, (size_t)(found - 1 - at) * sizeof *order);
        order[at] = i;
    }
}
