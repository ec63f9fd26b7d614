/* SPDX-License-Identifier: MIT */
/* See network_graph.h. */
#include "apps/graph/network_graph.h"

#include <stdlib.h>
#include <string.h>

#include "apps/graph/layered.h"
#include "apps/output/number.h"
#include "apps/output/xml.h"
#include "apps/system/memory.h"

enum { LINE = 17, PADDING = 7, NAME_MOST = 30, MARGIN = 12, SHORT = 24 };
static const double letter = 6.9; /* the width of a letter of a monospaced font */

typedef struct box {
    int *layer; /* in the order of computation */
    int count;
    const char *kind; /* its CSS class */
} box;

struct network_graph {
    sdlf_model *model;
    box *box;
    int *box_of; /* each layer's */
    layered layout;
    int64_t *parameters; /* of each layer */
};

static sdlf_shape shape_of(const network_graph *g, int layer)
{
    return sdlf_model_node_shape(g->model, (sdlf_node){.layer = layer});
}

static bool same_shape(sdlf_shape a, sdlf_shape b)
{
    return a.rank == b.rank && a.rank > 0 && memcmp(a.dim, b.dim, (size_t)a.rank * sizeof a.dim[0]) == 0;
}

static bool is_input(const network_graph *g, int layer)
{
    return sdlf_model_layer_input_count(g->model, layer) == 0;
}

static bool is_output(const network_graph *g, int layer)
{
    for (int i = 0; i < sdlf_model_output_count(g->model); i++)
        if (sdlf_model_output(g->model, i).layer == layer) return true;
    return false;
}

/* A constant is not drawn: it is a parameter of its reader. */
static bool is_hidden(const network_graph *g, int layer)
{
    if (!is_input(g, layer) || is_output(g, layer)) return false;
    for (int i = 0; i < sdlf_model_input_count(g->model); i++)
        if (sdlf_model_input(g->model, i).layer == layer) return false;
    return true;
}

/* Returns the number of drawn input layers of this one, and the i-th of them. */
static int drawn_inputs(const network_graph *g, int layer, int index, int *found)
{
    int count = 0;
    for (int k = 0; k < sdlf_model_layer_input_count(g->model, layer); k++) {
        int from = sdlf_model_layer_input(g->model, layer, k).layer;
        if (is_hidden(g, from)) continue;
        if (count++ == index) *found = from;
    }
    return count;
}

/* True if the layer goes into the box of the one before it. */
static bool joins(const network_graph *g, int layer, const int *readers)
{
    int from = 0;
    if (drawn_inputs(g, layer, 0, &from) != 1 || is_output(g, from)) return false;
    return readers[from] == 1 && !is_input(g, from) && same_shape(shape_of(g, from), shape_of(g, layer));
}

static const char *kind_of(const network_graph *g, const box *b)
{
    if (is_input(g, b->layer[0])) return "given";
    for (int i = 0; i < b->count; i++)
        if (g->parameters[b->layer[i]] > 0) return "learns";
    return drawn_inputs(g, b->layer[0], -1, NULL) > 1 ? "joins" : "changes";
}

static void make_boxes(network_graph *g)
{
    int layers = sdlf_model_layer_count(g->model), *readers = memory_allocate((size_t)(layers + 1) * sizeof *readers);
    g->box = memory_allocate((size_t)(layers + 1) * sizeof *g->box);
    g->box_of = memory_allocate((size_t)(layers + 1) * sizeof *g->box_of);
    for (int i = 0; i < layers; i++)
        for (int k = 0; k < sdlf_model_layer_input_count(g->model, i); k++)
            readers[sdlf_model_layer_input(g->model, i, k).layer]++;
    for (int i = 0; i < layers; i++) {
        if (is_hidden(g, i)) continue;
        int from = 0, above = drawn_inputs(g, i, 0, &from);
        bool joined = joins(g, i, readers);
        g->box_of[i] = joined ? g->box_of[from] : g->layout.node_count++;
        box *b = &g->box[g->box_of[i]];
        b->layer = memory_resize(b->layer, (size_t)(b->count + 1) * sizeof *b->layer);
        b->layer[b->count++] = i;
        g->layout.edge_count += joined ? 0 : above;
    }
    for (int i = 0; i < g->layout.node_count; i++) g->box[i].kind = kind_of(g, &g->box[i]);
    free(readers);
}

/* The type of a layer whose name does not begin with it; else "". */
static const char *type_of(const sdlf_layer *layer)
{
    return strncmp(layer->name, layer->type->name, strlen(layer->type->name)) == 0 ? "" : layer->type->name;
}

/* A long name is shortened in the middle. */
static char *name_of(const sdlf_layer *layer)
{
    int length = (int)strlen(layer->name);
    if (length <= NAME_MOST) return memory_copy_text(layer->name);
    return memory_print("%.*s...%s", NAME_MOST / 2 - 2, layer->name, layer->name + length - NAME_MOST / 2 + 1);
}

/* "64x56x56, 9,408 parameters": without the batch. */
static char *detail_of(const network_graph *g, const box *b)
{
    sdlf_shape shape = shape_of(g, b->layer[0]);
    const char *text =
        shape.rank > 1 ? sdlf_shape_print(sdlf_shape_without(shape, 0)).text : sdlf_shape_print(shape).text;
    char *copy = memory_copy_text(text);
    int64_t parameters = 0;
    for (int i = 0; i < b->count; i++) parameters += g->parameters[b->layer[i]];
    char *detail = parameters > 0 ? memory_print("%s, %s parameters", copy, number_count(parameters).text)
                                  : memory_copy_text(copy);
    free(copy);
    return detail;
}

static void measure_boxes(network_graph *g)
{
    for (int i = 0; i < g->layout.node_count; i++) {
        box *b = &g->box[i];
        char *detail = detail_of(g, b);
        size_t longest = strlen(detail) > SHORT ? strlen(detail) : SHORT;
        free(detail);
        for (int k = 0; k < b->count; k++) {
            const sdlf_layer *layer = sdlf_model_layer(g->model, b->layer[k]);
            char *name = name_of(layer);
            size_t length = strlen(name) + 1 + strlen(type_of(layer));
            longest = length > longest ? length : longest;
            free(name);
        }
        g->layout.node[i].width = (double)longest * letter + 2 * PADDING;
        g->layout.node[i].height = LINE * (b->count + 1) + 2 * PADDING;
    }
}

sdlf_status network_graph_make(network_graph **graph, sdlf_model *model)
{
    network_graph *g = *graph = memory_allocate(sizeof *g);
    g->model = model;
    int layers = sdlf_model_layer_count(model);
    g->parameters = memory_allocate((size_t)(layers + 1) * sizeof *g->parameters);
    for (int i = 0; i < sdlf_model_parameter_count(model); i++) {
        const sdlf_parameter *parameter = sdlf_model_parameter(model, i);
        g->parameters[parameter->layer] += sdlf_shape_count(parameter->spec.shape);
    }
    for (int i = 0; i < layers; i++)
        for (int k = 0; k < sdlf_model_layer_input_count(model, i); k++) {
            int from = sdlf_model_layer_input(model, i, k).layer;
            if (is_hidden(g, from)) g->parameters[i] += g->parameters[from];
        }
    make_boxes(g);
    g->layout.node = memory_allocate((size_t)(g->layout.node_count + 1) * sizeof *g->layout.node);
    g->layout.edge = memory_allocate((size_t)(g->layout.edge_count + 1) * sizeof *g->layout.edge);
    g->layout.edge_count = 0;
    for (int i = 0; i < g->layout.node_count; i++) {
        int layer = g->box[i].layer[0], from = 0, count = drawn_inputs(g, layer, -1, NULL);
        for (int k = 0; k < count; k++) {
            drawn_inputs(g, layer, k, &from);
            g->layout.edge[g->layout.edge_count++] = (layered_edge){.from = g->box_of[from], .to = i};
        }
    }
    measure_boxes(g);
    sdlf_status status = layered_arrange(&g->layout);
    if (status == SDLF_OK) return SDLF_OK;
    network_graph_free(g);
    *graph = NULL;
    return status;
}

void network_graph_free(network_graph *g)
{
    if (!g) return;
    layered_release(&g->layout);
    for (int i = 0; i < g->layout.node_count; i++) free(g->box[i].layer);
    free(g->layout.node);
    free(g->layout.edge);
    free(g->box);
    free(g->box_of);
    free(g->parameters);
    free(g);
}

static void print_line(FILE *file, const network_graph *g, int layer, double x, double y, bool links)
{
    const sdlf_layer *l = sdlf_model_layer(g->model, layer);
    char *name = name_of(l);
    if (links) fprintf(file, "<a href=\"#layer-%d\">", layer);
    fprintf(file, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\">", x, y);
    xml_text(file, name);
    fprintf(file, "<tspan class=\"detail\"> %s</tspan><title>", type_of(l));
    xml_text(file, l->name);
    fputs(" (", file);
    xml_text(file, l->type->name);
    fprintf(file, ")</title></text>%s\n", links ? "</a>" : "");
    free(name);
}

static const char *output_of(const network_graph *g, const box *b)
{
    for (int i = 0; i < sdlf_model_output_count(g->model); i++)
        if (sdlf_model_output(g->model, i).layer == b->layer[b->count - 1]) return sdlf_model_output_name(g->model, i);
    return NULL;
}

static void print_box(FILE *file, const network_graph *g, int i, bool links)
{
    const box *b = &g->box[i];
    const layered_node *n = &g->layout.node[i];
    double left = n->x - n->width / 2, top = n->y - n->height / 2, y = top + PADDING + 12;
    const char *output = output_of(g, b);
    fprintf(file, "<g class=\"%s%s\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"5\"/>\n", b->kind,
            output ? " result" : "", left, top, n->width, n->height);
    for (int k = 0; k < b->count; k++, y += LINE) print_line(file, g, b->layer[k], left + PADDING, y, links);
    char *detail = detail_of(g, b);
    fprintf(file, "<text class=\"detail\" x=\"%.1f\" y=\"%.1f\">", left + PADDING, y);
    xml_text(file, detail);
    fputs("</text>", file);
    free(detail);
    if (output) {
        fprintf(file, "<text class=\"detail\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">output: ", n->x,
                top + n->height + 16);
        xml_text(file, output);
        fputs("</text>", file);
    }
    fputs("</g>\n", file);
}

/* Draws an edge from the lower side of one box to the upper side of the other, straight past the boxes between. */
static void print_edge(FILE *file, const layered *layout, const layered_edge *edge)
{
    const layered_node *from = &layout->node[edge->from], *to = &layout->node[edge->to];
    double x = from->x, y = from->y + from->height / 2;
    fprintf(file, "<path d=\"M%.1f %.1f V%.1f", x, y, from->bottom);
    y = from->bottom;
    for (int i = 0; i <= edge->bend_count; i++) {
        bool last = i == edge->bend_count;
        double next_x = last ? to->x : edge->bend[i].x, next_y = last ? to->y - to->height / 2 : edge->bend[i].top;
        double middle = (y + next_y) / 2;
        fprintf(file, " C%.1f %.1f %.1f %.1f %.1f %.1f", x, middle, next_x, middle, next_x, next_y);
        x = next_x;
        y = next_y;
        if (!last) fprintf(file, " V%.1f", y = edge->bend[i].bottom);
    }
    fputs("\" marker-end=\"url(#arrow)\"/>\n", file);
}

static const char own_style[] =
    "<style>\n"
    "svg{--paper:#ffffff;--ink:#1c2330;--dim:#5a6474;--line:#8a94a6;--given:#e3e7ee;--learns:#d5e5fa;--joins:#fbe6c8;--"
    "changes:#f3f4f6}\n"
    "@media(prefers-color-scheme:dark){svg{--paper:#14181f;--ink:#e7ebf2;--dim:#a3adbd;--line:#76829a;--given:#2b3340;"
    "--learns:#1d3a5f;--joins:#54401c;--changes:#222832}}\n"
    "</style>\n";
static const char style[] =
    "<style>\n"
    ".net text{font:11.5px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:var(--ink)}.net "
    ".name{font-weight:600}\n"
    ".net .detail{fill:var(--dim);font-weight:400}.net rect{stroke:var(--line);fill:var(--changes)}.net .given "
    "rect{fill:var(--given)}\n"
    ".net .learns rect{fill:var(--learns)}.net .joins rect{fill:var(--joins)}.net .result "
    "rect{stroke:var(--ink);stroke-width:2}\n"
    ".net path{fill:none;stroke:var(--line);stroke-width:1.4}.net marker path{fill:var(--line);stroke:none}\n"
    "</style>\n";

void network_graph_print(FILE *file, const network_graph *g, bool links)
{
    const layered *layout = &g->layout;
    double width = layout->width + 2 * MARGIN, height = layout->height + 2 * MARGIN + LINE;
    fprintf(file,
            "<svg class=\"net\" xmlns=\"http://www.w3.org/2000/svg\" %s width=\"%.0f\" height=\"%.0f\" viewBox=\"%d %d "
            "%.0f %.0f\" "
            "aria-labelledby=\"net-title\">\n<title id=\"net-title\">Network ",
            links ? "role=\"group\"" : "role=\"img\"", width, height, -MARGIN, -MARGIN, width, height);
    xml_text(file, sdlf_model_name(g->model));
    fprintf(file, ": %d layers, from its inputs at the top to its outputs</title>\n", sdlf_model_layer_count(g->model));
    if (!links) fputs(own_style, file);
    fputs(style, file);
    fputs("<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" "
          "orient=\"auto\">"
          "<path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n",
          file);
    if (!links)
        fprintf(file,
                "<rect x=\"%d\" y=\"%d\" width=\"%.0f\" height=\"%.0f\" style=\"fill:var(--paper);stroke:none\"/>\n",
                -MARGIN, -MARGIN, width, height);
    for (int e = 0; e < layout->edge_count; e++) print_edge(file, layout, &layout->edge[e]);
    for (int i = 0; i < layout->node_count; i++) print_box(file, g, i, links);
    fputs("</svg>\n", file);
}
