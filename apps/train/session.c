/* SPDX-License-Identifier: MIT */
/* A training run, from the command line to a trainer that is ready to run. */
#include "apps/train/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/input/samples.h"
#include "apps/output/file.h"
#include "apps/output/quote.h"
#include "apps/output/report.h"
#include "apps/output/trainable.h"
#include "apps/pictures/preprocess.h"
#include "apps/system/memory.h"
#include "apps/train/frozen.h"
#include "apps/train/recipe.h"
#include "apps/train/session_model.h"

const char *const train_gradient_dtypes[] = {"float32", "bfloat16", "float16", NULL};

/* Sets the dtype of the gradients' all-reduce: the requested one, or the checkpoint's. */
static void take_gradient_dtype(train_session *s)
{
    int *chosen = &s->set.gradient_dtype;
    if (!s->options.resume || arguments_given(&s->given, "gradient-dtype")) {
        s->options.gradient_dtype = *chosen == 0 ? SDLF_NONE : sdlf_dtype_from_name(train_gradient_dtypes[*chosen]);
        return;
    }
    *chosen = s->options.gradient_dtype == SDLF_NONE ? 0 : s->options.gradient_dtype == SDLF_BFLOAT16 ? 1 : 2;
}

/* "simple_cnn" becomes "simple_cnn.safetensors"; ASCII characters that are unusual in file names become '_'. */
static char *default_path(const sdlf_model *model)
{
    char *path = memory_print("%s.safetensors", sdlf_model_name(model));
    for (char *c = path; *c; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
        if (!plain && !((unsigned char)*c & 0x80) && !strchr("._-", *c)) *c = '_';
    }
    return path;
}

/* Chooses the output path; no file of value is overwritten unless its name was given. */
static sdlf_status choose_output(train_session *s)
{
    const train_settings *set = &s->set;
    if (set->no_save) return SDLF_OK;
    const char *named = set->out ? set->out : set->resume;
    s->out_path = named ? memory_copy_text(named) : default_path(s->model);
    if (s->ranks != NULL && s->ranks->rank > 0) return SDLF_OK; /* rank 0 writes it, on its machine */
    if (!named && output_file_size(s->out_path) > 0) {
        char *name = quote_word(s->out_path);
        sdlf_status status = sdlf_fail(SDLF_ERROR_ARGUMENT,
                                       "%s exists; continue from it with --resume %s, or overwrite it with --out %s",
                                       s->out_path, name, name);
        free(name);
        return status;
    }
    return set->out ? output_file_check_weights(s->out_path) : output_file_check(s->out_path);
}

static sdlf_status collect_options(train_session *s)
{
    bool resumed = s->options.resume;
    sdlf_status status = training_to_trainer(&s->set.training, &s->given, resumed, &s->options);
    if (status == SDLF_OK) {
        status = optimizer_from_arguments(&s->options.optimizer, resumed, &s->optimizers, &s->set.optimizer, &s->given);
    }
    if (resumed && !arguments_given(&s->given, "math")) s->set.execution.choice.math = (int)s->options.math;
    if (status == SDLF_OK) status = execution_complete(&s->set.execution, s->model);
    if (status != SDLF_OK) return status;
    ranks_take_place(&s->set.ranks, s->ranks, &s->given, execution_of_devices(&s->set.execution),
                     &s->set.execution.choice);
    execution_to_trainer(&s->set.execution, &s->options);
    take_gradient_dtype(s);
    s->options.shard_states = s->set.shard_states;
    if (resumed && !arguments_given(&s->given, "keep")) s->set.keep = (int)s->options.keep;
    if (resumed && !arguments_given(&s->given, "patience")) s->set.patience = s->options.patience;
    s->options.keep = (sdlf_keep)s->set.keep;
    s->options.patience = (int)s->set.patience;
    if (arguments_given(&s->given, "device-data")) s->options.device_data = s->set.device_data * 1000000;
    if (s->options.schedule.peak == 0)
        s->options.schedule.peak = sdlf_optimizer_rate(&s->options.optimizer, s->options.batch);
    status = sdlf_schedule_complete(&s->options.schedule);
    if (status != SDLF_OK) return status;
    status = recipe_apply(s);
    if (status != SDLF_OK) return status;
    const sdlf_training_state *state = sdlf_model_training_state(s->model);
    if (resumed && state->epoch >= s->options.epochs) {
        const char *plural = state->epoch == 1 ? "" : "s";
        if (state->epoch < state->epochs)
            return sdlf_fail(SDLF_ERROR_ARGUMENT,
                             "%s has done %d epoch%s of its %d; use --epochs %d, or leave it out, to continue",
                             s->set.resume, state->epoch, plural, state->epochs, state->epochs);
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s has done its %d epoch%s; --epochs %d would add as many again",
                         s->set.resume, state->epoch, plural, 2 * state->epoch);
    }
    return SDLF_OK;
}

/* Opens a data set, or, before any long work, only checks that it exists. */
static sdlf_status take_data(const train_session *s, sdlf_dataset **dataset, const char *name, sdlf_split split,
                             bool open)
{
    if (!open) return sdlf_dataset_check(name, split);
    return samples_open(dataset,
                        &(samples_request){.set = name,
                                           .split = split,
                                           .whole = session_tests_others(s),
                                           .sample = s->sample,
                                           .model = s->model,
                                           .strict = s->set.strict,
                                           .targets = session_has_targets(s),
                                           .workers = ranks_workers(&s->set.ranks, s->set.workers),
                                           .cache = s->set.cache,
                                           .command = s->ranks != NULL && s->ranks->rank > 0 ? NULL : "train"});
}

/* Applies --normalize, unless the network already specifies its normalisation. */
static sdlf_status normalize(train_session *s)
{
    const char *file = s->set.from ? s->set.from : s->set.resume;
    sdlf_dataset_normalize_for(s->train, s->model);
    if (s->set.normalize == PREPROCESS_AUTO) return SDLF_OK;
    bool characters = s->train->labels.shape.rank == 2 && !session_has_targets(s);
    bool tokens = sdlf_model_takes_tokens(s->model) && s->set.normalize != PREPROCESS_NONE;
    if (characters || tokens)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--normalize %s: samples are %s, which have no brightness",
                         preprocess_kind_names[s->set.normalize], characters ? "characters" : "tokens");
    if (sdlf_model_normalization(s->model)->known)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--normalize %s: %s says how its samples are normalised",
                         preprocess_kind_names[s->set.normalize], file ? file : sdlf_model_name(s->model));
    sdlf_dataset *data = s->train;
    bool one = data->samples.shape.rank == 3 || data->samples.shape.dim[1] > SDLF_NORMALIZED_CHANNELS;
    sdlf_status status = preprocess_normalization(&data->channels, (preprocess_kind)s->set.normalize,
                                                  one ? 1 : data->samples.shape.dim[1]);
    if (status != SDLF_OK || !one) return sdlf_fail_context(status, "--normalize");
    data->mean = data->channels.mean[0];
    data->scale = data->channels.scale[0];
    data->channels.count = 0;
    return SDLF_OK;
}

/* Rejects augmentation of samples that are not images. */
static sdlf_status check_augmentation(const train_session *s)
{
    sdlf_shape samples = s->train->samples.shape;
    for (const argument *a = augmentation_arguments; samples.rank != 4 && (a->name || a->type); a++) {
        if (a->type == ARGUMENT_HEADING || strncmp(a->name, "augment-", 8) != 0) continue;
        if (arguments_given(&s->given, a->name))
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--%s changes pictures, but samples of %s are %s", a->name,
                             s->train->name, sdlf_shape_print(sdlf_shape_without(samples, 0)).text);
    }
    return SDLF_OK;
}

/* Finds the data: a checkpoint names its data set, and --data overrides it. */
static sdlf_status find_data(train_session *s, bool open)
{
    const train_settings *set = &s->set;
    const sdlf_training_state *state = sdlf_model_training_state(s->model);
    bool from_state = s->options.resume && !arguments_given(&s->given, "data") && state->data[0];
    const char *data = from_state ? state->data : set->data;
    s->options.data = s->set.data = data;
    sdlf_status status = take_data(s, &s->train, data, SDLF_SPLIT_TRAIN, open);
    if (status == SDLF_OK && !set->no_test) {
        status = take_data(s, &s->test, set->test_data ? set->test_data : data, SDLF_SPLIT_TEST, open);
        status = sdlf_fail_context(status, "what is tested on (--no-test does without)");
    }
    if (from_state) status = sdlf_fail_context(status, "the data of %s (--data names another)", set->resume);
    return status;
}

/* Opens the calculators, for the header and for the first check of memory: whether a plan of this rank's part of a
 * batch fits. */
static sdlf_status open_machine(train_session *s, sdlf_plan_options *plan)
{
    int64_t share = sdlf_communicator_share(s->ranks, s->options.batch);
    *plan = (sdlf_plan_options){.batch = share > 0 ? share : 1,
                                .mode = SDLF_TRAIN,
                                .optimizer = s->options.optimizer,
                                .loss = s->options.loss,
                                .clip_norm = s->options.clip_norm,
                                .loss_scale = s->options.loss_scale != 1 ? s->options.loss_scale : 0};
    sdlf_status status = execution_to_plan(&s->set.execution, &s->machine, plan);
    if (status != SDLF_OK || !arguments_given(&s->given, "device-data")) return status;
    for (int i = 0; i < s->machine.count; i++)
        if (s->machine.calculator[i]->type->device_count) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "--device-data %lld: the %s calculator has no device that could hold data",
                     (long long)s->set.device_data, s->options.forward);
}

static sdlf_status check_memory(train_session *s, const sdlf_plan_options *plan)
{
    sdlf_memory_info memory;
    sdlf_status status = sdlf_plan_measure(&memory, s->model, plan);
    if (status == SDLF_OK)
        status =
            machine_check_memory(&s->machine, memory.arena + memory.parameters + memory.states, "a smaller --batch");
    if (status == SDLF_OK && s->out_path && (s->ranks == NULL || s->ranks->rank == 0)) {
        status = output_file_check_space(s->out_path, memory.parameters + memory.states);
    }
    return status;
}

/* Notes where the data are, if not in the program's own memory. */
static void note_data_place(const sdlf_trainer *trainer, char *note, size_t size)
{
    static const char *const forms[] = {[SDLF_DATA_LOADED] = "; batches made by the host for %s",
                                        [SDLF_DATA_RESIDENT] = "; data held by %s",
                                        [SDLF_DATA_STAGED] = "; data copied to %s"};
    const char *space = SDLF_HOST_SPACE;
    sdlf_data_place place = sdlf_trainer_data_place(trainer, &space);
    size_t length = strlen(note);
    if (strcmp(space, SDLF_HOST_SPACE) != 0) snprintf(note + length, size - length, forms[place], space);
}

/* Opens the page. It saves by stopping and resuming, which works only in a single process, and only if a stop saves. */
static sdlf_status open_curves(train_session *s, const training_log_start *start)
{
    const char *unsaved = !s->out_path                           ? "Nothing is kept, as --no-save asks."
                          : s->set.keep != SDLF_KEEP_LAST        ? "The file holds the best epoch (--keep)."
                          : s->ranks && s->ranks->rank_count > 1 ? "Several processes train, and save after each epoch."
                                                                 : NULL;
    sdlf_status status = training_curves_open(&s->curves, (int)s->set.port, s->trainer, start, unsaved);
    if (status != SDLF_OK) return status;
    report_label(&s->out, "page");
    training_curves_print_address(s->curves, stdout);
    putchar('\n');
    fflush(stdout);
    return SDLF_OK;
}

static sdlf_status create_trainer(train_session *s)
{
    s->options.checkpoint = s->out_path;
    s->met = true;
    sdlf_status status = sdlf_trainer_create(&s->trainer, s->model, s->train, s->test, &s->options);
    bool leads = s->ranks == NULL || s->ranks->rank == 0;
    if (status == SDLF_OK && !s->set.dry_run && leads) status = execution_keep_choices(&s->set.execution);
    if (status != SDLF_OK) return status;
    if (!s->set.quiet) execution_warn(&s->set.execution, sdlf_trainer_plan(s->trainer), "train");
    int64_t memory = sdlf_trainer_memory(s->trainer);
    status = machine_check_memory(&s->machine, memory, "a smaller --batch");
    if (status != SDLF_OK) return status;
    if (!s->set.quiet) {
        int64_t samples = s->train->samples.shape.dim[0];
        char note[96] = ", all of it allocated now";
        note_data_place(s->trainer, note, sizeof note);
        report_network(&s->out, &(report_subject){.model = s->model,
                                                  .plan = sdlf_trainer_plan(s->trainer),
                                                  .mode = SDLF_TRAIN,
                                                  .batch = s->options.batch < samples ? s->options.batch : samples,
                                                  .memory = memory,
                                                  .note = note});
        if (s->new_head) {
            report_label(&s->out, "head");
            fprintf(s->out.file, "%s  replaced for %d %s\n",
                    sdlf_model_layer(s->model, sdlf_model_head(s->model))->name, s->train->class_count,
                    session_has_targets(s) ? "targets" : "classes");
        }
        if (s->own) {
            char *text = memory_print("%s's own %s", sdlf_model_name(s->model), s->own);
            report_label(&s->out, "with");
            report_wrapped(&s->out, text, (int)strlen("with   "));
            free(text);
        }
        if (trainable_any_frozen(s->model)) {
            report_label(&s->out, "trains");
            trainable_print(&s->out, s->model, 7);
        }
        fflush(stdout);
    }
    const training_log_start start = {.model = s->model,
                                      .train = s->train,
                                      .test = s->test,
                                      .options = &s->options,
                                      .memory = memory,
                                      .usage = s->given.usage,
                                      .own = s->own,
                                      .settings = &s->set};
    training_log_begin(&s->log, &start);
    tensorboard_log_begin(&s->board, &start);
    if (s->set.gradient_histograms) {
        sdlf_calculator *calculator = NULL;
        status = machine_open(&s->machine, s->options.forward, &calculator);
        if (status == SDLF_OK) status = tensorboard_log_gradients(&s->board, &start, calculator);
        if (status != SDLF_OK) return status;
    }
    return s->set.serve && !s->set.dry_run ? open_curves(s, &start) : SDLF_OK;
}

static sdlf_status check_contradictions(const train_session *s)
{
    const train_settings *set = &s->set;
    if (set->from && (set->resume || arguments_given(&s->given, "net")))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--from %s contains its network and cannot be combined with --%s",
                         set->from, set->resume ? "resume" : "net");
    if (set->no_save && set->out)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--out %s and --no-save contradict each other", set->out);
    if (set->no_test && (set->keep != SDLF_KEEP_LAST || set->patience > 0))
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "--no-test and --%s contradict each other: epochs are compared by their tests",
                         set->patience > 0 ? "patience" : "keep");
    if (set->no_test && set->test_data)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--test-data %s and --no-test contradict each other", set->test_data);
    if (set->confusion && (set->no_test || set->quiet))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--confusion and --%s contradict each other",
                         set->no_test ? "no-test" : "quiet");
    if (arguments_given(&s->given, "log-steps") && !set->log && !set->tensorboard)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--log-steps needs --log FILE or --tensorboard DIR");
    if (arguments_given(&s->given, "port") && !set->serve)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--port needs --serve");
    if (set->serve && set->quiet)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--serve and --quiet contradict each other: the page's address is "
                                              "printed");
    if ((set->histograms || set->gradient_histograms) && !set->tensorboard)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--%shistograms are written for TensorBoard, and need --tensorboard DIR",
                         set->histograms ? "" : "gradient-");
    static const char *const shared[] = {"sync-batch-norm", "gradient-dtype", "shard-states"};
    bool several = set->ranks.communicator != NULL || set->ranks.device_count > 1;
    for (size_t i = 0; i < sizeof shared / sizeof shared[0] && !several; i++)
        if (arguments_given(&s->given, shared[i]))
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--%s needs --devices LIST or --communicator NAME", shared[i]);
    return SDLF_OK;
}

static sdlf_status open_records(train_session *s)
{
    const train_settings *set = &s->set;
    sdlf_status status = training_log_open(&s->log, set->log, set->resume != NULL, set->log_steps);
    return status == SDLF_OK ? tensorboard_log_open(&s->board, set->tensorboard, set->log_steps, set->histograms)
                             : status;
}

/* Opens the communicator. One rank of several prints all output and writes all files. */
static sdlf_status join_ranks(train_session *s)
{
    train_settings *set = &s->set;
    sdlf_status status = ranks_open(&set->ranks, &s->ranks, execution_of_devices(&set->execution));
    s->options.communicator = s->ranks;
    if (status != SDLF_OK || s->ranks == NULL || s->ranks->rank == 0) return status;
    set->quiet = true;
    set->log = set->tensorboard = NULL;
    set->serve = false;
    return SDLF_OK;
}

sdlf_status train_session_prepare(train_session *s)
{
    sdlf_plan_options plan = {0};
    sdlf_status status = check_contradictions(s);
    if (status == SDLF_OK) status = join_ranks(s);
    if (status == SDLF_OK) status = session_open_model(s);
    if (status == SDLF_OK) status = collect_options(s);
    if (status == SDLF_OK) status = find_data(s, false);
    if (status == SDLF_OK) status = choose_output(s);
    if (status == SDLF_OK && !s->set.dry_run) status = open_records(s);
    if (status == SDLF_OK) status = open_machine(s, &plan);
    if (status == SDLF_OK) status = check_memory(s, &plan); /* from now on its parameters are known */
    if (status == SDLF_OK) status = frozen_apply(s->model, s->set.freeze, true, "--freeze");
    if (status == SDLF_OK) status = frozen_apply(s->model, s->set.unfreeze, false, "--unfreeze");
    if (status != SDLF_OK) return status;
    if (!s->set.quiet) report_header(&s->out, s->machine.calculator, s->machine.count);
    if (!s->set.quiet && s->ranks != NULL) ranks_print(&s->set.ranks, s->ranks, &s->out);
    fflush(stdout);
    status = find_data(s, true);
    if (status == SDLF_OK) status = normalize(s);
    if (status == SDLF_OK) status = check_augmentation(s);
    if (status != SDLF_OK) return status;
    if (!s->set.quiet) report_data(&s->out, s->train, s->test);
    fflush(stdout);
    return create_trainer(s);
}

void train_session_release(train_session *s)
{
    training_curves_close(s->curves);
    training_log_close(&s->log);
    tensorboard_log_close(&s->board);
    sdlf_trainer_free(s->trainer);
    machine_close(&s->machine);
    execution_release(&s->set.execution);
    sdlf_communicator_close(s->ranks);
    sdlf_dataset_free(s->train);
    sdlf_dataset_free(s->test);
    sdlf_model_free(s->model);
    free(s->out_path);
    free(s->own);
}
