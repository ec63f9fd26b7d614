/* SPDX-License-Identifier: MIT */
/* See curves.h. The trainer's thread adds lines; the server's thread renders them as pages. */
#include "apps/train/curves.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "apps/output/number.h"
#include "apps/output/terminal.h"
#include "apps/output/xml.h"
#include "apps/report/page.h"
#include "apps/system/interrupt.h"
#include "apps/system/memory.h"

enum { STEPS_MOST = 800 };

struct training_curves {
    http_server *server;
    sdlf_trainer *trainer;
    const char *unsaved;
    atomic_bool saving, over;
    pthread_mutex_t lock; /* of the members below */
    run_log run;
    int64_t seen, every; /* steps; every `every`-th line is kept */
    sdlf_progress now;
    char *note; /* the result of a button */
    int notes;  /* the count of notes: one may be repeated */
};

static void set_note(training_curves *c, char *note)
{
    free(c->note);
    c->note = note;
    c->notes++;
}

/* ---- the trainer's thread ---- */

/* Too many lines for a page: drops every other one, and of future ones, too. */
static void thin(training_curves *c)
{
    json_t *kept = json_array();
    for (size_t i = 1; i < json_array_size(c->run.steps); i += 2)
        json_array_append(kept, json_array_get(c->run.steps, i));
    json_decref(c->run.steps);
    c->run.steps = kept;
    c->every *= 2;
}

void training_curves_progress(training_curves *c, const sdlf_progress *now)
{
    if (!c) return;
    pthread_mutex_lock(&c->lock);
    c->now = *now;
    if (now->event == SDLF_PROGRESS_EPOCH) {
        json_array_append_new(c->run.epochs, training_log_line(now));
    } else if (now->event == SDLF_PROGRESS_UNSAVED) {
        set_note(c, memory_print("Not saved: %s.", sdlf_error_message()));
    } else if (++c->seen % c->every == 0) {
        json_array_append_new(c->run.steps, training_log_line(now));
        if (json_array_size(c->run.steps) > STEPS_MOST) thin(c);
    }
    pthread_mutex_unlock(&c->lock);
}

bool training_curves_go_on(training_curves *c, sdlf_status status)
{
    if (!c || c->unsaved) return false;
    bool asked = atomic_exchange(&c->saving, false); /* two presses may have led to one save and one more stop */
    bool saved = status == SDLF_ERROR_INTERRUPTED, goes_on = saved || (asked && status == SDLF_ERROR_IO);
    if (goes_on && !saved) terminal_warning("train", "%s; training goes on", sdlf_error_message());
    pthread_mutex_lock(&c->lock);
    if (goes_on)
        set_note(c, saved ? memory_print("Saved after step %" PRId64 " of epoch %d.", c->now.step, c->now.epoch)
                          : memory_print("Not saved: %s. Training goes on.", sdlf_error_message()));
    pthread_mutex_unlock(&c->lock);
    return goes_on && interrupt_signal() == 0;
}

void training_curves_end(training_curves *c)
{
    if (c) atomic_store(&c->over, true);
}

/* ---- the server's thread ---- */

static void print_now(FILE *file, const training_curves *c)
{
    const sdlf_progress *now = &c->now;
    fputs("<p id=\"now\">", file);
    if (now->epoch == 0) fputs("The first step is running.", file);
    if (now->epoch > 0) {
        fprintf(file, "Epoch %d of %d, step %" PRId64 " of %" PRId64 ", loss %s", now->epoch, now->epochs, now->step,
                now->steps, number_loss(now->loss, 4).text);
        if (isfinite(now->accuracy)) fprintf(file, ", accuracy %s", number_percent(now->accuracy, 2).text);
        if (now->seconds > 0)
            fprintf(file, ", %s samples a second", number_fixed((double)now->samples / now->seconds, 0).text);
        fputs(atomic_load(&c->over) ? ". Training has ended." : ".", file);
    }
    fprintf(file, "</p>\n<p id=\"note\" data-number=\"%d\">", c->notes);
    if (c->note) xml_text(file, c->note);
    fputs("</p>\n", file);
}

static void print_button(FILE *file, const char *name, const char *text, const char *refused)
{
    fprintf(file, "<button type=\"button\" id=\"%s\"%s>%s</button> ", name, refused ? " disabled" : "", text);
}

static void print_shell(FILE *file, const training_curves *c, const page *p)
{
    const char *network = json_string_value(json_object_get(c->run.start, "network"));
    const char *data = json_string_value(json_object_get(c->run.start, "data"));
    page_print_head(file, network, "training");
    fputs("<body>\n<header><h1>", file);
    xml_text(file, network);
    fputs("</h1><p class=\"dim\">trains on ", file);
    xml_text(file, data);
    fputs("</p></header>\n<main>\n<p>", file);
    print_button(file, "save", "Save", c->unsaved);
    print_button(file, "stop", "Stop", NULL);
    fputs("<span id=\"said\" role=\"status\">", file);
    if (c->unsaved) xml_text(file, c->unsaved);
    fputs("</span></p>\n<div id=\"live\"></div>\n", file);
    page_print_options(file, p);
    fputs("</main><script src=\"curves.js\"></script></body></html>\n", file);
}

static void answer_page(http_answer *answer, training_curves *c, bool whole)
{
    memory_text text;
    const page p = {.runs = &c->run, .run_count = 1, .within_epochs = true};
    if (!memory_text_open(&text)) memory_exhausted();
    pthread_mutex_lock(&c->lock);
    if (whole) {
        print_shell(text.file, c, &p);
    } else {
        print_now(text.file, c);
        page_print_figures(text.file, &p);
        page_print_curves(text.file, &p);
    }
    pthread_mutex_unlock(&c->lock);
    if (!memory_text_close(&text)) memory_exhausted();
    *answer =
        (http_answer){.code = 200, .type = "text/html; charset=utf-8", .body = text.text, .length = strlen(text.text)};
}

/* Handles one of the buttons: the first press counts. */
static void answer_button(http_answer *answer, training_curves *c, bool save)
{
    static const char plain[] = "text/plain; charset=utf-8";
    if (save && c->unsaved) {
        http_answer_text(answer, 409, plain, c->unsaved);
    } else if (atomic_load(&c->over) || interrupt_signal() != 0) {
        http_answer_text(answer, 409, plain, "Training has ended, or is about to.");
    } else if (save) {
        if (!atomic_exchange(&c->saving, true)) sdlf_trainer_stop(c->trainer);
        http_answer_text(answer, 200, plain, "Saving after the current step.");
    } else {
        interrupt_ask();
        sdlf_trainer_stop(c->trainer);
        http_answer_text(answer, 200, plain, "Stopping after the current step.");
    }
}

void training_curves_answer(http_answer *answer, const http_request *request, void *user)
{
    training_curves *c = user;
    bool save = strcmp(request->path, "save") == 0;
    if (request->post) {
        if (save || strcmp(request->path, "stop") == 0) answer_button(answer, c, save);
    } else if (request->path[0] == '\0') {
        answer_page(answer, c, true);
    } else if (strcmp(request->path, "live") == 0) {
        answer_page(answer, c, false);
    } else if (strcmp(request->path, "curves.js") == 0) {
        http_answer_text(answer, 200, "text/javascript; charset=utf-8", train_curves_js);
    }
}

/* ---- */

sdlf_status training_curves_open(training_curves **curves, int port, sdlf_trainer *trainer,
                                 const training_log_start *start, const char *unsaved)
{
    training_curves *c = *curves = memory_allocate(sizeof *c);
    *c = (training_curves){.trainer = trainer, .unsaved = unsaved, .every = 1};
    pthread_mutex_init(&c->lock, NULL);
    c->run = (run_log){.name = memory_copy_text(sdlf_model_name(start->model)),
                       .start = training_log_start_json(start),
                       .steps = json_array(),
                       .epochs = json_array()};
    sdlf_status status = http_open(&c->server, port, training_curves_answer, c);
    if (status == SDLF_OK) return SDLF_OK;
    training_curves_close(c);
    *curves = NULL;
    return status;
}

void training_curves_close(training_curves *c)
{
    if (!c) return;
    http_close(c->server);
    run_log_release(&c->run);
    pthread_mutex_destroy(&c->lock);
    free(c->note);
    free(c);
}

void training_curves_print_address(const training_curves *c, FILE *file)
{
    fprintf(file, "http://127.0.0.1:%d/%s/", http_port(c->server), http_token(c->server));
}
