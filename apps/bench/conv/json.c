/* SPDX-License-Identifier: MIT */
/* The results of the convolution lab, as JSON. */
#include <math.h>

#include <sdlf/version.h>

#include "apps/bench/conv/report.h"

static json_t *pair_json(const int64_t *pair)
{
    return json_pack("[I, I]", (json_int_t)pair[0], (json_int_t)pair[1]);
}

static json_t *shape_json(const lab_shape *s)
{
    return json_pack("{so so so so so sI}", "x", json_shape(sdlf_shape(s->n, s->c, s->h, s->w)), "filters",
                     json_shape(sdlf_shape(s->k, s->c / s->groups, s->kernel[0], s->kernel[1])), "stride",
                     pair_json(s->stride), "padding", pair_json(s->padding), "dilation", pair_json(s->dilation),
                     "groups", (json_int_t)s->groups);
}

static json_t *result_json(const lab *l, int index, int rung)
{
    const lab_result *r = &l->result[index][rung];
    json_t *json = json_pack("{so sb}", "rung", json_text(l->rung[rung].name), "ran", r->ran);
    if (!r->ran) {
        json_object_set_new(json, "why", json_text(r->why[0] ? r->why : "interrupted"));
        return json;
    }
    const sdlf_cost *cost = &l->cost[index];
    if (r->taken) json_object_set_new(json, "taken", json_text(r->taken));
    json_object_set_new(json, "channels_last", json_boolean(r->channels_last));
    json_object_set_new(json, "prepared_bytes", json_integer((json_int_t)r->prepared));
    json_object_set_new(json, "seconds", json_number(r->seconds));
    json_object_set_new(json, "quarters", json_pack("[o, o]", json_number(r->quarter[0]), json_number(r->quarter[1])));
    json_object_set_new(json, "samples", json_integer(r->samples));
    json_object_set_new(json, "runs_a_sample", json_integer(r->runs));
    json_object_set_new(json, "flops_per_second", json_number((double)cost->flops / r->seconds));
    json_object_set_new(json, "bytes_per_second", json_number((double)r->work.bytes / r->seconds));
    json_object_set_new(json, "work_flops", json_integer((json_int_t)r->work.flops));
    json_object_set_new(json, "work_bytes", json_integer((json_int_t)r->work.bytes));
    json_object_set_new(json, "of_floor", json_number(lab_floor(l, index) / r->seconds));
    json_object_set_new(json, "speed_up", json_number(l->result[index][lab_case_base(l, index)].seconds / r->seconds));
    json_object_set_new(json, "error", json_number(r->error));
    json_object_set_new(json, "compared", json_number(r->compared));
    return json;
}

static json_t *case_json(const lab *l, int index)
{
    const lab_case *item = &l->workload.item[index];
    json_t *rungs = json_array();
    for (int i = 0; i < l->rungs; i++) json_array_append_new(rungs, result_json(l, index, i));
    return json_pack("{so so si so sI sI so so}", "name", json_text(item->name), "row", json_text(item->row), "layers",
                     item->count, "shape", shape_json(&item->shape), "flops", (json_int_t)l->cost[index].flops, "bytes",
                     (json_int_t)l->cost[index].bytes, "floor_seconds", json_number(lab_floor(l, index)), "rungs",
                     rungs);
}

json_t *lab_json(const lab *l)
{
    json_t *rungs = json_array(), *cases = json_array();
    for (int i = 0; i < l->rungs; i++) {
        lab_total total = lab_total_of(l, i, 0, l->cases);
        json_array_append_new(rungs, json_pack("{so so ss si si so so}", "name", json_text(l->rung[i].name), "summary",
                                               json_text(l->rung[i].summary), "calculator", l->rung[i].of, "layers",
                                               total.asked, "ran", total.ran, "seconds",
                                               json_number(total.ran > 0 ? total.seconds : NAN), "error",
                                               json_number(total.ran > 0 ? total.error : NAN)));
    }
    for (int i = 0; i < l->cases; i++) json_array_append_new(cases, case_json(l, i));
    json_t *limits = json_pack("{so sI so sI}", "flops_per_second", json_number(l->ceilings.flops), "product_side",
                               (json_int_t)l->ceilings.side, "bytes_per_second", json_number(l->ceilings.bytes),
                               "copy_bytes", (json_int_t)l->ceilings.copy_bytes);
    return json_pack("{ss so so ss so ss ss sb so so so}", "version", SDLF_VERSION, "workload",
                     json_text(l->workload.name), "about", json_text(l->workload.about), "calculator", l->calculator,
                     "runs_on", json_text(l->runs_on), "math", l->math, "dtype", sdlf_dtype_name(l->dtype),
                     "interrupted", l->interrupted, "limits", limits, "rungs", rungs, "convolutions", cases);
}
