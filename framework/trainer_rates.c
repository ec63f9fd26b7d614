/* Learning rates of groups of parameters: "trunk=0.1,conv2d.*=0.5". */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "framework/model_internal.h"
#include "framework/trainer_internal.h"

/* One group, "PATTERN=FACTOR", for the parameters that have no factor yet (0). */
static sdlf_status take_group(const sdlf_model *model, float *scales, char *group)
{
    char *equals = strrchr(group, '='), *end = NULL;
    float factor = equals != NULL ? strtof(equals + 1, &end) : 0;
    if (equals == NULL || end == equals + 1 || *end != '\0' || !(factor > 0) || isinf(factor))
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "trainer: rate_scales: '%s': expected PARAMETERS=FACTOR, with a factor above 0", group);
    *equals = '\0';
    bool any = false;
    for (int i = 0; i < model->parameter_count; i++) {
        if (!sdlf_model_parameter_matches(model, i, group)) continue;
        any = true;
        if (scales[i] == 0) scales[i] = factor;
    }
    return any ? SDLF_OK
               : sdlf_fail(SDLF_ERROR_ARGUMENT, "trainer: rate_scales: network '%s' has no parameter '%s'", model->name,
                           group);
}

sdlf_status sdlf_trainer_prepare_rates(sdlf_trainer *trainer)
{
    const sdlf_model *model = trainer->model;
    char list[sizeof trainer->options.rate_scales], *rest = NULL;
    if (trainer->options.rate_scales[0] == '\0') return SDLF_OK;
    float *scales = trainer->rate_scales = calloc((size_t)model->parameter_count + 1, sizeof *scales);
    if (scales == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "trainer: no memory for the learning rates of parameters");
    memcpy(list, trainer->options.rate_scales, sizeof list);
    sdlf_status status = SDLF_OK;
    for (char *group = strtok_r(list, ",", &rest); group != NULL && status == SDLF_OK;
         group = strtok_r(NULL, ",", &rest))
        status = take_group(model, scales, group);
    for (int i = 0; i < model->parameter_count; i++)
        if (scales[i] == 0) scales[i] = 1;
    return status;
}
