/* SPDX-License-Identifier: MIT */
/* The loss with which a model's outputs are compared with labels. */
#include <string.h>

#include <sdlf/layers/loss.h>

#include "framework/model_internal.h"

const char *const sdlf_loss_names[] = {"cross_entropy", "mse", "mae", "huber", "bce_with_logits", NULL};

/* The kind of a loss layer; SDLF_LOSS_COUNT: another layer. */
static sdlf_loss kind_of(const sdlf_layer_class *type)
{
    if (strcmp(type->name, "softmax_cross_entropy") == 0) return SDLF_LOSS_CROSS_ENTROPY;
    for (int i = SDLF_LOSS_CROSS_ENTROPY + 1; i < SDLF_LOSS_COUNT; i++)
        if (strcmp(type->name, sdlf_loss_names[i]) == 0) return (sdlf_loss)i;
    return SDLF_LOSS_COUNT;
}

static const model_layer *own_loss(const sdlf_model *model)
{
    for (int i = 0; i < model->layer_count; i++)
        if (model->layers[i].layer.type->is_loss) return &model->layers[i];
    return NULL;
}

sdlf_loss sdlf_model_loss(const sdlf_model *model)
{
    if (model == NULL) return SDLF_LOSS_CROSS_ENTROPY;
    const model_layer *own = own_loss(model);
    sdlf_loss kind = own != NULL ? kind_of(own->layer.type) : model->loss;
    return kind != SDLF_LOSS_COUNT ? kind : SDLF_LOSS_CROSS_ENTROPY;
}

sdlf_status sdlf_model_set_loss(sdlf_model *model, sdlf_loss loss)
{
    if (model == NULL) return sdlf_model_status(NULL);
    if ((unsigned)loss >= SDLF_LOSS_COUNT) return sdlf_fail(SDLF_ERROR_ARGUMENT, "there is no loss %d", (int)loss);
    const model_layer *own = own_loss(model);
    if (own != NULL && kind_of(own->layer.type) != loss)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "network '%s' has a loss layer of its own, '%s' (%s), so that %s cannot be added", model->name,
                         own->layer.name, own->layer.type->name, sdlf_loss_names[loss]);
    model->loss = loss;
    return SDLF_OK;
}

float sdlf_model_huber_delta(const sdlf_model *model)
{
    const model_layer *own = model != NULL ? own_loss(model) : NULL;
    if (own != NULL && kind_of(own->layer.type) == SDLF_LOSS_HUBER)
        return ((const sdlf_huber_options *)own->layer.options)->delta;
    return model != NULL && model->huber_delta > 0 ? model->huber_delta : 1;
}

sdlf_status sdlf_model_set_huber_delta(sdlf_model *model, float delta)
{
    if (model == NULL) return sdlf_model_status(NULL);
    if (!(delta >= 1e-6f && delta <= 1e6f))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "delta of huber: expected a number from 1e-6 to 1e6, found %g",
                         (double)delta);
    model->huber_delta = delta;
    return SDLF_OK;
}
