/* SPDX-License-Identifier: MIT */
/* Edge lists: what is read, how nodes are numbered, and which files are rejected at which line. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "framework/clock.h"
#include "graphs/edge_list.h"
#include "testing.h"

static sdlf_status parse(sdlf_graph *graph, const char *text, bool undirected)
{
    *graph = (sdlf_graph){.node_count = 0};
    return edge_list_parse(graph, text, strlen(text), "list.txt", undirected);
}

static void release(sdlf_graph *graph)
{
    sdlf_tensor_release(&graph->adjacency, NULL);
    sdlf_tensor_release(&graph->ids, NULL);
}

/* The adjacency as one row of column indices per node: "1 2|0||". */
static const char *show(const sdlf_graph *graph)
{
    static char text[400];
    size_t used = 0;
    const int64_t *offsets = sdlf_csr_offsets(&graph->adjacency);
    *text = '\0';
    for (int64_t r = 0; r < graph->node_count; r++) {
        for (int64_t e = offsets[r]; e < offsets[r + 1]; e++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", e > offsets[r] ? " " : "",
                                     sdlf_csr_columns(&graph->adjacency)[e]);
        used += (size_t)snprintf(text + used, sizeof text - used, "|");
    }
    return text;
}

static void check_graph(const char *text, bool undirected, const char *expected, const char *ids)
{
    sdlf_graph graph;
    char found[200] = "";
    size_t used = 0;
    if (!CHECK_OK(parse(&graph, text, undirected))) return;
    CHECK_OK(sdlf_csr_check(&graph.adjacency));
    CHECK_TEXT(show(&graph), expected);
    for (int64_t i = 0; sdlf_tensor_present(&graph.ids) && i < graph.node_count; i++)
        used += (size_t)snprintf(found + used, sizeof found - used, "%s%lld", i > 0 ? " " : "",
                                 (long long)((const int64_t *)graph.ids.data)[i]);
    CHECK_TEXT(found, ids);
    release(&graph);
}

static void edges_are_read(void)
{
    check_graph("0 1\n1\t2\n  2   0  \n", false, "1|2|0|", "");
    check_graph("0 1\r\n\r\n# comment\n% another\n1 0", false, "1|0|", "");
    check_graph("0 2\n0 1\n0 1\n0 2\n", false, "1 2|||", ""); /* columns ascend, duplicates are merged */
    check_graph("0 0\n1 1\n0 1\n", false, "0 1|1|", "");      /* self loops stay */
    check_graph("0 1\n1 2\n2 2\n", true, "1|0 2|1 2|", "");   /* both ways; the loop once */
    check_graph("0 1\n1 0\n", true, "1|0|", "");
}

static void nodes_are_numbered(void)
{
    check_graph("7 5\n5 100\n", false, "2|0||", "5 7 100");
    check_graph("9000000000000000000 3\n3 4611686018427387904\n", false, "1||0|",
                "3 4611686018427387904 9000000000000000000");
    /* the number of nodes in a comment includes nodes without edges, whether numbered from 0 or from 1 */
    check_graph("# Nodes: 4 Edges: 1\n0 1\n", false, "1||||", "");
    check_graph("# Nodes: 4 Edges: 1\n1 4\n", false, "3||||", "1 2 3 4");
    /* ... unless it is impossible */
    check_graph("# Nodes: 2\n0 5\n", false, "1||", "0 5");
    check_graph("# Nodes: 999999999999999999999\n0 1\n", false, "1||", "");
    check_graph("# Nodes: 2000000000\n0 1\n", false, "1||", "");
}

static void hubs_and_hashes(void)
{
    enum { SPOKES = 3000 };
    char *text = malloc(2 * SPOKES * 48);
    size_t used = 0;
    if (!CHECK(text != NULL)) return;
    for (long long i = 0; i < 2 * SPOKES; i++) /* each twice, far apart */
        used += (size_t)sprintf(text + used, "1000000007 %lld\n", 1000000008 + (i * 7919 % SPOKES) * 1000003);
    sdlf_graph graph;
    if (CHECK_OK(parse(&graph, text, false))) {
        CHECK_EQUAL(graph.node_count, SPOKES + 1);
        CHECK_EQUAL(sdlf_csr_offsets(&graph.adjacency)[1], SPOKES);
        for (int i = 0; i < SPOKES; i++) CHECK(sdlf_csr_columns(&graph.adjacency)[i] == i + 1);
        release(&graph);
    }
    free(text);
}

static void malformed_lines_are_told(void)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"0 1\n0 x\n", "list.txt:2: expected the second node's number, found 'x'"},
        {"0 1\n\n-1 2\n", "list.txt:3: expected a node's number, or # before a comment, found '-'"},
        {"0\n", "list.txt:1: expected a blank or a tab after the first node's number, found the end of the line"},
        {"0 \n", "list.txt:1: expected the second node's number, found the end of the line"},
        {"0 1 2\n", "list.txt:1: expected the end of the line after two numbers, found '2'"},
        {"0 1.5\n", "list.txt:1: expected the end of the line after two numbers, found '.'"},
        {"# a\n0,1\n", "list.txt:2: expected a blank or a tab after the first node's number, found ','"},
        {"0 1\n5", "list.txt:2: expected the second node's number, found the end of the file"},
        {"0 1\n5 \x01\n", "found byte 1"},
        {"0 9223372036854775808\n", "list.txt:1: a node's number is larger than 9223372036854775807"},
        {"", "list.txt: expected edges, found none"},
        {"# nothing\n", "list.txt: expected edges, found none"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sdlf_graph graph;
        CHECK_FAILS(parse(&graph, cases[i].text, false), SDLF_ERROR_FORMAT, cases[i].message);
        release(&graph);
    }
    check_graph("0 9223372036854775807\n", false, "1||", "0 9223372036854775807");
}

/* Read blocks may end anywhere: the same text follows comments of every length around a block's size. */
static void blocks_may_end_anywhere(void)
{
    enum { BLOCK = 1 << 18, TRIED = 24 };
    char *text = malloc(BLOCK + 200);
    if (!CHECK(text != NULL)) return;
    for (int shift = 0; shift < TRIED; shift++) {
        int length = BLOCK - TRIED + shift;
        memset(text, 'c', (size_t)length);
        text[0] = '#';
        text[length - 1] = '\n';
        strcpy(text + length, "123456 654321\n77 123456\n");
        check_graph(text, false, "1|2||", "77 123456 654321");
    }
    free(text);
}

static void files_are_read(void)
{
    static const char text[] = "# Nodes: 3\n0 1\n1 2\n";
    const char *path = test_path("graph.txt.gz");
    gzFile file = gzopen(path, "wb");
    if (!CHECK(file != NULL)) return;
    CHECK(gzwrite(file, text, sizeof text - 1) > 0);
    CHECK(gzclose(file) == Z_OK);
    sdlf_graph *graph;
    char specification[4200];
    snprintf(specification, sizeof specification, "snap:%s", path);
    if (CHECK_OK(sdlf_graph_open(&graph, specification))) {
        CHECK_TEXT(graph->name, "snap (graph.txt.gz)");
        CHECK_TEXT(show(graph), "1|2||");
        CHECK(!graph->undirected);
    }
    sdlf_graph_free(graph);
    snprintf(specification, sizeof specification, "snap:%s,undirected", path);
    if (CHECK_OK(sdlf_graph_open(&graph, specification))) CHECK_TEXT(show(graph), "1|0 2|1|");
    sdlf_graph_free(graph);
    CHECK_FAILS(sdlf_graph_open(&graph, "snap:/no/such"), SDLF_ERROR_IO, "/no/such");
    CHECK_FAILS(sdlf_graph_open(&graph, "snap"), SDLF_ERROR_ARGUMENT, "snap:FILE");
    CHECK_FAILS(sdlf_graph_open(&graph, "snip:x"), SDLF_ERROR_ARGUMENT, "known are: snap, planetoid, rmat, uniform");
}

/* Gzip stores a line in a hundredth of a byte: edges and nodes are bounded by the compressed size. */
static void what_a_list_may_become_is_bounded(void)
{
    const char *path = test_path("bomb.txt.gz");
    char line[2 + 4 * 5000] = "";
    for (size_t i = 0; i + 4 < sizeof line; i += 4) memcpy(line + i, "1 2\n", 5);
    gzFile file = gzopen(path, "wb");
    for (int i = 0; i < 100; i++) CHECK(gzwrite(file, line, (unsigned)strlen(line)) > 0);
    CHECK(gzclose(file) == Z_OK);
    sdlf_graph *graph;
    char specification[4200];
    snprintf(specification, sizeof specification, "snap:%s", path);
    if (CHECK_OK(sdlf_graph_open(&graph, specification))) CHECK_TEXT(show(graph), "1||");
    sdlf_graph_free(graph);
    CHECK(setenv("SDLF_READ_MEMORY", "4M", 1) == 0);
    CHECK_FAILS(sdlf_graph_open(&graph, specification), SDLF_ERROR_MEMORY,
                ":262145: more than the 4.2 MB of memory that reading a file of ");
    test_write_file(path, "# Nodes: 1000000\n0 1\n", 21);
    if (CHECK_OK(sdlf_graph_open(&graph, specification))) CHECK_EQUAL(graph->node_count, 2); /* not trusted */
    sdlf_graph_free(graph);
    CHECK(unsetenv("SDLF_READ_MEMORY") == 0);
    if (CHECK_OK(sdlf_graph_open(&graph, specification))) CHECK_EQUAL(graph->node_count, 1000000);
    sdlf_graph_free(graph);
}

static sdlf_status parse_again(void *text)
{
    sdlf_graph graph;
    sdlf_status status = parse(&graph, text, true);
    release(&graph);
    return status;
}

static void survives_lack_of_memory(void)
{
    static char dense[] = "5 7\n7 9\n", scattered[] = "5000000000 7\n7 9000000000\n";
    test_every_allocation("dense numbers", parse_again, dense);
    test_every_allocation("scattered numbers", parse_again, scattered);
}

/* A real graph of 3.2 million edges, read at a million per second or more even on a shared machine with a slow
 * build. */
static void a_web_graph(void)
{
    const char *path = test_data("graph/cnr-2000.txt.gz");
    if (path == NULL) {
        test_skip("SDLF_DATA has no graph/cnr-2000.txt.gz");
        return;
    }
    sdlf_graph graph = {.node_count = 0};
    double start = sdlf_clock();
    if (!CHECK_OK(edge_list_load(&graph, path, false))) return;
    double seconds = sdlf_clock() - start;
    CHECK_EQUAL(graph.node_count, 325557);
    CHECK_EQUAL(graph.adjacency.stored, 3216152);
    printf("%.2f s, %.1f million edges/s\n", seconds, 3.216152 / seconds);
    release(&graph);
}

int main(void)
{
    RUN(edges_are_read);
    RUN(nodes_are_numbered);
    RUN(hubs_and_hashes);
    RUN(malformed_lines_are_told);
    RUN(blocks_may_end_anywhere);
    RUN(files_are_read);
    RUN(survives_lack_of_memory);
    RUN(a_web_graph);
    RUN(what_a_list_may_become_is_bounded);
    return test_summary();
}
