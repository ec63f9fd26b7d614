/* SPDX-License-Identifier: MIT */
/* Learning rates and weight decays of groups of parameters: "trunk=0.1,conv2d.*=0.5", "head=1e-4". */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "framework/model_internal.h"
#include "framework/trainer_internal.h"

/* "FACTOR" or "FACTOR@SHARE". */
typedef struct group_value {
    float factor, share; /* share 1: not given */
} group_value;

/* One option: its name, and its valid values. */
typedef struct group_list {
    const char *name, *expected;
    bool positive, shared; /* must be above 0; may have a share */
} group_list;

static const group_list rate_list = {
    "rate_scales",
    "PARAMETERS=FACTOR or PARAMETERS=FACTOR@SHARE, with a factor above 0 and a share of "
    "the training above 0 and up to 1",
    true, true};
static const group_list decay_list = {"weight_decays", "PARAMETERS=DECAY, of 0 to 10", false, false};

static bool read_value(const group_list *list, const char *text, group_value *value)
{
    enum { LARGEST_DECAY = 10 };
    char *end = NULL;
    *value = (group_value){.factor = strtof(text, &end), .share = 1};
    if (end == text) return false;
    const char *share = end + 1;
    if (*end == '@' && list->shared) value->share = strtof(share, &end);
    bool good = list->positive ? value->factor > 0 && !isinf(value->factor)
                               : value->factor >= 0 && value->factor <= LARGEST_DECAY;
    return *end == '\0' && end != share && good && value->share > 0 && value->share <= 1;
}

/* Applies one group, "PATTERN=VALUE", to the parameters that have no value yet (share 0). */
static sdlf_status take_group(const sdlf_model *model, const group_list *list, char *group, group_value *values)
{
    char *equals = strrchr(group, '=');
    group_value value;
    if (equals == NULL || !read_value(list, equals + 1, &value))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "trainer: %s: '%s': expected %s", list->name, group, list->expected);
    *equals = '\0';
    bool any = false;
    for (int i = 0; i < model->parameter_count; i++) {
        if (!sdlf_model_parameter_matches(model, i, group)) continue;
        any = true;
        if (values[i].share == 0) values[i] = value;
    }
    return any ? SDLF_OK
               : sdlf_fail(SDLF_ERROR_ARGUMENT, "trainer: %s: network '%s' has no parameter '%s'", list->name,
                           model->name, group);
}

/* Parses the values of all parameters; share is 0 for those without one. The caller frees *values. */
static sdlf_status read_groups(const sdlf_model *model, const group_list *list, const char *text, group_value **values)
{
    char copy[sizeof((sdlf_trainer_options *)0)->rate_scales], *rest = NULL;
    *values = calloc((size_t)model->parameter_count + 1, sizeof **values);
    if (*values == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "trainer: no memory for the groups of parameters");
    memcpy(copy, text, sizeof copy);
    sdlf_status status = SDLF_OK;
    for (char *group = strtok_r(copy, ",", &rest); group != NULL && status == SDLF_OK;
         group = strtok_r(NULL, ",", &rest))
        status = take_group(model, list, group, *values);
    return status;
}

/* Sets the rate of a line from `peak` to 0 over `share` of the training, times `factor`: max(0, scale rate - offset),
 * where rate is the line over the whole training. */
static sdlf_status set_rate(sdlf_trainer *trainer, int parameter, group_value value)
{
    const sdlf_schedule *schedule = &trainer->options.schedule;
    bool whole = value.share == 0 || value.share == 1; /* of the training */
    if (!whole && (schedule->kind != SDLF_SCHEDULE_LINEAR || schedule->final != 0 || schedule->warmup != 0))
        return sdlf_fail(
            SDLF_ERROR_ARGUMENT,
            "trainer: rate_scales: only a linear schedule that ends at 0, without warm-up, can end after a "
            "share of the training, %g",
            (double)value.share);
    double factor = value.share == 0 ? 1 : (double)value.factor, share = whole ? 1 : (double)value.share;
    trainer->rate_scales[parameter] = (float)(factor / share);
    trainer->rate_offsets[parameter] = (float)(factor * (double)schedule->peak * (1 - share) / share);
    return SDLF_OK;
}

static sdlf_status prepare_rates(sdlf_trainer *trainer)
{
    const sdlf_model *model = trainer->model;
    group_value *values = NULL;
    trainer->rate_scales = calloc((size_t)model->parameter_count + 1, sizeof *trainer->rate_scales);
    trainer->rate_offsets = calloc((size_t)model->parameter_count + 1, sizeof *trainer->rate_offsets);
    if (trainer->rate_scales == NULL || trainer->rate_offsets == NULL)
        return sdlf_fail(SDLF_ERROR_MEMORY, "trainer: no memory for the learning rates of parameters");
    sdlf_status status = read_groups(model, &rate_list, trainer->options.rate_scales, &values);
    for (int i = 0; i < model->parameter_count && status == SDLF_OK; i++) status = set_rate(trainer, i, values[i]);
    free(values);
    return status;
}

static sdlf_status prepare_decays(sdlf_trainer *trainer)
{
    const sdlf_model *model = trainer->model;
    group_value *values = NULL;
    float *decays = trainer->weight_decays = calloc((size_t)model->parameter_count + 1, sizeof *decays);
    if (decays == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "trainer: no memory for the decays of parameters");
    sdlf_status status = read_groups(model, &decay_list, trainer->options.weight_decays, &values);
    for (int i = 0; i < model->parameter_count && status == SDLF_OK; i++)
        decays[i] = values[i].share > 0 ? values[i].factor : -1;
    free(values);
    return status;
}

sdlf_status sdlf_trainer_prepare_groups(sdlf_trainer *trainer)
{
    sdlf_status status = trainer->options.rate_scales[0] != '\0' ? prepare_rates(trainer) : SDLF_OK;
    return status == SDLF_OK && trainer->options.weight_decays[0] != '\0' ? prepare_decays(trainer) : status;
}
