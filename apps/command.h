/* SPDX-License-Identifier: MIT */
/* The subcommands and their exit codes. */
#ifndef SDLF_APPS_COMMAND_H
#define SDLF_APPS_COMMAND_H

#include <stdbool.h>

#include <sdlf/status.h>

typedef struct command {
    const char *name;
    const char *summary;                 /* one line for --help */
    int (*run)(int count, char **words); /* the words after the subcommand; returns an exit code */
    const char *(*part)(
        int index); /* names of its subcommands, such as "conv" of "bench conv"; NULL past the end. Optional */
} command;

extern const command train_command;
extern const command eval_command;
extern const command data_command;
extern const command predict_command;
extern const command info_command;
extern const command bench_command;
extern const command gcn_command;
extern const command parity_command;
extern const command doctor_command;
extern const command run_command;
extern const command export_command;
extern const command quantize_command;
extern const command compare_command;
extern const command report_command;
extern const command sweep_command;
extern const command generate_command;
extern const command serve_command;

/* Exit codes. A command interrupted by a signal returns 128 plus the signal number: 130 for Ctrl-C. COMMAND_DIFFERENT
 * is for commands that compare: the comparison completed and found a difference. */
enum { COMMAND_OK = 0, COMMAND_FAILED = 1, COMMAND_USAGE = 2, COMMAND_DIFFERENT = 3, COMMAND_SIGNAL = 128 };

/* Converts a command's status to its exit code. A failure prints the library's last message first. After a signal
 * during interrupt_waits, SDLF_OK gives that signal's code; so does SDLF_ERROR_INTERRUPTED, whose message then says
 * that there is nothing to show. */
int command_conclude(const char *name, sdlf_status status);

#endif
