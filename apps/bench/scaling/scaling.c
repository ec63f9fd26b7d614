/* SPDX-License-Identifier: MIT */
/* sdlf bench scaling: measures the speed-up of training on more ranks. */
#include <stdio.h>
#include <stdlib.h>

#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/arguments/execution.h"
#include "apps/arguments/ranks.h"
#include "apps/bench/bench.h"
#include "apps/bench/scaling/report.h"
#include "apps/command.h"
#include "apps/input/network.h"
#include "apps/output/file.h"
#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/status_line.h"
#include "apps/output/terminal.h"

typedef struct settings {
    const char *net, *shape, *svg;
    int64_t classes, batch, steps, repeats;
    rank_settings ranks;
    execution execution;
    int gradient_dtype; /* of gradient_dtypes */
    bool sync, json;
} settings;

static const char *const gradient_dtypes[] = {"float32", "bfloat16", "float16", NULL};

static const argument scaling_arguments[] = {
    {.name = "What is timed", .type = ARGUMENT_HEADING},
    {"net", ARGUMENT_TEXT, offsetof(settings, net), "NAME", .standard = ARGUMENT_STANDARD_INPUT,
     .fallback = "simple_cnn", .help = "a network from the list below, FILE.json or FILE.onnx"},
    {"shape", ARGUMENT_TEXT, offsetof(settings, shape), "CxHxW",
     .help = "samples that a built-in network is made for, 3x224x224 (default: its own)"},
    {"classes", ARGUMENT_INT, offsetof(settings, classes), "N", .minimum = 1, .maximum = 1000000, .fallback = "10",
     .help = "classes, with --shape"},
    {"batch", ARGUMENT_INT, offsetof(settings, batch), "N", .minimum = 1, .maximum = 100000, .fallback = "128",
     .help = "samples a step: of all ranks together, then of each"},
    {"steps", ARGUMENT_INT, offsetof(settings, steps), "N", .minimum = 1, .maximum = 1e6, .fallback = "10",
     .help = "steps that are timed together"},
    {"repeats", ARGUMENT_INT, offsetof(settings, repeats), "N", .minimum = 1, .maximum = 100000, .fallback = "5",
     .help = "repetitions, whose median is taken"},
    {0},
};

static const argument shared_arguments[] = {
    {"gradient-dtype", ARGUMENT_CHOICE, offsetof(settings, gradient_dtype), "TYPE", .choices = gradient_dtypes,
     .fallback = "float32", .help = "type that gradients are rounded to before they are added"},
    {"sync-batch-norm", ARGUMENT_FLAG, offsetof(settings, sync),
     .help = "batch normalisation with the statistics of the whole batch"},
    {0},
};

static const argument output_arguments[] = {
    {.name = "Output", .type = ARGUMENT_HEADING},
    {"svg", ARGUMENT_TEXT, offsetof(settings, svg), "FILE", .help = "draw a chart, too"},
    {"json", ARGUMENT_FLAG, offsetof(settings, json), .help = "print JSON"},
    {0},
};

typedef struct session {
    settings set;
    arguments given;
    machine machine;
    sdlf_communicator *ranks;
    sdlf_model *model;
    scaling_work work;
    scaling_report report;
    terminal out;
    bool measuring; /* some ranks may wait for the others: a failure now ends all */
} session;

/* 1, 2, 3 and so on to 8 ranks; then twice as many each time; finally all. */
static int next_count(int count, int all)
{
    int next = count < 8 ? count + 1 : 2 * count;
    return next < all || count == all ? next : all;
}

static sdlf_status read_shape(sdlf_shape *shape, const char *text)
{
    int64_t side[3];
    int count = 0;
    for (const char *at = text; count < 3;) {
        char *end;
        side[count] = *at >= '1' && *at <= '9' ? strtol(at, &end, 10) : 0;
        bool good = side[count] > 0 && side[count] <= 65535 && *end == (count < 2 ? 'x' : '\0');
        if (!good) break;
        at = end + 1;
        count++;
    }
    *shape = sdlf_shape(side[0], side[1], side[2]);
    return count == 3
               ? SDLF_OK
               : sdlf_fail(SDLF_ERROR_ARGUMENT, "--shape %s: expected CxHxW, like 3x224x224, each 1 to 65535", text);
}

static sdlf_status open_network(session *s)
{
    const settings *set = &s->set;
    sdlf_shape shape;
    if (set->shape == NULL && arguments_given(&s->given, "classes"))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--classes needs --shape CxHxW");
    if (set->shape == NULL) return network_open(&s->model, set->net, 1, NULL);
    if (!network_is_builtin(set->net))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--shape %s: the network in %s has its own", set->shape, set->net);
    sdlf_status status = read_shape(&shape, set->shape);
    if (status == SDLF_OK) status = sdlf_network_builtin_for(&s->model, set->net, shape, (int)set->classes);
    return status == SDLF_OK ? sdlf_model_build(s->model, 1) : status;
}

static sdlf_status prepare(session *s)
{
    settings *set = &s->set;
    sdlf_status status = open_network(s);
    if (status == SDLF_OK) status = execution_complete(&set->execution, s->model);
    if (status == SDLF_OK)
        ranks_take_place(&set->ranks, s->ranks, &s->given, execution_of_devices(&set->execution),
                         &set->execution.choice);
    if (status == SDLF_OK) status = execution_to_plan(&set->execution, &s->machine, &s->work.plan);
    if (status == SDLF_OK && set->svg && s->ranks->rank == 0) status = output_file_check(set->svg);
    if (status == SDLF_OK && set->batch < s->ranks->rank_count)
        status = sdlf_fail(SDLF_ERROR_ARGUMENT, "--batch %lld: expected at least one sample for each of %d ranks",
                           (long long)set->batch, s->ranks->rank_count);
    if (status == SDLF_OK) status = machine_check_training(s->work.plan.forward, s->model, set->batch);
    return sdlf_communicator_agree(s->ranks, status);
}

static void describe(session *s)
{
    scaling_report *r = &s->report;
    sdlf_calculator *calculator = s->work.plan.forward;
    char text[200] = "";
    if (calculator->type->describe) calculator->type->describe(calculator, text, sizeof text);
    snprintf(r->runs_on, sizeof r->runs_on, "%s: %s; rank 0 on %s", calculator->type->name, text, s->ranks->host);
    r->network = sdlf_model_name(s->model);
    r->sample = network_sample_shape(s->model);
    r->communicator = s->ranks->type->name;
    r->math = sdlf_math_name((sdlf_math)s->set.execution.choice.math);
    r->gradients = gradient_dtypes[s->set.gradient_dtype];
    r->sync = s->set.sync;
    r->batch = s->set.batch;
    r->steps = s->set.steps;
    r->repeats = s->set.repeats;
}

/* Measures both kinds on that many ranks. With one rank they are the same measurement. */
static sdlf_status measure_ranks(session *s, int index, int ranks)
{
    sdlf_status status = SDLF_OK;
    scaling_report *r = &s->report;
    for (int kind = 0; kind < SCALING_KINDS && status == SDLF_OK; kind++) {
        scaling_point *p = &r->point[kind][index];
        *p = (scaling_point){.ranks = ranks, .batch = kind == SCALING_WEAK ? ranks * r->batch : r->batch};
        if (s->ranks->rank == 0)
            status_line_show("%s, %d of %d ranks", scaling_names[kind], ranks, s->ranks->opened_count);
        if (ranks == 1 && kind != 0)
            *p = r->point[0][index];
        else
            status = scaling_measure(p, &s->work);
    }
    if (status == SDLF_OK && ranks > 1)
        status = scaling_measure_sum(&r->large[index], SCALING_SUM, s->work.plan.forward, &s->work);
    if (s->ranks->rank == 0) status_line_clear();
    return status;
}

/* Measures increasing numbers of ranks. Ranks without a part wait. */
static sdlf_status measure(session *s)
{
    sdlf_status status = SDLF_OK;
    int all = s->ranks->opened_count;
    s->measuring = true;
    for (int n = 1; n <= all && status == SDLF_OK && s->report.count < SCALING_POINTS; n = next_count(n, all)) {
        if (all > 1) status = sdlf_communicator_narrow(s->ranks, n);
        if (status == SDLF_OK && s->ranks->rank < n) status = measure_ranks(s, s->report.count, n);
        s->report.count++;
    }
    s->measuring = status != SDLF_OK;
    return status;
}

static sdlf_status bench_all(session *s)
{
    settings *set = &s->set;
    sdlf_status status = ranks_open(&set->ranks, &s->ranks, execution_of_devices(&set->execution));
    if (status == SDLF_OK) status = prepare(s);
    if (status != SDLF_OK) return status;
    bool leads = s->ranks->rank == 0, text = leads && !set->json;
    s->work = (scaling_work){.ranks = s->ranks,
                             .machine = &s->machine,
                             .model = s->model,
                             .plan = s->work.plan,
                             .steps = set->steps,
                             .repeats = set->repeats};
    s->work.plan.optimizer = sdlf_sgd(.momentum = 0.9);
    s->work.plan.sync_batch_norm = set->sync;
    if (set->gradient_dtype != 0)
        s->work.plan.gradient_dtype = sdlf_dtype_from_name(gradient_dtypes[set->gradient_dtype]);
    describe(s);
    if (text) {
        report_header(&s->out, s->machine.calculator, s->machine.count);
        ranks_print(&set->ranks, s->ranks, &s->out);
        report_network(&s->out, &(report_subject){.model = s->model, .note = ""});
        fflush(stdout);
    }
    status = measure(s);
    if (status != SDLF_OK || !leads) return status;
    if (text) scaling_print(&s->out, &s->report);
    if (set->json) status = json_print_result(scaling_json(&s->report));
    return status == SDLF_OK && set->svg ? scaling_draw(&s->report, set->svg) : status;
}

/* One rank reports an error common to all; an error of one rank is reported there. */
static int conclude(session *s, sdlf_status status)
{
    sdlf_communicator *ranks = s->ranks;
    if (status == SDLF_OK || ranks == NULL) return command_conclude("bench scaling", status);
    if (!ranks->agreed) sdlf_fail_context(status, "rank %d on %s", ranks->rank, ranks->host);
    bool tells = !ranks->agreed || ranks->rank == 0;
    int code = tells ? command_conclude("bench scaling", status) : COMMAND_FAILED;
    fflush(stdout);
    if (tells && (s->measuring || !ranks->agreed)) sdlf_communicator_abort(ranks);
    return code;
}

static int bench_and_release(void *user)
{
    session *s = user;
    int code = conclude(s, bench_all(s));
    for (int i = 0; i < s->machine.count && s->ranks != NULL; i++)
        if (s->ranks->type->forget) s->ranks->type->forget(s->ranks, s->machine.calculator[i]);
    sdlf_model_free(s->model);
    machine_close(&s->machine);
    execution_release(&s->set.execution);
    sdlf_communicator_close(s->ranks);
    return code;
}

static int run(int count, char **words)
{
    session s = {.out = terminal_of(stdout)};
    const argument_part parts[] = {{scaling_arguments, 0},
                                   {rank_arguments, offsetof(settings, ranks)},
                                   {shared_arguments, 0},
                                   {execution_arguments, offsetof(settings, execution)},
                                   {machine_arguments, offsetof(settings, execution.choice)},
                                   {output_arguments, 0},
                                   {0}};
    const command_usage usage = {
        .command = "bench scaling",
        .synopsis = "[options]",
        .text = "Train a network on 1, 2, 3 and so on of the ranks, which are the devices of --devices or the "
                "processes that mpirun has started, once with the same total batch and once with the same batch per "
                "rank, on random data. Shows the speed-up, how much of the communication is hidden behind computation, "
                "and how close it comes to the speed of the links.",
        .parts = parts,
        .epilogue = network_print_list,
        .examples =
            "  mpirun -n 4 sdlf bench scaling\n"
            "  mpirun -n 2 --bind-to core sdlf bench scaling --net resnet20 --batch 64 --svg scaling.svg\n"
            "  sdlf bench scaling --devices 0,1 --calculator cuda --math bf16 --net resnet50 --batch 64\n"
            "  mpirun -n 8 sdlf bench scaling --communicator nccl --calculator cuda --math bf16 --net resnet50\n",
    };
    switch (arguments_read(&s.given, &usage, count, words, &s.set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    settings *set = &s.set;
    if (set->ranks.devices == NULL && set->ranks.communicator == NULL) set->ranks.communicator = "mpi";
    sdlf_status status =
        ranks_check(&set->ranks, &s.given, execution_of_devices(&set->execution), &set->execution.choice);
    if (status == SDLF_OK && set->ranks.device_count == 1)
        status = sdlf_fail(SDLF_ERROR_ARGUMENT, "--devices %s: expected two devices at least", set->ranks.devices);
    if (status != SDLF_OK) return command_conclude("bench scaling", status);
    return ranks_run(&s, sizeof s, offsetof(session, set.ranks), bench_and_release);
}

const bench scaling_bench = {"scaling", "training on more and more ranks: speed-up, efficiency, overlap", run};
