/* SPDX-License-Identifier: MIT */
/* Table-driven long options: --name value or --name=value. The same rows define types, ranges, defaults and the help
 * text. An option with a letter is also accepted as -o value and -ovalue.
 *
 * A command keeps its settings in a struct and describes it:
 *
 *     static const argument table[] = {
 *         {.name = "Training", .type = ARGUMENT_HEADING},
 *         {"batch", ARGUMENT_INT, offsetof(settings, batch), "N", .minimum = 1, .maximum = 65536, .fallback = "64",
 *          .help = "samples a step"},
 *         {0},
 *     };
 *
 * Defaults are strings in command-line form, so that one parser reads both. If an option is given twice, the last value
 * counts. "--" ends the options. */
#ifndef SDLF_APPS_ARGUMENTS_ARGUMENTS_H
#define SDLF_APPS_ARGUMENTS_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum argument_type {
    ARGUMENT_HEADING, /* no option: a heading of the help text, in `name` */
    ARGUMENT_FLAG,    /* bool; takes no value */
    ARGUMENT_INT,     /* int64_t in [minimum, maximum] */
    ARGUMENT_SIZE,    /* int64_t in [minimum, maximum], bytes: 512, 64kB, 1.5GB, 64KiB */
    ARGUMENT_FLOAT,   /* double in [minimum, maximum]; the minimum itself is left out if `above` */
    ARGUMENT_TEXT,    /* const char * */
    ARGUMENT_NAME,    /* const char *, one of names(0), names(1), ... */
    ARGUMENT_CHOICE,  /* int, an index into choices */
    ARGUMENT_LIST,    /* argument_list; may be given more than once */
} argument_type;

/* What "-" stands for. Other options reject it: a file of that name is "./-". */
typedef enum argument_standard {
    ARGUMENT_NO_STANDARD = 0,
    /* Standard input, read to its end; the value is the name of a file that holds it (input/bytes.h). Once per run. */
    ARGUMENT_STANDARD_INPUT,
    ARGUMENT_STANDARD_OUTPUT, /* the value is "-" */
} argument_standard;

typedef struct argument {
    const char *name; /* "batch" for --batch; NULL ends a table */
    argument_type type;
    size_t offset;        /* of the member in the settings */
    const char *value;    /* the value's name in help: "N"; for an output "FILE.png", which fixes the extension */
    const char *fallback; /* the default, as text; NULL: the member stays zero */
    const char *help;
    double minimum, maximum;
    bool above;
    bool required;
    const char *const *choices;      /* NULL-terminated */
    const char *(*names)(int index); /* NULL past the end */
    char letter;                     /* 'o' for -o; 0: none */
    bool may_be_empty;               /* of ARGUMENT_TEXT */
    const char *alone; /* the value of an option at the end or in front of another; NULL: it must have one */
    argument_standard
        standard; /* of ARGUMENT_TEXT, and ARGUMENT_LIST, of which NAME=- is the command's to understand */
} argument;

enum { ARGUMENT_LIST_MAX = 64 };
typedef struct argument_list {
    const char *item[ARGUMENT_LIST_MAX];
    int count;
} argument_list;

/* Rows that several commands share describe a struct of their own, stored at `offset` in the command's
 * settings. */
typedef struct argument_part {
    const argument *rows; /* NULL ends the parts */
    size_t offset;
} argument_part;

/* The syntax and help text of a command. */
typedef struct command_usage {
    const char *command;  /* "train" */
    const char *synopsis; /* "[options] IMAGE..." */
    const char *text;     /* its description */
    const argument_part *parts;
    int operands_minimum, operands_maximum;
    const char *operand_name; /* "an image" */
    argument_standard operands_standard;
    void (*epilogue)(void); /* prints more help; may be NULL */
    const char *examples;   /* lines */
    const char *unknown;    /* added to the error about an unknown option; NULL: nothing */
} command_usage;

/* The parsed command line, except for the values stored in the settings. */
enum { ARGUMENTS_MAX = 128 };
typedef struct arguments {
    const command_usage *usage;
    const char **operand; /* words that are not options, in order; borrowed from argv */
    int operand_count;
    const char **from_standard; /* the value that is standard input; NULL: none */
    const char *origin;         /* FILE:LINE of the word that is read; NULL: the command line */
    bool given[ARGUMENTS_MAX];  /* by row, over all parts */
} arguments;

typedef enum arguments_outcome { ARGUMENTS_OK = 0, ARGUMENTS_HELP, ARGUMENTS_WRONG } arguments_outcome;

/* Parse words[0 .. count - 1] into `settings`, whose members are zero or already hold their defaults. The operands are
 * moved to the front of `words`. ARGUMENTS_HELP: --help was given, and the help was printed. ARGUMENTS_WRONG: the error
 * was printed on standard error. */
arguments_outcome arguments_read(arguments *arguments, const command_usage *usage, int count, char **words,
                                 void *settings);

/* The same, but "-" is kept unchanged: standard input is not read. */
arguments_outcome arguments_check(arguments *arguments, const command_usage *usage, int count, char **words,
                                  void *settings);

/* True if the command has this option. */
bool arguments_has(const arguments *arguments, const char *name);

/* True if this option was on the command line. The name must be in the table. */
bool arguments_given(const arguments *arguments, const char *name);

/* Row `index` over all parts, and the offset of its part; NULL past the end. */
const argument *arguments_row(const command_usage *usage, int index, size_t *offset);

/* Print the help text on standard output. */
void arguments_help(const command_usage *usage);

/* Print the help as a manual page in roff ("--help=man"), and the completions of the last of these words for a shell
 * ("--complete" in front of them): see complete.c. */
void arguments_manual(const command_usage *usage);
void arguments_complete(const command_usage *usage, int count, char **words);

/* Print "sdlf COMMAND: error: ..." and how to get help on standard error. Returns ARGUMENTS_WRONG. */
arguments_outcome arguments_wrong(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
