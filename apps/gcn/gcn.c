/* SPDX-License-Identifier: MIT */
/* sdlf gcn: dispatches to infer or train; and their shared output about a graph. */
#include "apps/gcn/gcn.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/suggest.h>

#include "apps/arguments/arguments.h"
#include "apps/command.h"
#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/wrap.h"

static const gcn_way *const ways[] = {&gcn_infer_way, &gcn_train_way};
enum { WAYS = sizeof ways / sizeof ways[0] };

static void print_ways(FILE *file)
{
    for (int i = 0; i < WAYS; i++) fprintf(file, "  %-6s  %s\n", ways[i]->name, ways[i]->summary);
}

void gcn_print_sources(void)
{
    terminal out = terminal_of(stdout);
    printf("\n%sGraphs%s\n", terminal_escape(&out, TERMINAL_BOLD), terminal_escape(&out, TERMINAL_PLAIN));
    for (int i = 0; sdlf_graph_class_at(i) != NULL; i++) {
        int at = printf("  %-10s  ", sdlf_graph_class_at(i)->name);
        wrap_print(stdout, sdlf_graph_class_at(i)->summary, at, at, out.width);
    }
}

static int64_t longest_row(const sdlf_tensor *matrix)
{
    const int64_t *offsets = sdlf_csr_offsets(matrix);
    int64_t longest = 0;
    for (int64_t r = 0; r < matrix->shape.dim[0]; r++)
        longest = offsets[r + 1] - offsets[r] > longest ? offsets[r + 1] - offsets[r] : longest;
    return longest;
}

void gcn_report_graph(const terminal *out, const sdlf_graph *graph, const sdlf_tensor *matrix, double reading,
                      double preparing)
{
    report_label(out, "graph");
    printf("%s  %s nodes  %s elements  longest row %s  read in %s, matrix made in %s\n", graph->name,
           number_count(graph->node_count).text, number_count(matrix->stored).text,
           number_count(longest_row(matrix)).text, number_duration(reading).text, number_duration(preparing).text);
}

static int run(int count, char **words)
{
    if (count == 0 || strcmp(words[0], "--help") == 0 || strcmp(words[0], "-h") == 0) {
        FILE *file = count == 0 ? stderr : stdout;
        fputs("Usage: sdlf gcn infer|train [options]\n\nGraph convolutions over a whole graph at once.\n\n", file);
        print_ways(file);
        fputs("\n'sdlf gcn NAME --help' lists the options.\n", file);
        return count == 0 ? COMMAND_USAGE : COMMAND_OK;
    }
    if (strncmp(words[0], "--complete", 10) == 0 || strcmp(words[0], "--help=man") == 0)
        return COMMAND_OK; /* no output of its own */
    sdlf_suggestion s = {.word = words[0]};
    for (int i = 0; i < WAYS; i++) {
        if (strcmp(ways[i]->name, words[0]) == 0) return ways[i]->run(count - 1, words + 1);
        sdlf_suggest(&s, ways[i]->name);
    }
    arguments_wrong("gcn", "expected infer or train, found '%s'%s", words[0], sdlf_suggestion_print(&s).text);
    print_ways(stderr);
    return COMMAND_USAGE;
}

static const char *part(int index)
{
    return index < WAYS ? ways[index]->name : NULL;
}

const command gcn_command = {
    .part = part, .name = "gcn", .summary = "convolve over a graph: time it, or train on one", .run = run};
