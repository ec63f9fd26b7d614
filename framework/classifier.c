/* SPDX-License-Identifier: MIT */
/* The roles of a model's inputs and outputs. See classifier.h. */
#include "framework/classifier.h"

#include <math.h>
#include <string.h>

#include <sdlf/layers.h>

#include "framework/input_layer.h"
#include "framework/model_internal.h"

/* Finds the input from which the model's own loss layer reads labels, and checks that its logits cover every class. */
static sdlf_status find_labels(const sdlf_model *model, const sdlf_dataset *dataset, const char **labels)
{
    *labels = NULL;
    for (int index = 0; index < model->layer_count; index++) {
        const model_layer *entry = &model->layers[index];
        if (!entry->layer.type->is_loss || entry->input_count < 2) continue;
        const model_layer *logits = &model->layers[entry->inputs[0].layer];
        const model_layer *source = &model->layers[entry->inputs[1].layer];
        sdlf_shape scores = logits->output_shape[entry->inputs[0].output];
        int64_t classes = scores.dim[scores.rank == 3 ? 2 : 1];
        if (source->layer.type != &sdlf_input_layer_class)
            return sdlf_fail(SDLF_ERROR_SHAPE, "network '%s': the labels of its loss '%s' are layer '%s', not an input",
                             model->name, entry->layer.name, source->layer.name);
        sdlf_shape labels_shape = source->output_shape[entry->inputs[1].output];
        if (sdlf_dataset_has_targets(dataset) && !sdlf_shape_equal(labels_shape, sdlf_shape(1, dataset->class_count)))
            return sdlf_fail(SDLF_ERROR_SHAPE,
                             "network '%s': its loss '%s' expects targets of %s, but %s has %d per sample", model->name,
                             entry->layer.name, sdlf_shape_print(labels_shape).text, sdlf_dataset_title(dataset),
                             dataset->class_count);
        if (classes != dataset->class_count)
            return sdlf_fail(SDLF_ERROR_SHAPE, "network '%s': its loss '%s' is over %lld classes, but %s has %d",
                             model->name, entry->layer.name, (long long)classes, sdlf_dataset_title(dataset),
                             dataset->class_count);
        *labels = source->layer.name;
        return SDLF_OK;
    }
    return SDLF_OK;
}

/* Finds the one input that is not the labels'. */
static sdlf_status find_samples(const sdlf_model *model, const char *labels, const model_layer **samples)
{
    *samples = NULL;
    for (int index = 0; index < model->layer_count; index++) {
        const model_layer *entry = &model->layers[index];
        if (entry->layer.type != &sdlf_input_layer_class) continue;
        if (labels != NULL && strcmp(entry->layer.name, labels) == 0) continue;
        if (*samples != NULL)
            return sdlf_fail(SDLF_ERROR_SHAPE, "network '%s': a data set fills one input, but there are '%s' and '%s'",
                             model->name, (*samples)->layer.name, entry->layer.name);
        *samples = entry;
    }
    if (*samples == NULL) return sdlf_fail(SDLF_ERROR_SHAPE, "network '%s' has no input", model->name);
    return SDLF_OK;
}

static sdlf_status check_samples(const sdlf_model *model, const model_layer *input, const sdlf_dataset *dataset)
{
    sdlf_shape batch = input->output_shape[0]; /* a scalar has none */
    sdlf_shape wanted = batch.rank > 0 ? sdlf_shape_without(batch, 0) : batch;
    sdlf_shape found = sdlf_shape_without(dataset->samples.shape, 0);
    if (batch.rank == 2 && dataset->labels.shape.rank == 2 && !sdlf_dataset_has_targets(dataset) &&
        !sdlf_shape_equal(wanted, found))
        return sdlf_fail(SDLF_ERROR_SHAPE,
                         "network '%s': input '%s' takes %s characters, but samples of %s have %s: text:FILE,length=%s",
                         model->name, input->layer.name, sdlf_shape_print(wanted).text, sdlf_dataset_title(dataset),
                         sdlf_shape_print(found).text, sdlf_shape_print(wanted).text);
    if (batch.rank == 0 || !sdlf_shape_equal(wanted, found))
        return sdlf_fail(SDLF_ERROR_SHAPE, "network '%s': input '%s' takes samples of %s, but those of %s are %s",
                         model->name, input->layer.name, sdlf_shape_print(wanted).text, sdlf_dataset_title(dataset),
                         sdlf_shape_print(found).text);
    return SDLF_OK;
}

/* Labels are indices: each must be present and be a class. Those not in memory are checked when read. */
static sdlf_status check_classes(const sdlf_dataset *dataset)
{
    int64_t count = sdlf_tensor_count(&dataset->labels);
    const int32_t *label = dataset->labels.data, least = sdlf_dataset_has_pixel_labels(dataset) ? -1 : 0;
    for (int64_t n = 0; n < count; n++)
        if (label[n] < least || label[n] >= dataset->class_count)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "data set %s: label %lld: expected %d to %d, found %d",
                             sdlf_dataset_title(dataset), (long long)n, (int)least, dataset->class_count - 1,
                             (int)label[n]);
    return SDLF_OK;
}

/* Targets must be finite, and those of bce_with_logits in [0, 1]. */
static sdlf_status check_targets(const sdlf_dataset *dataset, bool shares)
{
    const float *target = dataset->labels.data;
    for (int64_t i = 0; i < sdlf_tensor_count(&dataset->labels); i++) {
        bool good = shares ? target[i] >= 0 && target[i] <= 1 : isfinite(target[i]);
        if (good) continue;
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "data set %s: sample %lld, target %lld: expected %s, found %g",
                         sdlf_dataset_title(dataset), (long long)(i / dataset->class_count),
                         (long long)(i % dataset->class_count), shares ? "0 to 1" : "a finite number",
                         (double)target[i]);
    }
    return SDLF_OK;
}

/* Labels must be of the kind that the loss compares with. */
static sdlf_status check_labels(const sdlf_model *model, const sdlf_dataset *dataset)
{
    sdlf_status status = sdlf_dataset_check_parts(dataset);
    sdlf_loss loss = sdlf_model_loss(model);
    bool targets = sdlf_dataset_has_targets(dataset);
    if (status != SDLF_OK) return status;
    if (targets == (loss == SDLF_LOSS_CROSS_ENTROPY))
        return sdlf_fail(SDLF_ERROR_SHAPE, "network '%s': its loss %s is of %s, but %s has %s", model->name,
                         sdlf_loss_names[loss], targets ? "classes" : "float targets", sdlf_dataset_title(dataset),
                         targets ? "float targets" : "classes");
    if (dataset->labels.data == NULL) return SDLF_OK;
    return targets ? check_targets(dataset, loss == SDLF_LOSS_BCE) : check_classes(dataset);
}

/* If both model and data set name the classes, the names must be equal, in the same order. */
static sdlf_status check_names(const sdlf_model *model, const sdlf_dataset *dataset)
{
    const model_classes *known = &model->classes;
    bool named = dataset->class_names != NULL && known->count == dataset->class_count;
    for (int i = 0; named && i < known->count; i++)
        if (strcmp(known->name[i], dataset->class_names[i]) != 0)
            return sdlf_fail(SDLF_ERROR_SHAPE, "network '%s': its class %d is '%s', but that of %s is '%s'",
                             model->name, i, known->name[i], sdlf_dataset_title(dataset), dataset->class_names[i]);
    return SDLF_OK;
}

/* A scale that was never set would make all samples equal. */
static sdlf_status check_scale(const sdlf_model *model, const sdlf_dataset *dataset)
{
    bool known = model->normalization.known;
    const sdlf_channel_normalization *channels = known ? &model->normalization.channels : &dataset->channels;
    double mean = (double)(known ? model->normalization.mean : dataset->mean);
    double scale = (double)(known ? model->normalization.scale : dataset->scale);
    for (int c = 0; c < channels->count && c < SDLF_NORMALIZED_CHANNELS;
         c++) { /* the last is told of, unless one is wrong */
        mean = (double)channels->mean[c];
        scale = (double)channels->scale[c];
        if (!isfinite(mean) || !isfinite(scale) || scale == 0) break;
    }
    if (isfinite(mean) && isfinite(scale) && scale != 0) return SDLF_OK;
    return sdlf_fail(
        SDLF_ERROR_ARGUMENT,
        "%s %s: samples would become (x - %g) * %g: expected numbers, and a scale that is not 0 (1 leaves samples as "
        "they are)",
        known ? "network" : "data set", known ? model->name : sdlf_dataset_title(dataset), mean, scale);
}

/* The loss of a sequence, or of images, is over the classes of each position or pixel, and so the probabilities must be
 * over the same axis. */
static sdlf_status check_axis(const sdlf_model *model, const sdlf_layer *layer, int wanted, int rank)
{
    bool softmax = strcmp(layer->type->name, "softmax") == 0 || strcmp(layer->type->name, "log_softmax") == 0;
    int axis = softmax ? ((const sdlf_softmax_options *)layer->options)->axis : -1;
    if (!softmax || (axis + rank) % rank == wanted) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_SHAPE, "network '%s': %s '%s' is along axis %d, expected axis %d, the classes",
                     model->name, layer->type->name, layer->name, axis, wanted == rank - 1 ? -1 : wanted);
}

static sdlf_status find_output(sdlf_classifier *classifier, const sdlf_model *model, const sdlf_dataset *dataset)
{
    for (int index = 0; index < model->output_count; index++) {
        const model_output *output = &model->outputs[index];
        const model_layer *entry = &model->layers[output->node.layer];
        if (entry->layer.type->is_loss) continue;
        sdlf_shape shape = entry->output_shape[output->node.output];
        classifier->output = output->name;
        classifier->scores = entry->layer.type->scores;
        int64_t positions = sdlf_dataset_positions(dataset), classes = dataset->class_count;
        const int64_t *dim = shape.dim, *of = dataset->labels.shape.dim;
        bool pixels = sdlf_dataset_has_pixel_labels(dataset);
        bool fits = pixels          ? shape.rank == 4 && dim[1] == classes && dim[2] == of[1] && dim[3] == of[2]
                    : positions > 0 ? shape.rank == 3 && shape.dim[1] == positions && shape.dim[2] == classes
                                    : shape.rank >= 2 && sdlf_shape_span(shape, 1, shape.rank) == classes;
        if (!sdlf_dtype_is_float(entry->output_dtype[output->node.output]) || !fits)
            return sdlf_fail(SDLF_ERROR_SHAPE, "network '%s': output '%s' gives %s %s for a sample, but %s has %d %s%s",
                             model->name, output->name, sdlf_dtype_name(entry->output_dtype[output->node.output]),
                             sdlf_shape_print(shape.rank > 0 ? sdlf_shape_without(shape, 0) : shape).text,
                             sdlf_dataset_title(dataset), dataset->class_count,
                             sdlf_dataset_has_targets(dataset) ? "targets" : "classes",
                             pixels ? " for each pixel" : "");
        return positions > 0 ? check_axis(model, &entry->layer, pixels ? 1 : 2, shape.rank) : SDLF_OK;
    }
    return SDLF_OK;
}

sdlf_status sdlf_classifier_find(sdlf_classifier *classifier, const sdlf_model *model, const sdlf_dataset *dataset)
{
    const model_layer *samples = NULL;
    *classifier = (sdlf_classifier){.samples = NULL};
    sdlf_status status = check_labels(model, dataset);
    if (status == SDLF_OK) status = check_scale(model, dataset);
    if (status == SDLF_OK) status = find_labels(model, dataset, &classifier->labels);
    if (status == SDLF_OK) status = find_samples(model, classifier->labels, &samples);
    if (status == SDLF_OK) status = check_samples(model, samples, dataset);
    if (status != SDLF_OK) return status;
    classifier->samples = samples->layer.name;
    if (((const sdlf_input_options *)samples->layer.options)->whole)
        classifier->batch = samples->output_shape[0].dim[0];
    status = find_output(classifier, model, dataset);
    return status == SDLF_OK ? check_names(model, dataset) : status;
}

sdlf_calculator *sdlf_classifier_uploads(const sdlf_classifier *classifier, sdlf_plan *plan)
{
    sdlf_binding binding;
    return sdlf_plan_input(plan, classifier->samples, &binding) == SDLF_OK ? binding.calculator : NULL;
}
