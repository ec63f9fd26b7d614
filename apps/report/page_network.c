/* SPDX-License-Identifier: MIT */
/* The network: its graph, each layer's cost and time next to the lower bound of that time, and the filters of the first
 * convolution. */
#include <stdlib.h>
#include <string.h>

#include "apps/output/number.h"
#include "apps/output/xml.h"
#include "apps/pictures/activations.h"
#include "apps/report/page.h"
#include "apps/system/memory.h"

enum { BAR = 120, FILTERS = 64 };

static void print_graph(FILE *file, const page *p)
{
    fputs("<h2 id=\"network\">Network</h2>\n<p>", file);
    fprintf(file, "%s parameters that training changes.%s</p>\n",
            number_count(sdlf_model_trainable_count(p->model)).text,
            p->plan ? " Each layer leads to its row below." : "");
    fputs("<div class=\"view\" tabindex=\"0\" role=\"region\" aria-label=\"Graph of the network\">\n", file);
    network_graph_print(file, p->graph, p->plan != NULL);
    fputs("</div>\n", file);
}

/* Prints the anchors that the graph links to, for the layers that the plan computes in a row; -1: for those that it
 * need not compute. */
static void print_anchors(FILE *file, const page *p, int row)
{
    for (int i = 0; i < sdlf_model_layer_count(p->model); i++)
        if (sdlf_plan_layer_of(p->plan, sdlf_model_layer(p->model, i)->name) == row)
            fprintf(file, "<span id=\"layer-%d\"></span>", i);
}

static void print_row(FILE *file, const page *p, int row, double longest)
{
    sdlf_layer_info info = sdlf_plan_layer_info(p->plan, row);
    double seconds = info.forward_seconds, floor = ceilings_floor(p->ceilings, info.forward_cost);
    fputs("<tr><td>", file);
    print_anchors(file, p, row);
    xml_text(file, info.layer);
    fputs("</td>", file);
    page_cell(file, info.type);
    page_cell(file, sdlf_shape_print(info.shape).text);
    page_number(file, info.parameters > 0 ? number_count(info.parameters).text : "");
    page_number(file, info.forward_cost.flops > 0 ? number_fixed((double)info.forward_cost.flops / 1e6, 2).text : "");
    page_number(file, seconds > 0 ? number_fixed(1e3 * seconds, 3).text : "");
    page_number(file, seconds > 0 ? number_fixed(1e3 * floor, 3).text : "");
    page_number(file, seconds > 0 ? number_percent(floor / seconds, 0).text : "");
    fprintf(file, "<td><span class=\"bar\" style=\"width:%.0fpx\"></span></td></tr>\n",
            longest > 0 ? BAR * seconds / longest : 0);
}

static void print_layers(FILE *file, const page *p)
{
    double longest = 0;
    for (int i = 0; i < sdlf_plan_layer_count(p->plan); i++) {
        double seconds = sdlf_plan_layer_info(p->plan, i).forward_seconds;
        if (seconds > longest) longest = seconds;
    }
    fprintf(file,
            "<h2 id=\"layers\">Layers</h2>\n<p>A pass of %s samples for inference on %s. The floor is the least time "
            "that a layer's FLOPs or bytes take at "
            "this machine's measured %s and %s; a layer whose data stay in a cache can be below it.</p>\n",
            number_count(p->batch).text, p->ceilings->calculator, number_scaled(p->ceilings->flops, "FLOP/s").text,
            number_scaled(p->ceilings->bytes, "B/s").text);
    print_anchors(file, p, -1);
    fputs("<div class=\"wide\" tabindex=\"0\" role=\"region\" "
          "aria-label=\"Layers\"><table><thead><tr><th>layer</th><th>type</th><th>output</th>"
          "<th class=\"n\">parameters</th><th class=\"n\">MFLOP</th><th class=\"n\">ms</th><th class=\"n\">floor "
          "ms</th><th class=\"n\">of floor</th>"
          "<th>time</th></tr></thead><tbody>\n",
          file);
    for (int i = 0; i < sdlf_plan_layer_count(p->plan); i++) print_row(file, p, i, longest);
    fputs("</tbody></table></div>\n", file);
}

/* Draws the first parameter (K,C,R,S) whose filters are images, each scaled from its minimum to its maximum. */
static void print_filters(FILE *file, const page *p)
{
    const sdlf_parameter *filters = NULL;
    for (int i = 0; i < sdlf_model_parameter_count(p->model) && !filters; i++) {
        const sdlf_parameter *one = sdlf_model_parameter(p->model, i);
        if (one->spec.shape.rank == 4 && one->value.data) filters = one;
    }
    if (!filters) return;
    sdlf_shape shape = filters->spec.shape, sample = sdlf_shape_without(shape, 0);
    if ((shape.dim[1] != 1 && shape.dim[1] != 3) || shape.dim[2] < 3) return;
    int count = shape.dim[0] < FILTERS ? (int)shape.dim[0] : FILTERS;
    int64_t size = sdlf_shape_count(sample);
    unsigned char *pixels = activation_grey(filters->value.data, count, size);
    fputs("<h3>First filters</h3>\n<p>", file);
    xml_text(file, filters->name);
    fprintf(file, ", %s, each from its least value (black) to its greatest.</p>\n", sdlf_shape_print(shape).text);
    page_picture(file, pixels, sample, count, 0, "The filters of the first convolution, side by side");
    free(pixels);
}

void page_print_network(FILE *file, const page *p)
{
    if (p->graph) print_graph(file, p);
    if (p->plan) print_layers(file, p);
    print_filters(file, p);
}
