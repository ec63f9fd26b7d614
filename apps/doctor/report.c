/* SPDX-License-Identifier: MIT */
/* The output of sdlf doctor, as text and as JSON. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "apps/doctor/doctor.h"
#include "apps/output/number.h"
#include "apps/output/table.h"
#include "apps/output/trainable.h"
#include "apps/system/memory.h"

enum { NEIGHBOURS = 20000 }; /* nodes farther apart are not grouped, to bound the time */
enum { TROUBLES = 40 };      /* listed one by one; the rest is counted */

/* A name from a file, without control characters. */
typedef struct shown {
    char text[160];
} shown;

static shown show(const char *name)
{
    shown s;
    snprintf(s.text, sizeof s.text, "%s", name);
    for (char *at = s.text; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == 127) *at = '?';
    return s;
}

static void print_value(const char *what, const sdlf_onnx_value *value, const terminal *out)
{
    fprintf(out->file, "  %-7s %s  %s ", what, show(value->name).text, value->type);
    for (int i = 0; i < value->shape.rank; i++) {
        if (i > 0) fputc('x', out->file);
        if (value->shape.dim[i] < 0)
            fputc('?', out->file);
        else
            fprintf(out->file, "%" PRId64, value->shape.dim[i]);
    }
    fprintf(out->file, "%s%s\n",
            !value->shape_known      ? "of a shape that the file does not give"
            : value->shape.rank == 0 ? "scalar"
                                     : "",
            value->must_be_known ? "  (must be known when the model is made)" : "");
}

static bool same_row(const sdlf_onnx_node *a, const sdlf_onnx_node *b)
{
    return strcmp(a->type, b->type) == 0 && a->status == b->status && a->shape_known == b->shape_known &&
           (!a->shape_known || sdlf_shape_equal(a->shape, b->shape));
}

static const char *state(const sdlf_onnx_node *node)
{
    return node->status == SDLF_OK ? "" : node->reason != NULL ? "cannot be run" : "depends on another";
}

/* Prints one line for the nodes of one operator and shape; or one for each node. */
static void print_nodes(const doctor *d, const terminal *out)
{
    const sdlf_onnx_report *report = d->report;
    table *t = table_create(d->every_node ? ">node|operator|name|shape|" : ">count|operator|shape|");
    bool *counted = memory_allocate((size_t)report->node_count * sizeof *counted + 1);
    memset(counted, 0, (size_t)report->node_count * sizeof *counted + 1);
    for (int i = 0; i < report->node_count; i++) {
        const sdlf_onnx_node *node = &report->node[i];
        int count = 0;
        if (counted[i]) continue;
        for (int j = i; j < report->node_count && j - i < NEIGHBOURS && !d->every_node; j++) {
            if (counted[j] || !same_row(node, &report->node[j])) continue;
            counted[j] = true;
            count++;
        }
        table_cell(t, "%d", d->every_node ? i : count);
        table_cell(t, "%s", show(node->type).text);
        if (d->every_node) table_cell(t, "%s", show(node->name).text);
        table_cell(t, "%s", node->shape_known ? sdlf_shape_print(node->shape).text : "?");
        table_cell(t, "%s", state(node));
    }
    fputc('\n', out->file);
    table_print(t, out, 2);
    table_free(t);
    free(counted);
}

static void print_troubles(const sdlf_onnx_report *report, const terminal *out)
{
    int told = 0, waiting = 0;
    if (report->status == SDLF_OK) return;
    fputs("\ncannot be run:\n", out->file);
    for (int i = 0; i < report->node_count; i++) {
        const sdlf_onnx_node *node = &report->node[i];
        waiting += node->status != SDLF_OK && node->reason == NULL;
        if (node->reason == NULL || told++ >= TROUBLES) continue;
        fprintf(out->file, "  node %d%s%s%s (%s): %s\n", i, node->name[0] ? " '" : "", show(node->name).text,
                node->name[0] ? "'" : "", show(node->type).text, node->reason);
    }
    if (told == 0) fprintf(out->file, "  %s\n", report->message);
    if (told > TROUBLES) fprintf(out->file, "  and %d more\n", told - TROUBLES);
    if (waiting > 0) fprintf(out->file, "  (%d nodes that depend on these could not be checked)\n", waiting);
}

/* Bytes of the model's own parameters, which are the same for all calculators. */
static int64_t parameter_bytes(sdlf_model *model)
{
    int64_t bytes = 0;
    for (int i = 0; i < sdlf_model_parameter_count(model); i++)
        bytes += sdlf_shape_count(sdlf_model_parameter(model, i)->spec.shape) * (int64_t)sizeof(float);
    return bytes;
}

/* Copies of parameters, on a device or in another dtype, count as the calculator's memory. */
static void print_memory(const doctor *d, const terminal *out)
{
    const doctor_calculator *first = NULL;
    for (int i = 0; i < d->calculator_count && first == NULL; i++)
        if (d->calculator[i].planned) first = &d->calculator[i];
    if (first == NULL) return;
    int64_t parameters = parameter_bytes(d->report->model);
    fprintf(out->file, "\n%s a run in %s; memory, besides %s of parameters",
            number_scaled((double)first->cost.flops, "FLOP").text, sdlf_dtype_name(d->dtype),
            number_bytes(parameters).text);
    const char *between = ": ";
    for (int i = 0; i < d->calculator_count; i++) {
        const doctor_calculator *entry = &d->calculator[i];
        if (!entry->planned) continue;
        fprintf(out->file, "%s%s on %s", between,
                number_bytes(entry->memory.arena + entry->memory.parameters - parameters).text, entry->name);
        between = ", ";
    }
    if (first->memory.output_name != NULL)
        fprintf(out->file, "; %s for output %s", number_bytes(first->memory.output).text,
                show(first->memory.output_name).text);
    fprintf(out->file, "\n%s of memory is available here (%s)\n",
            number_bytes(d->machine.available + d->machine.held).text, d->machine.available_by);
}

static void print_calculators(const doctor *d, const terminal *out)
{
    if (d->report->model == NULL) return;
    print_memory(d, out);
    fputs("trains: ", out->file);
    trainable_print(out, d->report->model, 8);
    bool any = false;
    fputs("runs on: ", out->file);
    for (int i = 0; i < d->calculator_count; i++) {
        if (!d->calculator[i].runs) continue;
        fprintf(out->file, "%s%s", any ? ", " : "", d->calculator[i].name);
        any = true;
    }
    fputs(any ? "\n" : "-\n", out->file);
    for (int i = 0; i < d->calculator_count; i++) {
        const doctor_calculator *entry = &d->calculator[i];
        if (!entry->runs)
            fprintf(out->file, "not on %s%s: %s\n", entry->name, entry->here ? "" : " (not available here)",
                    entry->reason);
    }
}

void doctor_print(const doctor *d, const terminal *out)
{
    const sdlf_onnx_report *report = d->report;
    fprintf(out->file, "%s: opset %" PRId64 ", %d %s, %s of weights", d->path, report->opset, report->node_count,
            report->node_count == 1 ? "node" : "nodes", number_bytes(report->weight_bytes).text);
    if (report->weight_count > 0) fprintf(out->file, " (%s numbers)", number_count(report->weight_count).text);
    if (report->producer[0]) fprintf(out->file, ", made by %s", show(report->producer).text);
    fputc('\n', out->file);
    for (int i = 0; i < report->input_count; i++) print_value("input", &report->input[i], out);
    for (int i = 0; i < report->output_count; i++) print_value("output", &report->output[i], out);
    if (report->node_count > 0) print_nodes(d, out);
    print_troubles(report, out);
    print_calculators(d, out);
}

/* ---- JSON ---- */

static json_t *values_json(const sdlf_onnx_value *value, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_pack("{so ss so sb}", "name", json_text(value[i].name), "type", value[i].type,
                                              "shape", value[i].shape_known ? json_shape(value[i].shape) : json_null(),
                                              "must_be_known", (int)value[i].must_be_known));
    return list;
}

static json_t *nodes_json(const sdlf_onnx_report *report)
{
    json_t *list = json_array();
    for (int i = 0; i < report->node_count; i++) {
        const sdlf_onnx_node *node = &report->node[i];
        json_t *shape = node->shape_known ? json_shape(node->shape) : json_null();
        json_array_append_new(list,
                              json_pack("{so so so so sb so}", "operator", json_text(node->type), "name",
                                        json_text(node->name), "domain", json_text(node->domain), "shape", shape,
                                        "runs", (int)(node->status == SDLF_OK), "reason", json_text(node->reason)));
    }
    return list;
}

static json_t *calculators_json(const doctor *d)
{
    json_t *list = json_array();
    for (int i = 0; i < d->calculator_count; i++) {
        const doctor_calculator *entry = &d->calculator[i];
        json_array_append_new(
            list,
            json_pack("{ss sb sb so sI sI sI sI}", "name", entry->name, "here", (int)entry->here, "runs",
                      (int)entry->runs, "reason", entry->runs ? json_null() : json_text(entry->reason), "flops",
                      (json_int_t)entry->cost.flops, "bytes_to_run", (json_int_t)entry->memory.arena, "parameter_bytes",
                      (json_int_t)entry->memory.parameters, "output_bytes", (json_int_t)entry->memory.output));
    }
    return list;
}

json_t *doctor_json(const doctor *d)
{
    const sdlf_onnx_report *report = d->report;
    bool good = report->status == SDLF_OK;
    json_t *parameters = report->model != NULL ? trainable_json(report->model) : json_array();
    return json_pack("{so sI sI sI sI sI so so so so so sb so so sI ss so}", "file", json_text(d->path), "ir_version",
                     (json_int_t)report->ir_version, "opset", (json_int_t)report->opset, "file_bytes",
                     (json_int_t)report->file_bytes, "weight_bytes", (json_int_t)report->weight_bytes, "weights",
                     (json_int_t)report->weight_count, "producer", json_text(report->producer), "graph",
                     json_text(report->graph), "inputs", values_json(report->input, report->input_count), "outputs",
                     values_json(report->output, report->output_count), "nodes", nodes_json(report), "convertible",
                     (int)good, "reason", good ? json_null() : json_text(report->message), "parameters", parameters,
                     "available", (json_int_t)(d->machine.available + d->machine.held), "available_by",
                     d->machine.available_by, "calculators", calculators_json(d));
}
