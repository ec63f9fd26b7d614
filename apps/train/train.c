/* SPDX-License-Identifier: MIT */
/* sdlf train: train a network on labelled pictures and keep its weights. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "apps/arguments/effective.h"
#include "apps/arguments/onnx.h"
#include "apps/command.h"
#include "apps/input/labels.h"
#include "apps/input/network.h"
#include "apps/input/samples.h"
#include "apps/output/evaluation.h"
#include "apps/output/file.h"
#include "apps/output/number.h"
#include "apps/output/quote.h"
#include "apps/output/report.h"
#include "apps/output/trainable.h"
#include "apps/pictures/preprocess.h"
#include "apps/system/interrupt.h"
#include "apps/train/progress.h"
#include "apps/train/session.h"

static const argument data_arguments[] = {
    {.name = "Data and network", .type = ARGUMENT_HEADING},
    {"data", ARGUMENT_TEXT, offsetof(train_settings, data), "SET", .fallback = "digits",
     .help = "what to learn, see below"},
    {"test-data", ARGUMENT_TEXT, offsetof(train_settings, test_data), "SET",
     .help = "what to test on (default: the test half of --data)"},
    {"size", ARGUMENT_TEXT, offsetof(train_settings, size), "HxW",
     .help = "what pictures of a folder are scaled to, 224 or 240x320 (default: the network's input, or their own, "
             "which must be the same for all)"},
    {"normalize", ARGUMENT_CHOICE, offsetof(train_settings, normalize), "KIND", .choices = preprocess_kind_names,
     .fallback = "auto",
     .help = "mean and deviation of the channels: those that the network's file says, else the data's own (auto); "
             "imagenet, cifar10, tf, unit and none as for predict"},
    {"strict", ARGUMENT_FLAG, offsetof(train_settings, strict), .help = "refuse pictures that cannot be read"},
    {"workers", ARGUMENT_INT, offsetof(train_settings, workers), "N", .minimum = 1, .maximum = 64,
     .help = "threads that decode pictures of a folder (default: one for each processor)"},
    {"cache", ARGUMENT_INT, offsetof(train_settings, cache), "MB", .minimum = 1, .maximum = 1e9,
     .help = "decoded pictures of a folder to keep in memory, for each half; others are decoded whenever they are "
             "needed (default: "
             "all are kept)"},
    {"no-test", ARGUMENT_FLAG, offsetof(train_settings, no_test), .help = "do not test after each epoch"},
    {"device-data", ARGUMENT_INT, offsetof(train_settings, device_data), "MB", .minimum = 1, .maximum = 1e9,
     .help = "training data that a GPU may hold; larger sets are copied to it batch by batch (default: what there is "
             "room for)"},
    {"net", ARGUMENT_TEXT, offsetof(train_settings, net), "NAME", .standard = ARGUMENT_STANDARD_INPUT,
     .fallback = "simple_cnn",
     .help = "a network from the list below, made for the data's shape and classes, FILE.json or FILE.onnx"},
    {"from", ARGUMENT_TEXT, offsetof(train_settings, from), "FILE", .standard = ARGUMENT_STANDARD_INPUT,
     .help = "begin with the network and weights of a safetensors or ONNX file (transfer learning); where the data "
             "have another number of classes, its last layer is replaced"},
    {"freeze", ARGUMENT_TEXT, offsetof(train_settings, freeze), "LIST",
     .help = "parameters to freeze, separated by commas; conv2d.* are all whose names begin so, and trunk all "
             "but those of the layer that makes the scores"},
    {"unfreeze", ARGUMENT_TEXT, offsetof(train_settings, unfreeze), "LIST",
     .help = "parameters to train that the network would freeze"},
    {0},
};

static const char *const keep_names[] = {"last", "best", "best-loss", NULL}; /* sdlf_keep */

static const argument output_arguments[] = {
    {.name = "Output", .type = ARGUMENT_HEADING},
    {"out", ARGUMENT_TEXT, offsetof(train_settings, out), "FILE", .letter = 'o',
     .help = "keep weights and training state here after each epoch (default: NETWORK.safetensors, if there is none)"},
    {"resume", ARGUMENT_TEXT, offsetof(train_settings, resume), "FILE",
     .help = "continue where FILE stopped, with its network, data and options; --epochs adds some when all are done"},
    {"keep", ARGUMENT_CHOICE, offsetof(train_settings, keep), "WHICH", .choices = keep_names, .fallback = "last",
     .help = "the epoch whose weights are kept: the last, or the one of the best test, by accuracy or by loss"},
    {"patience", ARGUMENT_INT, offsetof(train_settings, patience), "N", .minimum = 1, .maximum = 100000,
     .help = "stop after N epochs without a better test (default: go on to the last epoch)"},
    {"no-save", ARGUMENT_FLAG, offsetof(train_settings, no_save), .help = "keep nothing"},
    {"log", ARGUMENT_TEXT, offsetof(train_settings, log), "FILE",
     .help = "write a JSON object a line: start, steps, epochs, end. With --resume after what is there, else a log of "
             "an earlier run is kept as FILE.1, or the next free number"},
    {"log-steps", ARGUMENT_INT, offsetof(train_settings, log_steps), "N", .minimum = 0, .maximum = 1e9,
     .fallback = "50", .help = "steps between two lines in the log, or values for TensorBoard; 0: only epochs"},
    {"tensorboard", ARGUMENT_TEXT, offsetof(train_settings, tensorboard), "DIR",
     .help = "write an event file there: curves, options, samples, the network's graph and the confusion matrix; "
             "'tensorboard --logdir DIR' shows it"},
    {"histograms", ARGUMENT_FLAG, offsetof(train_settings, histograms),
     .help = "with --tensorboard: how each parameter's values are spread, after each epoch"},
    {"gradient-histograms", ARGUMENT_FLAG, offsetof(train_settings, gradient_histograms),
     .help = "with --tensorboard: how each parameter's gradient is spread, after each epoch, over one batch: the first "
             "samples as they are, by the network as it answers"},
    {"serve", ARGUMENT_FLAG, offsetof(train_settings, serve),
     .help = "show a page of live curves in the browser of this machine, with buttons that save and stop; its address "
             "is printed"},
    {"port", ARGUMENT_INT, offsetof(train_settings, port), "N", .minimum = 0, .maximum = 65535, .fallback = "0",
     .help = "with --serve: the page's port on 127.0.0.1; 0: a free one"},
    {"confusion", ARGUMENT_FLAG, offsetof(train_settings, confusion), .help = "print the confusion matrix at the end"},
    {"quiet", ARGUMENT_FLAG, offsetof(train_settings, quiet), .help = "print only errors"},
    {"dry-run", ARGUMENT_FLAG, offsetof(train_settings, dry_run),
     .help =
         "check everything, print what would be trained, every option and the command that repeats the run, and write "
         "nothing"},
    {0},
};

static const argument shared_training_arguments[] = {
    {"gradient-dtype", ARGUMENT_CHOICE, offsetof(train_settings, gradient_dtype), "TYPE",
     .choices = train_gradient_dtypes, .fallback = "float32",
     .help =
         "what gradients are rounded to before they are added over the ranks: bfloat16 and float16 halve the bytes"},
    {"shard-states", ARGUMENT_FLAG, offsetof(train_settings, shard_states),
     .help = "each rank has its part of the optimizer's states and updates that part of the weights (ZeRO 1)"},
    {"sync-batch-norm", ARGUMENT_FLAG, offsetof(train_settings, training.sync_batch_norm),
     .help = "batch normalisation by the statistics of the whole batch (default: of each rank's part)"},
    {0},
};

static void epilogue(void)
{
    terminal out = terminal_of(stdout);
    samples_print_list(&out);
    network_print_list();
}

/* One run and how it is shown. */
typedef struct showing {
    train_session session;
    progress progress;
    double seconds, test_seconds; /* of the epochs of this run */
    int epochs;                   /* how many those are */
    int kept, kept_before; /* the epoch whose checkpoint is written last, and the one before; 0: of none of this run */
    sdlf_progress last;    /* what the callback was told last */
} showing;

static void on_progress(const sdlf_progress *now, void *user)
{
    showing *show = user;
    show->last = *now;
    if (now->event == SDLF_PROGRESS_EPOCH) {
        show->epochs++;
        show->kept_before = show->kept;
        if (show->session.set.keep == SDLF_KEEP_LAST || now->best)
            show->kept = now->epoch; /* unless something else comes */
        show->seconds += now->seconds;
        if (isfinite(now->test_seconds)) show->test_seconds += now->test_seconds;
    }
    if (now->event == SDLF_PROGRESS_UNSAVED) {
        show->kept = show->kept_before;
        const sdlf_communicator *ranks = show->session.ranks;
        if (ranks == NULL || ranks->rank == 0)
            terminal_warning("train", "%s; training goes on, and saves after the next epoch", sdlf_error_message());
    } else if (!show->session.set.quiet) {
        progress_show(&show->progress, now);
    }
    training_log_progress(&show->session.log, now);
    tensorboard_log_progress(&show->session.board, now);
    training_curves_progress(show->session.curves, now);
}

/* "saved  simple_cnn.safetensors (25.7 MB); continue with --resume simple_cnn.safetensors" */
static void say_saved(const train_session *s, bool finished)
{
    report_label(&s->out, "saved");
    int64_t size = output_file_size(s->out_path);
    if (size == 0) { /* a device or a pipe, from which nothing comes back */
        puts(s->out_path);
        return;
    }
    char *name = quote_word(s->out_path);
    printf("%s (%s); continue with --resume %s", s->out_path, number_bytes(size).text, name);
    if (finished) printf(" --epochs %d", 2 * s->options.epochs);
    putchar('\n');
    free(name);
}

/* Where epochs were told apart: which was the best, and whether that ended the training. */
static void print_best(const showing *show)
{
    const train_session *s = &show->session;
    double loss, accuracy;
    int best = sdlf_trainer_best_epoch(s->trainer, &loss, &accuracy);
    if (best == 0) return;
    report_label(&s->out, "best");
    printf("epoch %d of %d, test ", best, s->options.epochs);
    if (!isnan(accuracy)) printf("%s, ", number_percent(accuracy, 2).text);
    printf("loss %s", number_loss(loss, 4).text);
    if (show->last.epoch < s->options.epochs)
        printf("; stopped after epoch %d, %d without a better one", show->last.epoch, s->options.patience);
    if (s->set.keep == SDLF_KEEP_LAST && best != show->last.epoch) printf("; kept: epoch %d", show->last.epoch);
    putchar('\n');
}

static void print_summary(const showing *show, const sdlf_evaluation *evaluation)
{
    const train_session *s = &show->session;
    if (evaluation) {
        labels names;
        labels_of_model(&names, s->model);
        if (!show->progress.sequences || s->set.confusion) /* a table of all characters is long */
            evaluation_print(&s->out, evaluation, &names, s->set.confusion);
        labels_release(&names);
        report_label(&s->out, "test");
        evaluation_print_line(evaluation);
    }
    print_best(show);
    report_label(&s->out, "time");
    printf("%s for %d epoch%s", number_duration(show->seconds).text, show->epochs, show->epochs == 1 ? "" : "s");
    if (show->test_seconds > 0) printf(" and %s for testing", number_duration(show->test_seconds).text);
    putchar('\n');
}

/* The run went to its end. */
static int finish(showing *show)
{
    train_session *s = &show->session;
    sdlf_evaluation evaluation = {0};
    sdlf_calculator *calculator = NULL;
    sdlf_status status = machine_open(&s->machine, s->options.forward, &calculator);
    const sdlf_evaluation_options options = {.communicator = s->ranks};
    if (s->ranks != NULL) status = sdlf_communicator_agree(s->ranks, status);
    if (status == SDLF_OK && s->test) status = sdlf_evaluate_with(&evaluation, s->model, s->test, calculator, &options);
    bool evaluated = status == SDLF_OK && s->test;
    bool tells = s->ranks == NULL || s->ranks->rank == 0 || !s->ranks->agreed;
    if (status != SDLF_OK && tells) terminal_error("train", "the last test: %s", sdlf_error_message());
    /* an update that went too far shows in the loss of the next step, of which the last one has none */
    const bool astray = status == SDLF_OK && ((evaluated && isnan(evaluation.loss)) || !trainable_is_finite(s->model));
    if (astray)
        status = sdlf_fail(
            SDLF_ERROR_NUMERIC,
            "the last step led astray: there are %s that are no finite numbers; a smaller --learning-rate may help",
            evaluated && isnan(evaluation.loss) ? "scores" : "weights");
    training_log_end(&s->log, status, evaluated ? &evaluation : NULL);
    tensorboard_log_end(&s->board, status, evaluated ? &evaluation : NULL);
    if (!s->set.quiet) {
        print_summary(show, evaluated ? &evaluation : NULL);
        bool done = sdlf_model_training_state(s->model)->epoch == s->options.epochs;
        if (s->out_path) say_saved(s, done);
    }
    sdlf_evaluation_release(&evaluation);
    if (astray && tells) terminal_error("train", "%s", sdlf_error_message());
    return status == SDLF_OK ? COMMAND_OK : COMMAND_FAILED;
}

/* A signal to this process, or to another rank, stopped the run, and the trainer has kept what there is. */
static int stopped(const showing *show)
{
    const train_session *s = &show->session;
    bool here = interrupt_signal() != 0;
    if (!s->set.quiet) {
        printf("stopped by %s in epoch %d of %d, after step %" PRId64 " of %" PRId64 "\n",
               here ? interrupt_name() : "a signal to another rank", show->last.epoch, show->last.epochs,
               show->last.step, show->last.steps);
        if (s->out_path) say_saved(s, false);
        if (!s->out_path) puts("nothing was kept, as --no-save asks");
    }
    return COMMAND_SIGNAL + (here ? interrupt_signal() : SIGINT);
}

/* The run failed: say why, and what is left. Right after the last epoch, it was its checkpoint that could not be
 * written. */
static int failed(const showing *show, sdlf_status status)
{
    const train_session *s = &show->session;
    terminal_error("train", "%s", sdlf_error_message());
    bool after_epoch = show->last.event == SDLF_PROGRESS_EPOCH;
    bool unsaved = after_epoch && (status == SDLF_ERROR_IO || status == SDLF_ERROR_MEMORY);
    int kept = unsaved ? show->kept_before : show->kept;
    if (s->out_path && kept > 0) fprintf(stderr, "%s still holds the state after epoch %d.\n", s->out_path, kept);
    return COMMAND_FAILED;
}

/* Of several ranks, an error of all is told by one; one that only a rank knows is told by that rank, which ends all. */
static int failed_rank(const showing *show, sdlf_status status)
{
    const train_session *s = &show->session;
    sdlf_communicator *ranks = s->ranks;
    if (!s->met) status = sdlf_communicator_agree(ranks, status);
    if (!ranks->agreed)
        sdlf_fail_context(status, "rank %d on %s", ranks->rank, ranks->host);
    else if (ranks->rank > 0)
        return COMMAND_FAILED;
    int code = s->trainer != NULL ? failed(show, status) : command_conclude("train", status);
    fflush(stdout);
    if (!ranks->agreed) sdlf_communicator_abort(ranks);
    return code;
}

/* --dry-run: every option, and the run as one command, which holds what the network and the checkpoint brought too. */
static int say_command(train_session *s)
{
    s->set.dry_run = false;
    if (!s->set.quiet) {
        char *lines = arguments_lines(s->given.usage, &s->set);
        printf("\nEvery option, and the command that repeats the run:\n\n%s\n", lines);
        free(lines);
    }
    char *words = arguments_command(s->given.usage, &s->set);
    puts(words);
    free(words);
    return COMMAND_OK;
}

static int train(showing *show)
{
    train_session *s = &show->session;
    s->options.callback = on_progress;
    s->options.user = show;
    sdlf_status status = train_session_prepare(s);
    if (status != SDLF_OK && s->ranks != NULL) return failed_rank(show, status);
    if (status != SDLF_OK) return command_conclude("train", status);
    bool leads = s->ranks == NULL || s->ranks->rank == 0;
    if (s->set.dry_run) return leads ? say_command(s) : COMMAND_OK;
    show->progress = progress_begin(&s->out, s->test != NULL);
    bool several = s->train->labels.dtype == SDLF_INT32 && s->train->labels.shape.rank > 1;
    show->progress.sequences = several && s->train->labels.shape.rank == 2;
    show->progress.unit = show->progress.sequences ? "tokens" : several ? "pixels" : "samples";
    show->progress.smoothed = s->options.label_smoothing > 0 || s->options.class_weights[0];
    /* of several threads the first one's trainer is stopped, and tells the others */
    const bool alone = !ranks_is_second(&s->set.ranks);
    if (alone) interrupt_stops(s->trainer);
    do {
        status = sdlf_trainer_run(s->trainer);
    } while (training_curves_go_on(s->curves, status));
    if (alone) interrupt_stops(NULL);
    training_curves_end(s->curves);
    progress_end(&show->progress);
    if (status == SDLF_OK) return finish(show);
    training_log_end(&s->log, status, NULL);
    tensorboard_log_end(&s->board, status, NULL);
    if (status == SDLF_ERROR_INTERRUPTED && (s->ranks != NULL || interrupt_signal() != 0)) return stopped(show);
    return s->ranks != NULL ? failed_rank(show, status) : failed(show, status);
}

static int train_and_release(void *user)
{
    showing *show = user;
    int code = train(show);
    train_session_release(&show->session);
    return code;
}

static int run(int count, char **words)
{
    showing show = {.session.out = terminal_of(stdout)};
    train_session *s = &show.session;
    optimizer_rows_make(&s->optimizers);
    const argument_part parts[] = {
        {data_arguments, 0},
        {dimension_arguments, offsetof(train_settings, dimensions)},
        {training_arguments, offsetof(train_settings, training)},
        {s->optimizers.row, offsetof(train_settings, optimizer)},
        {schedule_arguments, offsetof(train_settings, training)},
        {augmentation_arguments, offsetof(train_settings, training)},
        {execution_arguments, offsetof(train_settings, execution)},
        {machine_arguments, offsetof(train_settings, execution.choice)},
        {rank_arguments, offsetof(train_settings, ranks)},
        {shared_training_arguments, 0},
        {output_arguments, 0},
        {0},
    };
    const command_usage usage = {
        .command = "train",
        .synopsis = "[options]",
        .text = "Train a network on labelled pictures and keep its weights. Without options it learns digits that it "
                "draws itself, in under a minute. Ctrl-C keeps what was learnt so far; a second one ends at once.",
        .parts = parts,
        .epilogue = epilogue,
        .examples = "  sdlf train\n"
                    "  sdlf train --data mnist:/data --net lenet5 --epochs 10\n"
                    "  sdlf train --data folder:flowers --size 64 --net resnet18 --augment-flip\n"
                    "  sdlf train --data folder:flowers --from mobilenetv2.onnx --freeze trunk\n"
                    "  sdlf train --epochs 10 --log run.jsonl --tensorboard runs/first\n"
                    "  sdlf train --epochs 50 --serve\n"
                    "  sdlf train --resume lenet5.safetensors --epochs 20\n"
                    "  sdlf train --optimizer adamw --weight-decay 0.01 --schedule cosine\n"
                    "  sdlf train --data folder:flowers --calculator cuda --devices 0,1\n"
                    "  sdlf train --data text:book.txt --net char_gpt --optimizer adamw\n",
    };
    switch (arguments_read(&s->given, &usage, count, words, &s->set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    if (count == 0) {
        printf("%sLearning %s with %s for %" PRId64 " epochs; 'sdlf train --help' lists what can be chosen.%s\n",
               terminal_escape(&s->out, TERMINAL_DIM), s->set.data, s->set.net, s->set.training.epochs,
               terminal_escape(&s->out, TERMINAL_PLAIN));
    }
    sdlf_status status =
        ranks_check(&s->set.ranks, &s->given, execution_of_devices(&s->set.execution), &s->set.execution.choice);
    if (status != SDLF_OK) return command_conclude("train", status);
    return ranks_run(&show, sizeof show, offsetof(showing, session.set.ranks), train_and_release);
}

const command train_command = {.name = "train", .summary = "train a network and keep its weights", .run = run};
