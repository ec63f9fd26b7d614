/* SPDX-License-Identifier: MIT */
/* The live page of a training run (--serve): served on this machine, with the run's curves, and buttons that save and
 * stop it. */
#ifndef SDLF_APPS_TRAIN_CURVES_H
#define SDLF_APPS_TRAIN_CURVES_H

#include <stdbool.h>

#include <sdlf/trainer.h>

#include "apps/serve/http.h"
#include "apps/train/log.h"

typedef struct training_curves training_curves;

/* Serve the page on a port, or, for 0, on a free one. `unsaved` says why the page cannot save; NULL: it can. The
 * trainer, and `unsaved`, are borrowed until training_curves_close. Errors: those of http_open. */
sdlf_status training_curves_open(training_curves **curves, int port, sdlf_trainer *trainer,
                                 const training_log_start *start, const char *unsaved);
void training_curves_close(training_curves *curves); /* accepts NULL */

/* "http://127.0.0.1:8000/TOKEN/" */
void training_curves_print_address(const training_curves *curves, FILE *file);

/* Pass on what a trainer's callback receives. Accepts NULL, as all below. */
void training_curves_progress(training_curves *curves, const sdlf_progress *now);

/* Call after sdlf_trainer_run returns: true if the page's save button stopped it, so that it should run again. Shows
 * the result of saving. */
bool training_curves_go_on(training_curves *curves, sdlf_status status);

/* From now on there is nothing to stop: the buttons' requests are refused. */
void training_curves_end(training_curves *curves);

/* Answers the server's requests; `user` is a training_curves. */
http_answerer training_curves_answer;

extern const char train_curves_js[];

#endif
