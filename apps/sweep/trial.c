/* SPDX-License-Identifier: MIT */
/* See trial.h. */
#include "apps/sweep/trial.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/arguments/config.h"
#include "apps/command.h"
#include "apps/runs/run_log.h"
#include "apps/system/interrupt.h"
#include "apps/system/memory.h"
#include "apps/system/portable.h"
#include "apps/train/usage.h"

static void add(trial *t, char *word)
{
    t->words = memory_resize(t->words, (size_t)(t->count + 2) * sizeof *t->words);
    t->words[t->count++] = word;
    t->words[t->count] = NULL;
}

void trial_add(trial *t, const char *option, const char *value)
{
    add(t, value ? memory_print("--%s=%s", option, value) : memory_print("--%s", option));
}

void trial_begin(trial *t, const char *const *words, int count, const char *log)
{
    *t = (trial){.log = memory_copy_text(log)};
    add(t, memory_copy_text("sdlf"));
    add(t, memory_copy_text("train"));
    for (int i = 0; i < count; i++) add(t, memory_copy_text(words[i]));
    trial_add(t, "log", log);
    trial_add(t, "no-save", NULL);
    trial_add(t, "quiet", NULL);
}

void trial_release(trial *t)
{
    for (int i = 0; i < t->count; i++) free(t->words[i]);
    free(t->words);
    free(t->log);
    *t = (trial){.log = NULL};
}

sdlf_status trial_check(const trial *t)
{
    config_words expanded;
    sdlf_status status = config_expand(&expanded, t->count, t->words, 2);
    if (status == SDLF_OK && train_usage_check(expanded.count - 2, expanded.word + 2) == ARGUMENTS_WRONG)
        status = sdlf_fail(SDLF_ERROR_ARGUMENT, "no run was made: --try and the words after '--' must be options of "
                                                "'sdlf train'");
    config_release(&expanded);
    return status;
}

bool trial_is_done(const trial *t)
{
    run_log run;
    bool read = run_log_read(&run, t->log) == SDLF_OK;
    const char *status = read ? json_string_value(json_object_get(run.end, "status")) : NULL;
    bool done = status && strcmp(status, sdlf_status_name(SDLF_ERROR_INTERRUPTED)) != 0;
    run_log_release(&run);
    return done;
}

sdlf_status trial_run(trial *t)
{
    pid_t child = fork();
    if (child < 0) return sdlf_fail(SDLF_ERROR_IO, "cannot start a training run: %s", strerror(errno));
    if (child == 0) {
        system_execute_self(t->words);
        _exit(COMMAND_FAILED);
    }
    int how = 0;
    while (waitpid(child, &how, 0) < 0 && errno == EINTR)
        continue; /* the child gets the signal too, and saves its work */
    t->code = WIFEXITED(how) ? WEXITSTATUS(how) : COMMAND_SIGNAL + WTERMSIG(how);
    if (t->code == COMMAND_USAGE)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "the training run was refused; the words after '--' go to 'sdlf train'");
    if (t->code > COMMAND_SIGNAL || interrupt_signal() != 0)
        return sdlf_fail(SDLF_ERROR_INTERRUPTED,
                         "a training run was ended by a signal; the same command continues with the others");
    return SDLF_OK;
}
