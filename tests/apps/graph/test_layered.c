/* SPDX-License-Identifier: MIT */
/* Layered drawings: nothing overlaps, edges lead downwards and cross no node; and the drawings of networks. */
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/fixtures.h"
#include "apps/graph/layered.h"
#include "apps/program.h"

enum { NODES = 40 };

/* A random graph, reproducible from the seed: each node reads up to three earlier ones. */
static layered random_graph(unsigned seed, layered_node *node, layered_edge *edge)
{
    layered g = {.node = node, .edge = edge, .node_count = NODES};
    for (int i = 0; i < NODES; i++) {
        seed = seed * 1664525 + 1013904223;
        node[i] = (layered_node){.width = 20 + seed / 65536 % 90, .height = 10 + seed / 1048576 % 60};
        for (int k = 0; i > 0 && k < 1 + (int)(seed / 4096 % 3); k++) {
            seed = seed * 1664525 + 1013904223;
            edge[g.edge_count++] = (layered_edge){.from = (int)(seed / 65536 % (unsigned)i), .to = i};
        }
    }
    return g;
}

static bool overlap(const layered_node *a, const layered_node *b)
{
    return fabs(a->x - b->x) < (a->width + b->width) / 2 && fabs(a->y - b->y) < (a->height + b->height) / 2;
}

static int overlaps(const layered *g)
{
    int count = 0;
    for (int i = 0; i < g->node_count; i++)
        for (int k = 0; k < i; k++) count += overlap(&g->node[i], &g->node[k]);
    return count;
}

/* The number of bends inside a node, and of edges that do not lead down. */
static int wrong_edges(const layered *g)
{
    int count = 0;
    for (int e = 0; e < g->edge_count; e++) {
        const layered_edge *edge = &g->edge[e];
        const layered_node *from = &g->node[edge->from], *to = &g->node[edge->to];
        count += from->bottom >= to->y - to->height / 2;
        for (int b = 0; b < edge->bend_count; b++)
            for (int i = 0; i < g->node_count; i++)
                count += overlap(&g->node[i], &(layered_node){.x = edge->bend[b].x,
                                                              .y = (edge->bend[b].top + edge->bend[b].bottom) / 2,
                                                              .height = edge->bend[b].bottom - edge->bend[b].top});
    }
    return count;
}

static void nothing_overlaps(void)
{
    static layered_node node[NODES];
    static layered_edge edge[3 * NODES];
    for (unsigned seed = 1; seed <= 30; seed++) {
        layered g = random_graph(seed, node, edge);
        CHECK_OK(layered_arrange(&g));
        CHECK_EQUAL(overlaps(&g), 0);
        CHECK_EQUAL(wrong_edges(&g), 0);
        for (int i = 0; i < NODES; i++) {
            CHECK(node[i].x - node[i].width / 2 >= -1e-9 && node[i].x + node[i].width / 2 <= g.width + 1e-9);
            CHECK(node[i].y - node[i].height / 2 >= -1e-9 && node[i].y + node[i].height / 2 <= g.height + 1e-9);
        }
        layered_release(&g);
    }
}

/* 0 -> 1 -> 2 -> 3 and a shortcut 0 -> 3: a straight chain, with the shortcut beside it. */
static void a_residual_goes_around(void)
{
    layered_node node[4];
    for (int i = 0; i < 4; i++) node[i] = (layered_node){.width = 100, .height = 30};
    layered_edge edge[] = {{.from = 0, .to = 1}, {.from = 1, .to = 2}, {.from = 2, .to = 3}, {.from = 0, .to = 3}};
    layered g = {.node = node, .edge = edge, .node_count = 4, .edge_count = 4};
    CHECK_OK(layered_arrange(&g));
    for (int i = 1; i < 4; i++) {
        CHECK(node[i].y > node[i - 1].y);
        CHECK_CLOSE(node[i].x, node[0].x, 10);
    }
    CHECK_EQUAL(edge[3].bend_count, 2);
    CHECK(fabs(edge[3].bend[0].x - node[1].x) > 50);
    layered_release(&g);
}

static void refuses_what_nobody_could_follow(void)
{
    enum { LONG = 1200 };
    layered_node *node = calloc(LONG, sizeof *node);
    layered_edge *edge = calloc(LONG * LONG / 2, sizeof *edge);
    layered g = {.node = node, .edge = edge, .node_count = LONG};
    for (int i = 1; i < LONG; i++)
        for (int k = 0; k < i; k++) edge[g.edge_count++] = (layered_edge){.from = k, .to = i};
    CHECK_FAILS(layered_arrange(&g), SDLF_ERROR_UNSUPPORTED, "the graph cannot be drawn");
    layered_release(&g);
    free(node);
    free(edge);
}

static void draws_networks(void)
{
    const program *p = SDLF(0, "info", "--net", "resnet20", "--graph", "-");
    CHECK_SAYS(p, "<svg class=\"net\"");
    CHECK_SAYS(p, ">layer1.0.conv1<tspan class=\"detail\"> conv2d</tspan>");
    CHECK_SAYS(p, "16x32x32, 496 parameters");
    CHECK_SAYS(p, "output: class");
    CHECK_SAYS(p, "</svg>\n");
    CHECK(strstr(p->out, "href") == NULL);
    const char *path = test_path("drawn.svg");
    if (reads_onnx()) {
        p = SDLF(0, "info", "--weights", fixture("small_cnn/model.onnx"), "--graph", path);
        CHECK_TEXT(p->out, "");
    }
    CHECK_SAYS(SDLF(2, "info", "--graph", path), "--graph needs --net or --weights");
    CHECK_SAYS(SDLF(2, "info", "--net", "mlp", "--graph", path, "--json-network"), "contradict each other");
    CHECK_SAYS(SDLF(1, "info", "--net", "mlp", "--graph", test_path("none/a.svg")), "none/a.svg");
}

/* The output of --json-network reads back as the same network. */
static void prints_the_network_file(void)
{
    const char *path = test_path("printed.json");
    const program *p = SDLF(0, "info", "--net", "resnet20", "--json-network");
    test_write_file(path, p->out, strlen(p->out));
    char *first = strdup(p->out);
    p = SDLF(0, "info", "--net", path, "--json-network");
    CHECK_TEXT(p->out, first);
    free(first);
}

int main(void)
{
    RUN(nothing_overlaps);
    RUN(a_residual_goes_around);
    RUN(refuses_what_nobody_could_follow);
    RUN(draws_networks);
    RUN(prints_the_network_file);
    return test_summary();
}
