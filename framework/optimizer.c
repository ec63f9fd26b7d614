/* SPDX-License-Identifier: MIT */
/* The optimizer classes by index and by name, and the check of an optimizer's options. */
#include <sdlf/optimizer.h>

#include <assert.h>
#include <string.h>

#include "framework/field.h"
#include "framework/optimizers/optimizers.h"
#include "framework/require.h"

static_assert(sizeof((sdlf_optimizer *)0)->options == sizeof((sdlf_optimizer *)0)->options.bytes,
              "the options of every optimizer fit into the room that is reserved for them");

static const sdlf_optimizer_class *const classes[] = {
#define SDLF_OPTIMIZER(class) &class,
#include "framework/optimizers/list.h"
#undef SDLF_OPTIMIZER
};

const sdlf_optimizer_class *sdlf_optimizer_class_at(int index)
{
    int count = (int)(sizeof classes / sizeof classes[0]);
    return index >= 0 && index < count ? classes[index] : NULL;
}

const sdlf_optimizer_class *sdlf_optimizer_class_find(const char *name)
{
    if (name == NULL) return NULL;
    for (int index = 0; sdlf_optimizer_class_at(index) != NULL; index++)
        if (strcmp(classes[index]->name, name) == 0) return classes[index];
    return NULL;
}

sdlf_status sdlf_optimizer_complete(sdlf_optimizer *optimizer)
{
    SDLF_REQUIRE(optimizer);
    if (optimizer->type == NULL) optimizer->type = &sdlf_sgd_class;
    sdlf_status status = sdlf_fields_complete(optimizer->type->fields, &optimizer->options);
    return sdlf_fail_context(status, "optimizer %s", optimizer->type->name);
}

float sdlf_optimizer_rate(const sdlf_optimizer *optimizer, int64_t batch)
{
    if (optimizer == NULL) return 0;
    const sdlf_optimizer_class *type = optimizer->type != NULL ? optimizer->type : &sdlf_sgd_class;
    if (batch >= type->full_batch) return type->learning_rate;
    return type->learning_rate * (float)batch / (float)type->full_batch;
}
