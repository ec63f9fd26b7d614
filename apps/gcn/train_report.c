/* SPDX-License-Identifier: MIT */
/* The results of `sdlf gcn train`, as text and as JSON. */
#include <math.h>
#include <stdio.h>

#include "apps/gcn/train.h"
#include "apps/output/json.h"
#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/status_line.h"
#include "framework/clock.h"

void gcn_train_show_epoch(gcn_training *s, uint64_t seed, const gcn_outcome *now)
{
    enum { EVERY_MILLISECONDS = 100 };
    double time = sdlf_clock();
    if (time - s->shown < 1e-3 * EVERY_MILLISECONDS) return;
    s->shown = time;
    status_line_show("seed %llu  epoch %lld of %lld  loss %.3f", (unsigned long long)seed, (long long)now->epochs,
                     (long long)s->set.epochs, now->loss[SDLF_NODE_TRAIN]);
}

void gcn_train_print_outcome(const gcn_training *s, const terminal *out, int64_t index)
{
    const gcn_outcome *o = &s->outcomes[index];
    report_label(out, "seed");
    printf("%lld  %lld epochs  loss %.3f  validation %s  test %s  %s\n", (long long)(s->set.seed + index),
           (long long)o->epochs, o->loss[SDLF_NODE_TRAIN], number_percent(o->accuracy[SDLF_NODE_VALIDATE], 1).text,
           number_percent(o->accuracy[SDLF_NODE_TEST], 1).text, number_duration(o->seconds).text);
    fflush(stdout);
}

/* Mean and deviation of the test accuracy over the completed trainings; NaN if there are none. */
double gcn_train_mean_test(const gcn_training *s, double *deviation)
{
    double sum = 0, squares = 0, count = (double)s->done;
    for (int64_t i = 0; i < s->done; i++) sum += s->outcomes[i].accuracy[SDLF_NODE_TEST];
    for (int64_t i = 0; i < s->done; i++) squares += pow(s->outcomes[i].accuracy[SDLF_NODE_TEST] - sum / count, 2);
    *deviation = s->done > 1 ? sqrt(squares / (count - 1)) : 0;
    return sum / count;
}

sdlf_status gcn_train_print_json(const gcn_training *s)
{
    json_t *runs = json_array();
    double deviation, mean = gcn_train_mean_test(s, &deviation);
    for (int64_t i = 0; i < s->set.seeds && s->outcomes[i].epochs > 0; i++) {
        const gcn_outcome *o = &s->outcomes[i];
        json_array_append_new(runs,
                              json_pack("{sI sI sb so so so so}", "seed", (json_int_t)(s->set.seed + i), "epochs",
                                        (json_int_t)o->epochs, "complete", i < s->done, "train_loss",
                                        json_number(o->loss[SDLF_NODE_TRAIN]), "validation",
                                        json_number(o->accuracy[SDLF_NODE_VALIDATE]), "test",
                                        json_number(o->accuracy[SDLF_NODE_TEST]), "seconds", json_number(o->seconds)));
    }
    json_t *result =
        json_pack("{ss so sI sI sI si sI ss so so so so so}", "version", SDLF_VERSION, "graph",
                  json_text(s->graph->name), "nodes", (json_int_t)s->graph->node_count, "elements",
                  (json_int_t)s->matrix.stored, "features", (json_int_t)s->graph->features.shape.dim[1], "classes",
                  s->graph->class_count, "hidden", (json_int_t)s->set.hidden, "calculator", s->calculator->type->name,
                  "read_s", json_number(s->reading), "matrix_s", json_number(s->preparing), "runs", runs, "mean_test",
                  json_number(mean), "deviation", json_number(deviation));
    return json_print_measured(result);
}
