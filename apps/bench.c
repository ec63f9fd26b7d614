/* sdlf bench: which benchmark? */
#include <stdio.h>
#include <string.h>

#include "apps/arguments.h"
#include "apps/bench.h"
#include "apps/command.h"
#include "apps/suggest.h"

/* The first is the one that runs when none is named. */
static const bench *const benches[] = {&network_bench};
enum { BENCH_COUNT = sizeof benches / sizeof benches[0] };

static int run(int count, char **words)
{
    if (count == 0 || words[0][0] == '-') return benches[0]->run(count, words);
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

const command bench_command = {"bench", "time an epoch and every layer, and compare with the machine's limits", run};
