/* SPDX-License-Identifier: MIT */
/* See single_picture.h. */
#include "apps/report/single_picture.h"

#include <stdlib.h>
#include <string.h>

#include "apps/input/network.h"
#include "apps/input/samples.h"
#include "apps/output/number.h"
#include "apps/output/scores.h"
#include "apps/pictures/activations.h"
#include "apps/pictures/augmented_samples.h"
#include "apps/pictures/sheet.h"
#include "apps/report/evaluate.h"
#include "apps/report/grad_cam.h"
#include "apps/system/memory.h"

static void make_room(single_picture *c)
{
    size_t count = (size_t)sdlf_shape_count(c->shape);
    c->sample = memory_allocate(count * sizeof *c->sample);
    c->pixels = memory_allocate(count);
}

sdlf_status single_picture_from_sample(single_picture *c, sdlf_model *model, const sdlf_dataset *data, int64_t index)
{
    *c = (single_picture){.truth = -1, .shape = sdlf_shape_without(data->samples.shape, 0)};
    int64_t count = data->samples.shape.dim[0];
    if (index >= count)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--sample %lld: %s has samples 0 to %lld", (long long)index, data->name,
                         (long long)count - 1);
    if (!sheet_shows(c->shape))
        return sdlf_fail(SDLF_ERROR_SHAPE, "--sample %lld: samples of %s are not pictures", (long long)index,
                         sdlf_shape_print(c->shape).text);
    make_room(c);
    c->name = memory_print("sample %s", number_count(index).text);
    if (data->labels.dtype == SDLF_INT32 && data->labels.shape.rank == 1)
        c->truth = ((const int32_t *)data->labels.data)[index];
    sdlf_dataset view = evaluation_view(model, data);
    return augmented_read(c->sample, c->pixels, &view, index);
}

sdlf_status single_picture_from_file(single_picture *c, sdlf_model *model, const char *path,
                                     preprocess_settings *preprocess)
{
    *c = (single_picture){.truth = -1};
    preprocess_frame frame;
    sdlf_status status = preprocess_complete(preprocess, sdlf_model_normalization(model), sdlf_model_name(model));
    if (status == SDLF_OK) status = preprocess_frame_of(&frame, network_sample_shape(model), preprocess);
    if (status != SDLF_OK) return status;
    c->shape = sdlf_shape(frame.channels, frame.rows, frame.columns);
    make_room(c);
    c->name = memory_copy_text(path);
    int64_t count = sdlf_shape_count(c->shape);
    float *pixels = memory_allocate((size_t)count * sizeof *pixels);
    status = preprocess_read(c->sample, pixels, frame, path, 0, preprocess);
    for (int64_t i = 0; i < count && status == SDLF_OK; i++) c->pixels[i] = (unsigned char)pixels[i];
    free(pixels);
    return status;
}

/* Sorts the most probable classes, the lower of equals first. */
static void put_in_order(single_picture *c)
{
    for (int i = 0; i < c->class_count; i++) {
        int at = c->order_count;
        while (at > 0 && c->probability[c->order[at - 1]] < c->probability[i]) at--;
        if (at == CHOSEN_CLASSES) continue;
        if (c->order_count < CHOSEN_CLASSES) c->order_count++;
        memmove(c->order + at + 1, c->order + at, (size_t)(c->order_count - 1 - at) * sizeof *c->order);
        c->order[at] = i;
    }
}

static sdlf_status read_scores(single_picture *c, sdlf_plan *plan, const sdlf_model *model)
{
    sdlf_binding output;
    const char *name = sdlf_model_output_name(model, 0);
    sdlf_status status = sdlf_plan_output(plan, name, &output);
    if (status != SDLF_OK) return status;
    int64_t count = sdlf_tensor_count(&output.tensor);
    if (output.tensor.dtype != SDLF_FLOAT32 || count < 1 || count > 1 << 24)
        return sdlf_fail(SDLF_ERROR_SHAPE, "the network outputs %s %s, expected scores of classes",
                         sdlf_dtype_name(output.tensor.dtype), sdlf_shape_print(output.tensor.shape).text);
    float *scores = memory_allocate((size_t)count * sizeof *scores);
    status = sdlf_plan_read(plan, name, scores, SDLF_FLOAT32, count * (int64_t)sizeof *scores);
    c->class_count = (int)count;
    c->probability = memory_allocate((size_t)count * sizeof *c->probability);
    for (int64_t i = 0; i < count; i++) c->probability[i] = (double)scores[i];
    free(scores);
    if (status == SDLF_OK) status = scores_check(c->probability, c->class_count);
    if (status != SDLF_OK) return status;
    scores_to_probabilities(c->probability, c->class_count);
    put_in_order(c);
    return SDLF_OK;
}

static bool shows(activation *a, sdlf_model *model, sdlf_plan *plan, int layer)
{
    return activation_of(a, model, plan, layer) && sheet_shows(sdlf_shape(1, a->shape.dim[1], a->shape.dim[2]));
}

/* Keeps layers evenly spaced from the first that can be shown to the last. */
static void choose_layers(single_picture *c, sdlf_model *model, sdlf_plan *plan)
{
    activation a;
    int all = 0, seen = 0, layers = sdlf_model_layer_count(model);
    for (int i = 0; i < layers; i++) all += shows(&a, model, plan, i);
    int wanted = all < CHOSEN_LAYERS ? all : CHOSEN_LAYERS;
    for (int i = 0; i < layers && c->layer_count < wanted; i++) {
        if (!shows(&a, model, plan, i)) continue;
        int next = wanted > 1 ? c->layer_count * (all - 1) / (wanted - 1) : 0;
        if (seen++ != next) continue;
        int count = a.shape.dim[0] < CHOSEN_CHANNELS ? (int)a.shape.dim[0] : CHOSEN_CHANNELS;
        c->layer[c->layer_count++] =
            (picture_layer){.name = memory_copy_text(a.layer),
                            .shape = a.shape,
                            .count = count,
                            .grey = activation_grey(a.values, count, a.shape.dim[1] * a.shape.dim[2])};
    }
}

sdlf_status single_picture_run(single_picture *c, sdlf_model *model, sdlf_calculator *calculator)
{
    sdlf_plan *plan = NULL;
    if (sdlf_model_input_count(model) != 1)
        return sdlf_fail(SDLF_ERROR_SHAPE, "network '%s' has %d inputs, expected one for a picture",
                         sdlf_model_name(model), sdlf_model_input_count(model));
    const char *input = sdlf_model_layer(model, sdlf_model_input(model, 0).layer)->name;
    sdlf_status status = sdlf_plan_create(
        &plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator, .keep_activations = true});
    if (status == SDLF_OK)
        status = sdlf_plan_write(plan, input, c->sample, SDLF_FLOAT32,
                                 sdlf_shape_count(c->shape) * (int64_t)sizeof *c->sample);
    if (status == SDLF_OK) status = sdlf_plan_forward(plan);
    if (status == SDLF_OK) status = sdlf_plan_synchronize(plan);
    if (status == SDLF_OK) status = read_scores(c, plan, model);
    if (status == SDLF_OK) choose_layers(c, model, plan);
    sdlf_plan_free(plan);
    return sdlf_fail_context(status, "%s", c->name);
}

static sdlf_status add_map(single_picture *c, grad_cam *cam, int class)
{
    picture_cam *added = &c->cam[c->cam_count];
    *added = (picture_cam){.class = class, .map = memory_allocate((size_t)(cam->rows * cam->columns) * sizeof(float))};
    c->cam_count++;
    return grad_cam_make(cam, c->sample, class, added->map);
}

sdlf_status single_picture_explain(single_picture *c, sdlf_model *model, sdlf_calculator *calculator, const char *layer,
                                   int class)
{
    grad_cam cam;
    if (class >= c->class_count)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--class %d: the network has classes 0 to %d", class, c->class_count - 1);
    sdlf_status status = grad_cam_open(&cam, model, calculator, layer);
    if (status != SDLF_OK && status != SDLF_ERROR_MEMORY && !layer) {
        c->cam_missing = memory_copy_text(sdlf_error_message());
        status = SDLF_OK;
    } else if (status == SDLF_OK) {
        c->cam_layer = memory_copy_text(cam.layer);
        c->cam_rows = cam.rows;
        c->cam_columns = cam.columns;
        status = add_map(c, &cam, class >= 0 ? class : c->order[0]);
        bool truth = class < 0 && c->truth >= 0 && c->truth < c->class_count && c->truth != c->order[0];
        if (status == SDLF_OK && truth) status = add_map(c, &cam, c->truth);
    }
    grad_cam_release(&cam);
    return sdlf_fail_context(status, "%s: Grad-CAM", c->name);
}

void single_picture_release(single_picture *c)
{
    free(c->name);
    free(c->pixels);
    free(c->sample);
    free(c->probability);
    for (int i = 0; i < c->layer_count; i++) {
        free(c->layer[i].name);
        free(c->layer[i].grey);
    }
    for (int i = 0; i < c->cam_count; i++) free(c->cam[i].map);
    free(c->cam_layer);
    free(c->cam_missing);
    *c = (single_picture){.truth = -1};
}
