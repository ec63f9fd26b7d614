/* SPDX-License-Identifier: MIT */
/* Generated graphs, citation graphs, and the matrices computed from graphs. */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/graph.h>

#include "testing.h"

static void drawn_graphs_have_their_size(void)
{
    static const char *const names[] = {"uniform:1000,5000,3", "rmat:1000,5000,3", "rmat:1,10", "uniform:7,0",
                                        "rmat:3,40"};
    static const int64_t nodes[] = {1000, 1000, 1, 7, 3}, edges[] = {5000, 5000, 10, 0, 40};
    for (int i = 0; i < 5; i++) {
        sdlf_graph *graph, *again;
        if (!CHECK_OK(sdlf_graph_open(&graph, names[i])) || !CHECK_OK(sdlf_graph_open(&again, names[i]))) return;
        CHECK_EQUAL(graph->node_count, nodes[i]);
        CHECK_OK(sdlf_csr_check(&graph->adjacency));
        CHECK(graph->adjacency.stored <= edges[i] && (edges[i] < 100 || graph->adjacency.stored > edges[i] / 2));
        CHECK(again->adjacency.stored == graph->adjacency.stored &&
              memcmp(sdlf_csr_columns(&graph->adjacency), sdlf_csr_columns(&again->adjacency),
                     (size_t)graph->adjacency.stored * sizeof(int32_t)) == 0);
        sdlf_graph_free(graph);
        sdlf_graph_free(again);
    }
}

static int64_t longest_row(const sdlf_graph *graph)
{
    const int64_t *offsets = sdlf_csr_offsets(&graph->adjacency);
    int64_t longest = 0;
    for (int64_t i = 0; i < graph->node_count; i++)
        longest = offsets[i + 1] - offsets[i] > longest ? offsets[i + 1] - offsets[i] : longest;
    return longest;
}

static void rmat_has_hubs(void)
{
    sdlf_graph *rmat, *uniform;
    if (!CHECK_OK(sdlf_graph_open(&rmat, "rmat:4096,32768")) ||
        !CHECK_OK(sdlf_graph_open(&uniform, "uniform:4096,32768")))
        return;
    CHECK(longest_row(rmat) > 5 * longest_row(uniform));
    sdlf_graph_free(rmat);
    sdlf_graph_free(uniform);
}

static void odd_arguments_are_refused(void)
{
    static const char *const bad[] = {"rmat:",       "rmat:0,5",          "rmat:5",
                                      "rmat:5,",     "rmat:5,6,7,8",      "rmat:-1,5",
                                      "rmat:5,6x",   "rmat:3000000000,5", "uniform:4,99999999999999999999",
                                      "uniform: 4,4"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        sdlf_graph *graph;
        CHECK_FAILS(sdlf_graph_open(&graph, bad[i]), SDLF_ERROR_ARGUMENT, "V,E,SEED");
    }
}

/* ---- matrices ---- */

static sdlf_graph *from_text(const char *text)
{
    char specification[4200];
    const char *path = test_path("edges.txt");
    test_write_file(path, text, strlen(text));
    snprintf(specification, sizeof specification, "snap:%s", path);
    sdlf_graph *graph;
    return CHECK_OK(sdlf_graph_open(&graph, specification)) ? graph : NULL;
}

static void check_matrix(const sdlf_graph *graph, const sdlf_graph_matrix_options *options, const double *dense)
{
    sdlf_tensor matrix;
    if (!CHECK_OK(sdlf_graph_matrix(&matrix, graph, options))) return;
    CHECK_OK(sdlf_csr_check(&matrix));
    double found[64] = {0};
    int64_t n = graph->node_count, stored = 0;
    for (int64_t r = 0; r < n; r++) {
        for (int64_t e = sdlf_csr_offsets(&matrix)[r]; e < sdlf_csr_offsets(&matrix)[r + 1]; e++, stored++) {
            double value = matrix.dtype == SDLF_FLOAT64 ? ((const double *)sdlf_csr_values(&matrix))[e]
                                                        : (double)((const float *)sdlf_csr_values(&matrix))[e];
            found[r * n + sdlf_csr_columns(&matrix)[e]] += value;
        }
    }
    for (int64_t i = 0; i < n * n; i++) CHECK_CLOSE(found[i], dense[i], 1e-7);
    sdlf_tensor_release(&matrix, NULL);
}

static void matrices_are_normalised(void)
{
    /* 0 -> 1, 0 -> 2, 1 -> 1 (a loop), 2 has none, 3 is isolated */
    sdlf_graph *graph = from_text("# Nodes: 4\n0 1\n0 2\n1 1\n");
    if (graph == NULL) return;
    const double s = sqrt(1.0 / 3), plain[16] = {0, 1, 1, 0, 0, 1},
                 loops[16] = {1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    const double symmetric[16] = {1.0 / 3, s, s, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    const double mean[16] = {0, 0.5, 0.5, 0, 0, 1};
    check_matrix(graph, &(sdlf_graph_matrix_options){.normalization = SDLF_NORMALIZE_NONE}, plain);
    check_matrix(graph, &(sdlf_graph_matrix_options){.self_loops = true}, loops);
    for (int wide = 0; wide < 2; wide++) {
        sdlf_dtype dtype = wide ? SDLF_FLOAT64 : SDLF_FLOAT32;
        check_matrix(
            graph,
            &(sdlf_graph_matrix_options){.dtype = dtype, .normalization = SDLF_NORMALIZE_SYMMETRIC, .self_loops = true},
            symmetric);
    }
    check_matrix(graph, &(sdlf_graph_matrix_options){.normalization = SDLF_NORMALIZE_ROW}, mean);
    sdlf_tensor matrix;
    CHECK_FAILS(sdlf_graph_matrix(&matrix, graph, &(sdlf_graph_matrix_options){.dtype = SDLF_INT32}),
                SDLF_ERROR_ARGUMENT, "not int32");
    sdlf_graph_free(graph);
}

/* ---- citation graphs ---- */

static void write_citations(const char *file, const char *text)
{
    static const char *const names[] = {"edges.txt", "features.txt", "labels.txt", "train.txt", "val.txt", "test.txt"};
    static const char *const texts[] = {"0 1\n1 2\n", "# header\n0:1 2:0.5\n\n1:-2\n", "1\n0\n1\n", "0\n", "1\n",
                                        "2\n"};
    for (int i = 0; i < 6; i++) {
        const char *content = file != NULL && strcmp(file, names[i]) == 0 ? text : texts[i];
        test_write_file(test_path(names[i]), content, strlen(content));
    }
}

static const char *citations(void)
{
    static char specification[4200];
    snprintf(specification, sizeof specification, "planetoid:%s", test_path(""));
    return specification;
}

static void citations_are_read(void)
{
    write_citations(NULL, NULL);
    sdlf_graph *graph;
    if (!CHECK_OK(sdlf_graph_open(&graph, citations()))) return;
    const float features[9] = {1, 0, 0.5f, 0, 0, 0, 0, -2, 0};
    CHECK_EQUAL(graph->node_count, 3);
    CHECK_EQUAL(graph->class_count, 2);
    CHECK(graph->undirected && graph->adjacency.stored == 4);
    CHECK(sdlf_shape_equal(graph->features.shape, sdlf_shape(3, 3)));
    CHECK(memcmp(graph->features.data, features, sizeof features) == 0);
    CHECK(memcmp(graph->labels.data, (const int32_t[]){1, 0, 1}, 12) == 0);
    CHECK(memcmp(graph->parts.data, (const uint8_t[]){SDLF_NODE_TRAIN, SDLF_NODE_VALIDATE, SDLF_NODE_TEST}, 3) == 0);
    sdlf_graph_free(graph);
}

/* The host program may have set a locale with a decimal comma; the files must still be read correctly. */
static void commas_elsewhere_do_not_matter(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8"};
    const char *found = NULL;
    for (int i = 0; i < 4 && found == NULL; i++) found = setlocale(LC_NUMERIC, names[i]);
    if (found == NULL) {
        test_skip("no locale with decimal commas is installed");
        return;
    }
    citations_are_read();
    CHECK_TEXT(localeconv()->decimal_point, ",");
    setlocale(LC_NUMERIC, "C");
}

static void bad_citations_are_told(void)
{
    static const struct {
        const char *file, *text, *message;
    } cases[] = {
        {"labels.txt", "1\nx\n", "labels.txt:2: expected a class from 0 to 1048575, found 'x'"},
        {"labels.txt", "1048576\n", "labels.txt:1: expected a class from 0 to 1048575, found '1048576'"},
        {"labels.txt", "1 0\n", "labels.txt:1: expected the end of the line after a number, found ' 0'"},
        {"labels.txt", "", "expected one class a line, found none"},
        {"features.txt", "0:1\n\n", "expected 3 nodes as in labels.txt, found 2"},
        {"features.txt", "0:1\n1\n2:1\n", "features.txt:2: expected COLUMN:VALUE"},
        {"features.txt", "0:1\n1:\n2:1\n", "features.txt:2: expected a finite value, found ''"},
        {"features.txt", "0:1\n1:nan\n2:1\n", "features.txt:2: expected a finite value, found 'nan'"},
        {"features.txt", "0:1\n1:1e39\n2:1\n", "features.txt:2: expected a finite value, found '1e39'"},
        {"features.txt", "0:1\n1: 2\n2:1\n", "features.txt:2: expected a finite value, found ' 2'"},
        {"features.txt", "0:1\n1:0x1p4\n2:1\n", "features.txt:2: expected a finite value, found '0x1p4'"},
        {"features.txt", "0:1\n1:0,5\n2:1\n", "features.txt:2: expected a finite value, found '0,5'"},
        {"features.txt", "0:1\n1:1e\n2:1\n", "features.txt:2: expected a finite value, found '1e'"},
        {"features.txt", "0:1\n1:0 1:2\n2:1\n", "features.txt:2: expected a column once in a line, found '1:2'"},
        {"features.txt", "0:1\n1:1 1:2\n2:1\n", "features.txt:2: expected a column once in a line, found '1:2'"},
        {"features.txt", "0:1\n1:1\n2:1\n2:2\n", "features.txt:4: expected as many nodes"},
        {"features.txt", "\n\n\n", "expected features, found none"},
        {"features.txt", "99999999999:1\n\n\n",
         "features.txt:1: expected COLUMN:VALUE with a column from 0 to 16777215, found '99999999999:1'"},
        {"train.txt", "# a\n3\n", "train.txt:2: expected a node's number from 0 to 2, found '3'"},
        {"train.txt", "1,\n", "train.txt:1: expected the end of the line after a number, found ','"},
        {"val.txt", "0\n", "val.txt:1: expected a node that no part has yet"},
        {"edges.txt", "# a\n0 1\n0 3\n", "edges.txt:3: expected nodes from 0 to 2, found 3"},
        {"edges.txt", "0 1 1\n", "edges.txt:1: expected the end of the line"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sdlf_graph *graph;
        write_citations(cases[i].file, cases[i].text);
        CHECK_FAILS(sdlf_graph_open(&graph, citations()), SDLF_ERROR_FORMAT, cases[i].message);
    }
    sdlf_graph *graph;
    CHECK_FAILS(sdlf_graph_open(&graph, "planetoid:/no/such/folder"), SDLF_ERROR_IO, "labels.txt");
}

/* A line may name any column, and every node has all columns, so their number must be bounded. */
static void features_of_nothing_are_bounded(void)
{
    sdlf_graph *graph;
    write_citations("features.txt", "0:1 16000000:0.5\n\n1:-2\n");
    CHECK_FAILS(
        sdlf_graph_open(&graph, citations()), SDLF_ERROR_MEMORY,
        "features.txt: its features: 192.0 MB, more than the 134.2 MB of memory that reading a file of 23 bytes");
    CHECK(setenv("SDLF_READ_MEMORY", "20", 1) == 0);
    CHECK_FAILS(sdlf_graph_open(&graph, citations()), SDLF_ERROR_MEMORY, "labels.txt: more than the 20 bytes");
    CHECK(unsetenv("SDLF_READ_MEMORY") == 0);
}

static sdlf_status open_again(void *specification)
{
    sdlf_graph *graph;
    sdlf_status status = sdlf_graph_open(&graph, specification);
    sdlf_tensor matrix = {.dtype = SDLF_NONE};
    if (status == SDLF_OK) status = sdlf_graph_matrix(&matrix, graph, &(sdlf_graph_matrix_options){.self_loops = true});
    sdlf_tensor_release(&matrix, NULL);
    sdlf_graph_free(graph);
    return status;
}

static void survives_lack_of_memory(void)
{
    static char drawn[] = "rmat:100,300";
    write_citations(NULL, NULL);
    test_every_allocation("a citation graph", open_again, (void *)(uintptr_t)citations());
    test_every_allocation("a drawn graph", open_again, drawn);
}

int main(void)
{
    RUN(drawn_graphs_have_their_size);
    RUN(rmat_has_hubs);
    RUN(odd_arguments_are_refused);
    RUN(matrices_are_normalised);
    RUN(citations_are_read);
    RUN(commas_elsewhere_do_not_matter);
    RUN(bad_citations_are_told);
    RUN(features_of_nothing_are_bounded);
    RUN(survives_lack_of_memory);
    return test_summary();
}
