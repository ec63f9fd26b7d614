/* SPDX-License-Identifier: MIT */
/* Long options from a table: --name value or --name=value, typed, with ranges, defaults and the help text made from the
 * same rows. One that has a letter too is also -o value and -ovalue.
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
 * Defaults are texts in the same form as on the command line, so that there is one place where they are written and
 * read. A value given twice counts once, the last. "--" ends the options. */
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

/* What "-" stands for. Where it cannot, it is refused: a file of that name is "./-". */
typedef enum argument_standard {
    ARGUMENT_NO_STANDARD = 0,
    /* Read to its end, and the value is the name of a file that holds it (input/bytes.h); once in a command. */
    ARGUMENT_STANDARD_INPUT,
    ARGUMENT_STANDARD_OUTPUT, /* the value is "-" */
} argument_standard;

typedef struct argument {
    const char *name; /* "batch" for --batch; NULL ends a table */
    argument_type type;
    size_t offset;        /* of the member in the settings */
    const char *value;    /* what help calls the value: "N"; of an output "FILE.png", which then has no other ending */
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

/* Rows that several commands share describe a struct of their own, which stands at `offset` in the command's
 * settings. */
typedef struct argument_part {
    const argument *rows; /* NULL ends the parts */
    size_t offset;
} argument_part;

/* What a command takes. */
typedef struct command_usage {
    const char *command;  /* "train" */
    const char *synopsis; /* "[options] IMAGE..." */
    const char *text;     /* what it does */
    const argument_part *parts;
    int operands_minimum, operands_maximum;
    const char *operand_name; /* "an image" */
    argument_standard operands_standard;
    void (*epilogue)(void); /* prints more help; may be NULL */
    const char *examples;   /* lines */
    const char *unknown;    /* what is said of an option that is not there; NULL: nothing more */
} command_usage;

/* What was on the command line, beside the values that went into the settings. */
enum { ARGUMENTS_MAX = 128 };
typedef struct arguments {
    const command_usage *usage;
    const char **operand; /* words that are no options, in order; borrowed from argv */
    int operand_count;
    const char **from_standard; /* the value that is standard input; NULL: none */
    const char *origin;         /* FILE:LINE of the word that is read; NULL: the command line */
    bool given[ARGUMENTS_MAX];  /* by row, over all parts */
} arguments;

typedef enum arguments_outcome { ARGUMENTS_OK = 0, ARGUMENTS_HELP, ARGUMENTS_WRONG } arguments_outcome;

/* Read words[0 .. count - 1] into `settings`, whose members are zero or already have their defaults. The operands are
 * moved to the front of `words`. ARGUMENTS_HELP: --help was asked for and printed. ARGUMENTS_WRONG: what is wrong was
 * said on standard error. */
arguments_outcome arguments_read(arguments *arguments, const command_usage *usage, int count, char **words,
                                 void *settings);

/* The same, but "-" stays what it is: standard input is not read. */
arguments_outcome arguments_check(arguments *arguments, const command_usage *usage, int count, char **words,
                                  void *settings);

/* Has the command this option? */
bool arguments_has(const arguments *arguments, const char *name);

/* Was this option on the command line? The name must be one of the table's. */
bool arguments_given(const arguments *arguments, const char *name);

/* Row `index` over all parts, and the offset of its part; NULL past the end. */
const argument *arguments_row(const command_usage *usage, int index, size_t *offset);

/* Print the help text on standard output. */
void arguments_help(const command_usage *usage);

/* The same as a manual page, in roff ("--help=man"); and what could stand as the last of these words, for a shell
 * ("--complete" in front of them): see complete.c. */
void arguments_manual(const command_usage *usage);
void arguments_complete(const command_usage *usage, int count, char **words);

/* "sdlf COMMAND: error: ..." and where help is found, on standard error. Returns ARGUMENTS_WRONG. */
arguments_outcome arguments_wrong(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
