/* SPDX-License-Identifier: MIT */
/* The model of a training run: built in, from a network file, fine-tuned from weights, or of a checkpoint. */
#include "apps/train/session_model.h"

#include <stdlib.h>
#include <string.h>

#include "apps/input/network.h"
#include "apps/input/samples.h"

/* Resizes images to the model's input shape. */
static sdlf_status take_shape(train_session *s, const char *file)
{
    s->sample = samples_shape(s->model);
    if (!s->set.size) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "--size %s: %s takes samples of %s, and pictures are scaled to these",
                     s->set.size, file, sdlf_shape_print(network_sample_shape(s->model)).text);
}

bool session_has_targets(const train_session *s)
{
    sdlf_loss asked = s->options.resume ? s->options.loss : (sdlf_loss)s->set.training.loss;
    return asked != SDLF_LOSS_CROSS_ENTROPY || (s->model && sdlf_model_loss(s->model) != SDLF_LOSS_CROSS_ENTROPY);
}

bool session_tests_others(const train_session *s)
{
    return s->set.test_data != NULL && !samples_same_set(s->set.data, s->set.test_data);
}

/* Outlines the training data before they are read, for their shape and classes. */
static sdlf_status outline(const train_session *s, sdlf_dataset **data)
{
    return samples_outline(data, &(samples_request){.set = s->set.data,
                                                    .sample = s->sample,
                                                    .model = s->model,
                                                    .whole = session_tests_others(s),
                                                    .targets = session_has_targets(s)});
}

/* "224" or "240x320": height and width of colour images. */
static sdlf_status read_size(sdlf_shape *sample, const char *text)
{
    enum { LARGEST = 65535 };
    char *end;
    long height = strtol(text, &end, 10), width = height;
    bool good = end != text;
    if (good && *end == 'x') {
        const char *second = end + 1;
        width = strtol(second, &end, 10);
        good = end != second;
    }
    if (!good || *end != '\0' || height < 1 || width < 1 || height > LARGEST || width > LARGEST)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--size %s: expected one number or HEIGHTxWIDTH, of 1 to %d", text,
                         LARGEST);
    *sample = sdlf_shape(3, height, width);
    return SDLF_OK;
}

/* Opens --net: a built-in network is created for the data. */
static sdlf_status open_network(train_session *s)
{
    const train_settings *set = &s->set;
    if (!network_is_builtin(set->net)) {
        sdlf_status status = network_read(&s->model, set->net, &set->dimensions);
        return status == SDLF_OK ? take_shape(s, set->net) : status;
    }
    sdlf_dataset *data = NULL;
    sdlf_status status = set->size ? read_size(&s->sample, set->size) : SDLF_OK;
    if (status == SDLF_OK) status = outline(s, &data);
    if (status != SDLF_OK) return status;
    sdlf_shape sample = sdlf_shape_without(data->samples.shape, 0);
    if (set->size && !sdlf_shape_equal(sample, s->sample))
        status = sdlf_fail(SDLF_ERROR_ARGUMENT, "--size %s scales pictures of folders, but samples of %s are %s",
                           set->size, data->name, sdlf_shape_print(sample).text);
    else
        status = session_has_targets(s)
                     ? sdlf_network_builtin_for_targets(&s->model, set->net, sample, data->class_count)
                     : sdlf_network_builtin_for(&s->model, set->net, sample, data->class_count);
    sdlf_dataset_free(data);
    return status;
}

/* Float targets are compared with the values, not with a softmax of them. */
static void drop_softmax(sdlf_model *model)
{
    if (sdlf_model_output_count(model) == 0) return;
    int last = sdlf_model_output(model, 0).layer;
    if (sdlf_model_layer(model, last)->type->scores == SDLF_SCORES_LOGITS) return;
    sdlf_node values = sdlf_model_layer_input(model, last, 0);
    sdlf_model_clear_outputs(model);
    sdlf_output(model, "value", values);
}

/* True if the network's classes are those of the data: as many and, if both have names, the same ones in order. */
static bool has_same_classes(sdlf_model *model, const sdlf_dataset *data)
{
    const int head = sdlf_model_head(model);
    int first = 0; /* its weight, whose first axis is units or filters */
    while (first < sdlf_model_parameter_count(model) && sdlf_model_parameter(model, first)->layer != head) first++;
    if (head < 0 || first == sdlf_model_parameter_count(model) ||
        sdlf_model_parameter(model, first)->value.shape.dim[0] != data->class_count)
        return false;
    const int named = data->class_names != NULL ? sdlf_model_class_count(model) : 0;
    for (int i = 0; i < named; i++)
        if (named != data->class_count || strcmp(sdlf_model_class_name(model, i), data->class_names[i]) != 0)
            return false;
    return true;
}

/* Opens --from: a model with its weights, and a head for the data's classes. */
static sdlf_status open_from(train_session *s)
{
    train_settings *set = &s->set;
    sdlf_dataset *data = NULL;
    sdlf_status status = network_open_weights(&s->model, set->from, NULL, &set->dimensions);
    set->net = NULL;
    if (status == SDLF_OK) status = take_shape(s, set->from);
    if (status == SDLF_OK) status = outline(s, &data);
    if (status != SDLF_OK) return status;
    bool characters =
        data->labels.shape.rank == 2 && !session_has_targets(s); /* the classes are also inputs: their rows are kept */
    for (int i = 0; characters && i < data->class_count && status == SDLF_OK; i++) {
        bool same = data->class_count == sdlf_model_class_count(s->model) &&
                    strcmp(data->class_names[i], sdlf_model_class_name(s->model, i)) == 0;
        if (!same)
            status = sdlf_fail(SDLF_ERROR_ARGUMENT,
                               "%s has other characters than the network: '%s' is its number %d (expected the same %d)",
                               data->name, data->class_names[i], i, sdlf_model_class_count(s->model));
    }
    s->new_head = status == SDLF_OK && !characters && !has_same_classes(s->model, data);
    if (s->new_head) status = sdlf_model_replace_head(s->model, data->class_count, (uint64_t)set->training.seed);
    if (status == SDLF_OK && session_has_targets(s)) drop_softmax(s->model);
    sdlf_dataset_free(data);
    return sdlf_fail_context(status, "--from %s", set->from);
}

sdlf_status session_open_model(train_session *s)
{
    train_settings *set = &s->set;
    if (set->from) return open_from(s);
    if (!set->resume) return open_network(s); /* built later with the trainer's seed */
    if (arguments_given(&s->given, "net")) {
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--net cannot be combined with --resume: %s contains its network",
                         set->resume);
    }
    if (network_is_onnx(set->resume))
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "--resume %s: expected a safetensors file that train wrote; to train an ONNX file, use --net",
                         set->resume);
    sdlf_status status = sdlf_model_open(&s->model, set->resume);
    if (status != SDLF_OK) return status;
    const sdlf_training_state *state = sdlf_model_training_state(s->model);
    if (!state->present) {
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s holds weights but no training state: there is nothing to resume",
                         set->resume);
    }
    status = take_shape(s, set->resume);
    if (status != SDLF_OK) return status;
    s->options.resume = true;
    set->net = NULL;
    return sdlf_fail_context(sdlf_trainer_restore_options(&s->options, state), "%s", set->resume);
}
