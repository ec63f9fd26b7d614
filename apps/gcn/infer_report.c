/* SPDX-License-Identifier: MIT */
/* The results of `sdlf gcn infer`, as text and as JSON. */
#include <stdio.h>

#include "apps/gcn/infer.h"
#include "apps/output/json.h"
#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/table.h"

static int64_t own_id(const gcn_inference *s, int64_t node)
{
    return sdlf_tensor_present(&s->graph->ids) ? ((const int64_t *)s->graph->ids.data)[node] : node;
}

static void print_whole(table *lines, const char *what, double seconds)
{
    table_cell(lines, "%s", what);
    table_cell(lines, "%s", number_fixed(seconds * 1e3, 4).text);
    table_cell(lines, "%s", "");
    table_cell(lines, "%s", "");
}

void gcn_infer_print(const gcn_inference *s, const terminal *out)
{
    table *lines = table_create("operation|>ms|>GFLOP/s|>GB/s, each byte once");
    for (int i = 0; i < sdlf_plan_step_count(s->plan) && s->steps; i++) {
        sdlf_step_info info = sdlf_plan_step_info(s->plan, i);
        table_cell(lines, "%s (%s)", info.operation, info.layer);
        table_cell(lines, "%s", number_fixed(info.seconds * 1e3, 4).text);
        table_cell(lines, "%s", number_fixed((double)info.cost.flops / info.seconds * 1e-9, 1).text);
        table_cell(lines, "%s", number_fixed((double)info.cost.bytes / info.seconds * 1e-9, 1).text);
    }
    if (s->steps) table_rule(lines);
    print_whole(lines, "all together", s->whole);
    if (s->queued != s->whole) print_whole(lines, "all together, many queued", s->queued);
    putchar('\n');
    table_print(lines, out, 2);
    table_free(lines);
    putchar('\n');
    report_label(out, "check");
    printf("largest sum of a vertex's outputs %.12g, at vertex %lld  checksum %08x\n", s->largest,
           (long long)own_id(s, s->largest_at), (unsigned)s->checksum);
}

static json_t *ladder_json(const gcn_ladder *ladder)
{
    json_t *rungs = json_array();
    for (int i = 0; i < ladder->count; i++) {
        const gcn_rung *r = &ladder->rung[i];
        json_array_append_new(rungs,
                              json_pack("{ss so sI sI}", "algorithm", r->algorithm, "ms", json_number(r->seconds * 1e3),
                                        "flops", (json_int_t)r->cost.flops, "bytes", (json_int_t)r->cost.bytes));
    }
    return rungs;
}

sdlf_status gcn_infer_print_json(const gcn_inference *s, const gcn_ladder *ladder)
{
    json_t *steps = json_array();
    for (int i = 0; i < sdlf_plan_step_count(s->plan) && s->steps; i++) {
        sdlf_step_info info = sdlf_plan_step_info(s->plan, i);
        json_array_append_new(steps, json_pack("{ss ss so sI sI}", "operation", info.operation, "layer", info.layer,
                                               "ms", json_number(info.seconds * 1e3), "flops",
                                               (json_int_t)info.cost.flops, "bytes", (json_int_t)info.cost.bytes));
    }
    char checksum[9];
    snprintf(checksum, sizeof checksum, "%08x", (unsigned)s->checksum);
    json_t *result = json_pack("{ss so sI sI sI sI ss ss so so so so so so sI ss}", "version", SDLF_VERSION, "graph",
                               json_text(s->graph->name), "nodes", (json_int_t)s->graph->node_count, "elements",
                               (json_int_t)s->matrix.stored, "features", (json_int_t)s->features.shape.dim[1], "hidden",
                               (json_int_t)s->set.hidden, "dtype", sdlf_dtype_name(s->dtype), "calculator",
                               s->calculator->type->name, "read_s", json_number(s->reading), "matrix_s",
                               json_number(s->preparing), "ms", json_number(s->whole * 1e3), "queued_ms",
                               json_number(s->queued * 1e3), "steps", steps, "largest_sum", json_number(s->largest),
                               "largest_at", (json_int_t)own_id(s, s->largest_at), "checksum", checksum);
    if (ladder->count > 0) json_object_set_new(result, "ladder", ladder_json(ladder));
    return json_print_measured(result);
}
