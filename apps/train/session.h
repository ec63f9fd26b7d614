/* SPDX-License-Identifier: MIT */
/* A training run, from the command line to a trainer that is ready to run. */
#ifndef SDLF_APPS_TRAIN_SESSION_H
#define SDLF_APPS_TRAIN_SESSION_H

#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/arguments/execution.h"
#include "apps/arguments/optimizer.h"
#include "apps/arguments/ranks.h"
#include "apps/output/terminal.h"
#include "apps/system/machine.h"
#include "apps/train/curves.h"
#include "apps/train/log.h"
#include "apps/train/options.h"
#include "apps/train/tensorboard.h"

typedef struct train_settings {
    argument_list dimensions; /* of an ONNX file */
    const char *data, *test_data, *size, *net, *from, *resume, *out, *log, *tensorboard, *freeze, *unfreeze;
    bool serve;
    int64_t port;
    bool strict, no_test, no_save, confusion, quiet, histograms, gradient_histograms, dry_run;
    int keep;         /* sdlf_keep */
    int64_t patience; /* epochs; 0: without end */
    int normalize;    /* preprocess_kind; PREPROCESS_AUTO: as measured */
    int64_t log_steps, device_data, workers, cache;
    rank_settings ranks;
    int gradient_dtype; /* of train_gradient_dtypes */
    bool shard_states;
    training training;
    execution execution;
    optimizer_settings optimizer;
} train_settings;

/* Everything that one run needs. */
typedef struct train_session {
    train_settings set;
    arguments given;
    optimizer_rows optimizers;
    terminal out;
    machine machine;
    sdlf_model *model;
    bool new_head;     /* its last layer was replaced for the classes of the data */
    sdlf_shape sample; /* (C,H,W) that images are resized to; a scalar: they keep their size */
    sdlf_dataset *train, *test;
    sdlf_trainer_options options;
    /* Owned; the network's own training options, "--batch 32 ..."; NULL: it has none, or an optimizer was given. */
    char *own;
    sdlf_trainer *trainer;
    char *out_path; /* owned; NULL: nothing is kept */
    training_log log;
    tensorboard_log board;
    training_curves *curves;  /* NULL: no page is served */
    sdlf_communicator *ranks; /* NULL: there is one */
    bool met;                 /* all ranks have exchanged whether they are ready */
} train_session;

extern const char *const train_gradient_dtypes[];

/* Open and check everything that `set` and `given` specify, and create the trainer, whose callback is in `options`. The
 * first lines of output are printed on the way, so that a user sees what takes time. Whatever the result, release the
 * session afterwards. */
sdlf_status train_session_prepare(train_session *session);
void train_session_release(train_session *session);

#endif
