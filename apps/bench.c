/* sdlf bench: which benchmark? */
#include <stdio.h>
#include <string.h>

#include "apps/arguments.h"
#include "apps/bench.h"
#include "apps/command.h"
#include "apps/network.h"
#include "apps/suggest.h"
#include "apps/terminal.h"
#include "apps/wrap.h"

/* The first is the one that runs when none is named. */
static const bench *const benches[] = {&network_bench, &epoch_bench, &placement_bench,
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

static int run(int count, char **words)
{
    if (count == 0 || words[0][0] == '-') return benches[0]->run(count, words);
    if (network_is_onnx(words[0])) return model_bench.run(count, words);
    suggestion s = {.word = words[0]};
    for (int i = 0; i < BENCH_COUNT; i++) {
        if (strcmp(benches[i]->name, words[0]) == 0) return benches[i]->run(count - 1, words + 1);
        suggest_offer(&s, benches[i]->name);
    }
    arguments_wrong("bench", "there is no benchmark '%s'%s%s%s", words[0], s.best ? "; did you mean '" : "",
                    s.best ? s.best : "", s.best ? "'?" : "");
    for (int i = 0; i < BENCH_COUNT; i++) fprintf(stderr, "  %-10s  %s\n", benches[i]->name, benches[i]->summary);
    return COMMAND_USAGE;
}

const command bench_command = {.name = "bench",
                               .summary = "time a network: against the machine's limits, or host against device",
                               .run = run,
                               .long_running = true};
