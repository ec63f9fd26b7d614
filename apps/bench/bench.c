/* SPDX-License-Identifier: MIT */
/* sdlf bench: dispatches to a benchmark. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <sdlf/formats.h>
#include <sdlf/suggest.h>

#include "apps/arguments/arguments.h"
#include "apps/bench/bench.h"
#include "apps/command.h"
#include "apps/input/file_type.h"
#include "apps/output/terminal.h"
#include "apps/output/wrap.h"

/* The first one is the default. */
static const bench *const benches[] = {&network_bench, &epoch_bench, &placement_bench, &scaling_bench,
                                       &model_bench,   &conv_bench,  &kernels_bench};
enum { BENCH_COUNT = sizeof benches / sizeof benches[0] };

void bench_print_list(void)
{
    terminal out = terminal_of(stdout);
    printf("\n%sBenchmarks%s ('sdlf bench NAME --help' lists their options)\n", terminal_escape(&out, TERMINAL_BOLD),
           terminal_escape(&out, TERMINAL_PLAIN));
    for (int i = 0; i < BENCH_COUNT; i++) {
        int at = printf("  %-12s  ", benches[i]->name);
        wrap_print(stdout, benches[i]->summary, at, at, out.width);
    }
}

/* True if the words contain a model file for 'bench model'. The values of --net and --weights do not count. */
static bool names_model(int count, char **words)
{
    for (int i = 0; i < count && strcmp(words[i], "--") != 0; i++) {
        if (words[i][0] == '-') continue;
        if (i > 0 && (strcmp(words[i - 1], "--net") == 0 || strcmp(words[i - 1], "--weights") == 0)) continue;
        file_type form = file_type_of(words[i]);
        if (form == FILE_TYPE_ONNX || form == FILE_TYPE_SAFETENSORS) return true;
    }
    return false;
}

static bool names_network(const char *word)
{
    const char *known;
    for (int i = 0; (known = sdlf_network_builtin_name(i)); i++) {
        if (strcmp(known, word) == 0) return true;
    }
    return file_type_of(word) == FILE_TYPE_JSON;
}

static int unknown_benchmark(const char *word)
{
    if (names_network(word)) {
        arguments_wrong("bench", "there is no benchmark '%s'; a network is given with --net: sdlf bench --net %s", word,
                        word);
        return COMMAND_USAGE;
    }
    sdlf_suggestion s = {.word = word};
    for (int i = 0; i < BENCH_COUNT; i++) sdlf_suggest(&s, benches[i]->name);
    arguments_wrong("bench", "there is no benchmark '%s'%s", word, sdlf_suggestion_print(&s).text);
    for (int i = 0; i < BENCH_COUNT; i++) fprintf(stderr, "  %-10s  %s\n", benches[i]->name, benches[i]->summary);
    return COMMAND_USAGE;
}

static int run(int count, char **words)
{
    for (int i = 0; i < BENCH_COUNT && count > 0; i++) {
        if (strcmp(benches[i]->name, words[0]) == 0) return benches[i]->run(count - 1, words + 1);
    }
    if (names_model(count, words)) return model_bench.run(count, words);
    if (count == 0 || words[0][0] == '-') return benches[0]->run(count, words);
    return unknown_benchmark(words[0]);
}

static const char *part(int index)
{
    return index < BENCH_COUNT ? benches[index]->name : NULL;
}

const command bench_command = {.part = part,
                               .name = "bench",
                               .summary = "time a network: against the machine's limits, or host against device",
                               .run = run};
