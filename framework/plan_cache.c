/* SPDX-License-Identifier: MIT */
/* Plans of one ONNX file for many sizes. See plan_cache.h. */
#include <sdlf/plan_cache.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "framework/require.h"

enum { MOST_INPUTS = 64, MOST_PLANS = 4096, USUAL = 8 };

/* One size: the shapes of the inputs, sorted by name. */
typedef struct sized_plan {
    sdlf_onnx_shape *shape; /* names are owned */
    int count;
    sdlf_model *model;
    sdlf_plan *plan;
    int64_t used; /* the number of the call that used it last */
} sized_plan;

struct sdlf_plan_cache {
    char *path;
    sdlf_plan_cache_options options;
    sized_plan *kept;
    int count;
    int64_t calls, made;
};

static void release(sized_plan *one)
{
    sdlf_plan_free(one->plan);
    sdlf_model_free(one->model);
    for (int i = 0; i < one->count; i++) free((char *)one->shape[i].name);
    free(one->shape);
    *one = (sized_plan){.count = 0};
}

void sdlf_plan_cache_free(sdlf_plan_cache *plans)
{
    if (plans == NULL) return;
    for (int i = 0; i < plans->count; i++) release(&plans->kept[i]);
    free(plans->kept);
    free(plans->path);
    free(plans);
}

sdlf_status sdlf_plan_cache_create(sdlf_plan_cache **plans, const char *path, const sdlf_plan_cache_options *options)
{
    SDLF_REQUIRE(plans);
    *plans = NULL;
    SDLF_REQUIRE(path);
    SDLF_REQUIRE(options);
    SDLF_REQUIRE(options->calculator);
    int most = options->most != 0 ? options->most : USUAL;
    if (most < 1 || most > MOST_PLANS)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: expected 1 to %d plans, found %d", __func__, MOST_PLANS, most);
    sdlf_plan_cache *made = calloc(1, sizeof *made);
    if (made != NULL) {
        made->options = *options;
        made->options.most = most;
        made->path = strdup(path);
        made->kept = calloc((size_t)most, sizeof *made->kept);
    }
    if (made == NULL || made->path == NULL || made->kept == NULL) {
        sdlf_plan_cache_free(made);
        return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", __func__);
    }
    *plans = made;
    return SDLF_OK;
}

static const sdlf_onnx_shape *find(const sdlf_onnx_shape *shapes, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(shapes[i].name, name) == 0) return &shapes[i];
    return NULL;
}

static bool is_for(const sized_plan *one, const sdlf_onnx_shape *shapes, int count)
{
    if (one->count != count) return false;
    for (int i = 0; i < count; i++) {
        const sdlf_onnx_shape *other = find(one->shape, one->count, shapes[i].name);
        if (other == NULL || !sdlf_shape_equal(other->shape, shapes[i].shape)) return false;
    }
    return true;
}

/* The size of the given inputs' first dimension if the file leaves that open; 0: it is open in none. */
static sdlf_status batch_of(const sdlf_plan_cache *plans, const sdlf_onnx_shape *shapes, int count, int64_t *batch)
{
    sdlf_onnx_report *report = NULL;
    sdlf_status status =
        sdlf_onnx_inspect(&report, plans->path, &(sdlf_onnx_options){.shapes = shapes, .shape_count = count});
    *batch = 0;
    for (int i = 0; status == SDLF_OK && i < report->input_count; i++) {
        const sdlf_onnx_value *input = &report->input[i];
        const sdlf_onnx_shape *given = find(shapes, count, input->name);
        bool open = input->shape_known && input->shape.rank > 0 && input->shape.dim[0] < 0;
        if (!open || given == NULL || given->shape.rank != input->shape.rank) continue;
        if (*batch == 0) *batch = given->shape.dim[0];
        if (*batch != given->shape.dim[0])
            status = sdlf_fail(SDLF_ERROR_SHAPE, "%s: input '%s' is %s, in a batch of %" PRId64, plans->path,
                               given->name, sdlf_shape_print(given->shape).text, *batch);
    }
    sdlf_onnx_report_free(report);
    return status;
}

static sdlf_status copy_shapes(sized_plan *one, const sdlf_onnx_shape *shapes, int count)
{
    one->shape = calloc((size_t)count + 1, sizeof *one->shape);
    bool ok = one->shape != NULL;
    for (int i = 0; ok && i < count; i++) {
        one->shape[one->count++] = (sdlf_onnx_shape){strdup(shapes[i].name), shapes[i].shape};
        ok = one->shape[i].name != NULL;
    }
    return ok ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "sdlf_plan_cache_get: out of memory");
}

static sdlf_status make(const sdlf_plan_cache *plans, sized_plan *one, const sdlf_onnx_shape *shapes, int count)
{
    int64_t batch = 0;
    sdlf_status status = copy_shapes(one, shapes, count);
    if (status == SDLF_OK) status = batch_of(plans, shapes, count, &batch);
    if (status == SDLF_OK)
        status = sdlf_model_from_onnx(
            &one->model, plans->path,
            &(sdlf_onnx_options){.batch = batch, .shapes = shapes, .shape_count = count, .leave_weights = true});
    if (status == SDLF_OK)
        status = sdlf_plan_create(&one->plan, one->model,
                                  &(sdlf_plan_options){.batch = 1,
                                                       .forward = plans->options.calculator,
                                                       .dtype = plans->options.dtype,
                                                       .consume_parameters = true});
    for (int i = 0; status == SDLF_OK && i < count; i++) {
        sdlf_binding binding;
        if (sdlf_plan_input(one->plan, shapes[i].name, &binding) != SDLF_OK) continue; /* the plan does not use it */
        if (!sdlf_shape_equal(binding.tensor.shape, shapes[i].shape))
            status =
                sdlf_fail(SDLF_ERROR_SHAPE, "%s: input '%s' is %s, but %s was asked for", plans->path, shapes[i].name,
                          sdlf_shape_print(binding.tensor.shape).text, sdlf_shape_print(shapes[i].shape).text);
    }
    return status;
}

sdlf_status sdlf_plan_cache_get(sdlf_plan_cache *plans, const sdlf_onnx_shape *shapes, int count, sdlf_plan **plan)
{
    SDLF_REQUIRE(plan);
    *plan = NULL;
    SDLF_REQUIRE(plans);
    if (count > 0) SDLF_REQUIRE(shapes);
    if (count < 0 || count > MOST_INPUTS)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: expected shapes of at most %d inputs, found %d", __func__,
                         MOST_INPUTS, count);
    for (int i = 0; i < count; i++)
        if (shapes[i].name == NULL || find(shapes, i, shapes[i].name) != NULL)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: shape %d has no name, or that of another", __func__, i);
    plans->calls++;
    sized_plan *oldest = NULL;
    for (int i = 0; i < plans->count; i++) {
        sized_plan *one = &plans->kept[i];
        if (is_for(one, shapes, count)) {
            one->used = plans->calls;
            *plan = one->plan;
            return SDLF_OK;
        }
        if (oldest == NULL || one->used < oldest->used) oldest = one;
    }
    sized_plan made = {.used = plans->calls};
    bool full = plans->count == plans->options.most;
    if (full) release(oldest); /* before the new one allocates memory */
    if (full) *oldest = plans->kept[--plans->count];
    sdlf_status status = make(plans, &made, shapes, count);
    if (status != SDLF_OK) {
        release(&made);
        return status;
    }
    plans->made++;
    plans->kept[plans->count++] = made;
    *plan = made.plan;
    return SDLF_OK;
}

int64_t sdlf_plan_cache_made(const sdlf_plan_cache *plans)
{
    return plans != NULL ? plans->made : 0;
}
