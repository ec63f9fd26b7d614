/* SPDX-License-Identifier: MIT */
/* sdlf train: trains a network on labelled data and writes its weights. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "apps/arguments/effective.h"
#include "apps/command.h"
#include "apps/input/labels.h"
#include "apps/output/evaluation.h"
#include "apps/output/file.h"
#include "apps/output/number.h"
#include "apps/output/quote.h"
#include "apps/output/report.h"
#include "apps/output/trainable.h"
#include "apps/system/interrupt.h"
#include "apps/train/progress.h"
#include "apps/train/session.h"
#include "apps/train/usage.h"

/* One run and its display. */
typedef struct showing {
    train_session session;
    progress progress;
    double seconds, test_seconds; /* of the epochs of this run */
    int epochs;                   /* their number */
    int kept, kept_before; /* the epoch of the last checkpoint that is kept, and of the previous one; 0: none yet */
    sdlf_progress last;    /* the last progress received */
} showing;

static void on_progress(const sdlf_progress *now, void *user)
{
    showing *show = user;
    show->last = *now;
    if (now->event == SDLF_PROGRESS_EPOCH) {
        show->epochs++;
        show->kept_before = show->kept;
        if (show->session.set.keep == SDLF_KEEP_LAST || now->best)
            show->kept = now->epoch; /* unless another event follows */
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
static void print_saved(const train_session *s, bool finished)
{
    report_label(&s->out, "saved");
    int64_t size = output_file_size(s->out_path);
    if (size == 0) { /* a device or a pipe, which cannot be read back */
        puts(s->out_path);
        return;
    }
    char *name = quote_word(s->out_path);
    printf("%s (%s); continue with --resume %s", s->out_path, number_bytes(size).text, name);
    if (finished) printf(" --epochs %d", 2 * s->options.epochs);
    putchar('\n');
    free(name);
}

/* If epochs were compared: prints the best one, and whether that ended the training. */
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
        if (!show->progress.sequences || s->set.confusion) /* a table of all characters would be long */
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

/* The run completed. */
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
    /* an update that diverged shows in the loss of the next step, and the last update has none */
    const bool astray = status == SDLF_OK && ((evaluated && isnan(evaluation.loss)) || !trainable_is_finite(s->model));
    if (astray)
        status = sdlf_fail(
            SDLF_ERROR_NUMERIC,
            "training diverged in the last step: there are %s that are not finite; a smaller --learning-rate may help",
            evaluated && isnan(evaluation.loss) ? "scores" : "weights");
    training_log_end(&s->log, status, evaluated ? &evaluation : NULL);
    tensorboard_log_end(&s->board, status, evaluated ? &evaluation : NULL);
    if (!s->set.quiet) {
        print_summary(show, evaluated ? &evaluation : NULL);
        bool done = sdlf_model_training_state(s->model)->epoch == s->options.epochs;
        if (s->out_path) print_saved(s, done);
    }
    sdlf_evaluation_release(&evaluation);
    if (astray && tells) terminal_error("train", "%s", sdlf_error_message());
    return status == SDLF_OK ? COMMAND_OK : COMMAND_FAILED;
}

/* A signal to this process, or to another rank, stopped the run; the trainer has written its checkpoint. */
static int stopped(const showing *show)
{
    const train_session *s = &show->session;
    bool here = interrupt_signal() != 0;
    if (!s->set.quiet) {
        printf("stopped by %s in epoch %d of %d, after step %" PRId64 " of %" PRId64 "\n",
               here ? interrupt_name() : "a signal to another rank", show->last.epoch, show->last.epochs,
               show->last.step, show->last.steps);
        if (s->out_path) print_saved(s, false);
        if (!s->out_path) puts("nothing was kept, as --no-save asks");
    }
    return COMMAND_SIGNAL + (here ? interrupt_signal() : SIGINT);
}

/* The run failed: prints why, and which checkpoint remains. Directly after the last epoch, its checkpoint could not be
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

/* Among several ranks, one reports an error common to all; an error of one rank is reported there and ends all. */
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

/* --dry-run: prints every option, and the run as one command with the options of the network and the checkpoint. */
static int print_command(train_session *s)
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
    if (s->set.dry_run) return leads ? print_command(s) : COMMAND_OK;
    show->progress = progress_begin(&s->out, s->test != NULL);
    bool several = s->train->labels.dtype == SDLF_INT32 && s->train->labels.shape.rank > 1;
    show->progress.sequences = several && s->train->labels.shape.rank == 2;
    show->progress.unit = show->progress.sequences ? "tokens" : several ? "pixels" : "samples";
    show->progress.smoothed = s->options.label_smoothing > 0 || s->options.class_weights[0];
    /* with several threads, the first one's trainer is stopped, and informs the others */
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
    train_usage usage;
    train_usage_make(&usage, &s->optimizers);
    switch (arguments_read(&s->given, &usage.usage, count, words, &s->set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    if (count == 0) {
        printf("%sLearning %s with %s for %" PRId64 " epochs; 'sdlf train --help' lists the options.%s\n",
               terminal_escape(&s->out, TERMINAL_DIM), s->set.data, s->set.net, s->set.training.epochs,
               terminal_escape(&s->out, TERMINAL_PLAIN));
    }
    sdlf_status status =
        ranks_check(&s->set.ranks, &s->given, execution_of_devices(&s->set.execution), &s->set.execution.choice);
    if (status != SDLF_OK) return command_conclude("train", status);
    return ranks_run(&show, sizeof show, offsetof(showing, session.set.ranks), train_and_release);
}

const command train_command = {.name = "train", .summary = "train a network and keep its weights", .run = run};
