/* SPDX-License-Identifier: MIT */
/* The sdlf program: dispatches to a subcommand. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sdlf/suggest.h>
#include <sdlf/version.h>

#include "apps/arguments/arguments.h"
#include "apps/arguments/config.h"
#include "apps/command.h"
#include "apps/info/info.h"
#include "apps/output/json.h"
#include "apps/output/terminal.h"
#include "apps/system/interrupt.h"

static const command *const commands[] = {
    &train_command,    &eval_command,   &predict_command, &run_command,    &export_command,   &info_command,
    &bench_command,    &gcn_command,    &parity_command,  &doctor_command, &data_command,     &compare_command,
    &quantize_command, &report_command, &sweep_command,   &serve_command,  &generate_command,
};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static void print_help(FILE *file)
{
    terminal out = terminal_of(file);
    const char *bold = terminal_escape(&out, TERMINAL_BOLD), *plain = terminal_escape(&out, TERMINAL_PLAIN);
    fprintf(file, "SDLF, the Simple Deep Learning Framework, version %s\n\n", SDLF_VERSION);
    fprintf(file, "%sUsage:%s sdlf COMMAND [options]\n\n", bold, plain);
    for (int i = 0; i < COMMAND_COUNT; i++) {
        fprintf(file, "  %s%-8s%s  %s\n", bold, commands[i]->name, plain, commands[i]->summary);
    }
    fputs("\n'sdlf COMMAND --help' lists a command's options, 'sdlf --version [--json]' the version.\n"
          "\nA first run, without any file:\n"
          "  sdlf train                                  keeps simple_cnn.safetensors\n"
          "  sdlf eval --weights simple_cnn.safetensors  says how good it is\n"
          "  sdlf predict --weights simple_cnn.safetensors --draw seven.png\n"
          "\nExit codes:\n"
          "  0    done\n"
          "  1    it failed: the last line on standard error says why\n"
          "  2    usage error: an invalid option, name or combination\n"
          "  3    parity: the results differ\n"
          "  128+ stopped by a signal: 128 plus its number, 130 for Ctrl-C\n",
          file);
}

/* Prints the page sdlf(1); the commands have pages of their own. */
static void print_manual(void)
{
    puts(".TH SDLF 1 \"\" \"sdlf " SDLF_VERSION
         "\" \"SDLF\"\n.SH NAME\nsdlf \\- train, time and run neural networks\n.SH SYNOPSIS\n"
         ".B sdlf\nCOMMAND [options]\n.SH COMMANDS");
    for (int i = 0; i < COMMAND_COUNT; i++)
        printf(".TP\n.BR sdlf\\-%s (1)\n%s\n", commands[i]->name, commands[i]->summary);
    puts(".SH DESCRIPTION\nA first run, without any file:\n.PP\n.nf\n"
         "  sdlf train                                      keeps simple_cnn.safetensors\n"
         "  sdlf eval \\-\\-weights simple_cnn.safetensors      says how good it is\n.fi\n.PP\n"
         "Options are written \\-\\-name value or \\-\\-name=value; if given twice, the last value counts. @FILE "
         "reads options from a file.");
}

static const command *find_command(const char *name)
{
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    }
    return NULL;
}

static int unknown_command(const char *name)
{
    sdlf_suggestion s = {.word = name};
    for (int i = 0; i < COMMAND_COUNT; i++) sdlf_suggest(&s, commands[i]->name);
    sdlf_suggest(&s, "--help");
    sdlf_suggest(&s, "--version");
    terminal_error(NULL, "there is no %s '%s'%s", name[0] == '-' ? "option" : "command", name,
                   sdlf_suggestion_print(&s).text);
    fputs("'sdlf --help' lists the commands.\n", stderr);
    return COMMAND_USAGE;
}

/* "help bench conv" is "bench conv --help". words[0] is the command. */
static int show_help(const command *chosen, int count, char **words)
{
    for (int i = 1; i < count; i++) words[i - 1] = words[i];
    words[count - 1] = (char[]){"--help"};
    return chosen->run(count, words);
}

/* "sdlf complete WORD...": prints completions of the last word, for shells. */
static int complete(int count, char **words)
{
    const command *chosen = count > 1 ? find_command(words[0]) : NULL;
    if (!chosen) {
        const char *begun = count > 0 ? words[0] : "";
        for (int i = 0; i < COMMAND_COUNT && count < 2; i++)
            if (strncmp(commands[i]->name, begun, strlen(begun)) == 0)
                printf("%s\t%s\n", commands[i]->name, commands[i]->summary);
        return COMMAND_OK;
    }
    const char *name;
    for (int i = 0; chosen->part && (name = chosen->part(i)); i++) {
        if (count == 2 && strncmp(name, words[1], strlen(words[1])) == 0) printf("%s\t\n", name);
        if (count == 2 || strcmp(name, words[1]) != 0) continue;
        words[0] = words[1];
        words[1] = (char[]){"--complete"};
        return chosen->run(count, words);
    }
    words[0] = (char[]){"--complete"};
    return chosen->run(count, words);
}

static int run(int count, char **words)
{
    if (count < 2) {
        print_help(stderr);
        return COMMAND_USAGE;
    }
    const char *word = words[1];
    if (strcmp(word, "--version") == 0 && count == 3 && strcmp(words[2], "--json") == 0)
        return command_conclude(NULL, json_print_result(info_version_json()));
    if (strcmp(word, "--version") == 0) {
        puts("sdlf " SDLF_VERSION);
        return COMMAND_OK;
    }
    if (strcmp(word, "--help=man") == 0) {
        print_manual();
        return COMMAND_OK;
    }
    if (strcmp(word, "complete") == 0) return complete(count - 2, words + 2);
    bool help = strcmp(word, "help") == 0;
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || (help && count == 2)) {
        print_help(stdout);
        return COMMAND_OK;
    }
    const command *chosen = find_command(help ? words[2] : word);
    if (!chosen) return unknown_command(help ? words[2] : word);
    if (help) return show_help(chosen, count - 2, words + 2);
    config_words expanded;
    sdlf_status status = config_expand(&expanded, count, words, 2);
    int code =
        status == SDLF_OK ? chosen->run(expanded.count - 2, expanded.word + 2) : command_conclude(chosen->name, status);
    config_release(&expanded);
    return code;
}

/* Without this, the first file opened would take the descriptor of a closed standard stream and receive its output: a
 * placeholder that fails on use takes the descriptor instead. */
static void hold_closed_streams(void)
{
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++) {
        if (fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
        if (open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream) return;
    }
}

int main(int count, char **words)
{
    hold_closed_streams();
    json_watch_memory();
    signal(SIGXFSZ, SIG_IGN); /* reaching the file size limit is an error to report, not to die from */
    int code = run(count, words);
    if ((fflush(stdout) == 0 && !ferror(stdout)) || code != COMMAND_OK) return code;
    if (interrupt_signal() != 0) return COMMAND_SIGNAL + interrupt_signal(); /* the last output was not read */
    terminal_error(NULL, "the output could not be written");
    return COMMAND_FAILED;
}
