/* SPDX-License-Identifier: MIT */
/* Options parsed by a table: accepted and rejected values. */
#include "testing.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apps/arguments/arguments.h"
#include "apps/arguments/value.h"

static const char *const colours[] = {"red", "dark_blue", NULL};

static const char *shape_name(int index)
{
    static const char *const names[] = {"round", "square"};
    return index < 2 ? names[index] : NULL;
}

typedef struct part {
    double ratio;
} part;

typedef struct settings {
    int64_t batch, size;
    int colour;
    const char *out, *shape, *report;
    bool quiet;
    argument_list place;
    part part;
} settings;

static const argument own[] = {
    {.name = "Options", .type = ARGUMENT_HEADING},
    {"batch", ARGUMENT_INT, offsetof(settings, batch), "N", .minimum = 1, .maximum = 1000, .fallback = "64",
     .help = "h"},
    {"size", ARGUMENT_SIZE, offsetof(settings, size), "BYTES", .minimum = 1, .maximum = 1e12, .help = "h"},
    {"colour", ARGUMENT_CHOICE, offsetof(settings, colour), "C", .choices = colours, .help = "h"},
    {"shape", ARGUMENT_NAME, offsetof(settings, shape), "S", .names = shape_name, .help = "h"},
    {"out", ARGUMENT_TEXT, offsetof(settings, out), "FILE", .help = "h", .letter = 'o'},
    {"report", ARGUMENT_TEXT, offsetof(settings, report), "FILE", .help = "h", .alone = "-",
     .standard = ARGUMENT_STANDARD_OUTPUT},
    {"quiet", ARGUMENT_FLAG, offsetof(settings, quiet), .help = "h", .letter = 'q'},
    {"place", ARGUMENT_LIST, offsetof(settings, place), "P", .help = "h"},
    {0},
};

static const argument shared[] = {
    {"ratio", ARGUMENT_FLOAT, offsetof(part, ratio), "X", .minimum = 0, .maximum = 1, .above = true, .help = "h"},
    {0},
};

static settings set;
static arguments given;
static char errors[2048];

/* Parse these words, with standard error redirected to `errors`. */
static arguments_outcome read_words(int most, const char *const *words)
{
    static const argument_part parts[] = {{own, 0}, {shared, offsetof(settings, part)}, {0}};
    static command_usage usage = {.command = "try", .synopsis = "", .text = "", .parts = parts};
    static char copies[16][64];
    static char *argv[16]; /* the results point into it */
    int count = 0;
    for (; words[count]; count++) argv[count] = strcpy(copies[count], words[count]);
    usage.operands_maximum = most;
    usage.operands_minimum = most;
    usage.operand_name = "a picture";
    set = (settings){.batch = 0};

    FILE *file = tmpfile();
    fflush(stderr);
    int kept = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    arguments_outcome outcome = arguments_read(&given, &usage, count, argv, &set);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(file);
    errors[fread(errors, 1, sizeof errors - 1, file)] = '\0';
    fclose(file);
    return outcome;
}

#define READ(...) read_words(0, (const char *const[]){__VA_ARGS__, NULL})

/* Check that these words are rejected with a message that contains `text`. */
#define CHECK_WRONG(text, ...) check_wrong(__LINE__, (text), (const char *const[]){__VA_ARGS__, NULL})
static void check_wrong(int line, const char *text, const char *const *words)
{
    test_check_equal(read_words(0, words), ARGUMENTS_WRONG, __FILE__, line, "outcome");
    bool says = strstr(errors, text) && strstr(errors, "'sdlf try --help'");
    if (!test_check(says, __FILE__, line, text)) printf("  said: %s", errors);
}

static void values_arrive(void)
{
    CHECK_EQUAL(READ("--batch", "32", "--ratio=0.25", "--colour", "dark-blue", "--shape=square", "--quiet"),
                ARGUMENTS_OK);
    CHECK_EQUAL(set.batch, 32);
    CHECK_CLOSE(set.part.ratio, 0.25, 0);
    CHECK_EQUAL(set.colour, 1);
    CHECK_TEXT(set.shape, "square");
    CHECK(set.quiet);
    CHECK(arguments_given(&given, "batch") && arguments_given(&given, "ratio") && !arguments_given(&given, "out"));
    CHECK_EQUAL(READ("--batch=1", "--batch=2", "--out=--odd", "--place", "a=1", "--place=b=2"), ARGUMENTS_OK);
    CHECK_EQUAL(set.batch, 2); /* the last one counts */
    CHECK_TEXT(set.out, "--odd");
    CHECK_EQUAL(set.place.count, 2);
    CHECK_TEXT(set.place.item[1], "b=2");
    CHECK(!set.quiet);
}

static void letters_stand_for_names(void)
{
    CHECK_EQUAL(READ("-o", "here", "-q"), ARGUMENTS_OK);
    CHECK_TEXT(set.out, "here");
    CHECK(set.quiet && arguments_given(&given, "out"));
    CHECK_EQUAL(READ("-othere"), ARGUMENTS_OK);
    CHECK_TEXT(set.out, "there");
    CHECK_WRONG("--out needs a value: FILE", "-o");
    CHECK_WRONG("--out needs a value, found the option '--quiet'", "-o", "--quiet");
    CHECK_WRONG("--quiet takes no value, found 'uick'", "-quick");
    CHECK_WRONG("unknown option '-x'", "-x", "y");
}

/* If an option gives "-" no meaning, it is not accepted as a file name either. */
static void standard_streams(void)
{
    CHECK_WRONG("--out '-' would be standard input or output, which cannot be used here", "--out", "-");
    CHECK_WRONG("--out '-' would be standard input or output, which cannot be used here", "-o-");
    CHECK_WRONG("--place '-' would be standard input or output, which cannot be used here", "--place", "a", "--place",
                "-");
    CHECK_EQUAL(READ("--out", "./-", "--report", "-"), ARGUMENTS_OK);
    CHECK_TEXT(set.out, "./-");
    CHECK_TEXT(set.report, "-");
}

static void a_value_may_be_left_out(void)
{
    CHECK_EQUAL(READ("--report"), ARGUMENTS_OK);
    CHECK_TEXT(set.report, "-");
    CHECK_EQUAL(READ("--report", "--quiet"), ARGUMENTS_OK);
    CHECK_TEXT(set.report, "-");
    CHECK(set.quiet);
    CHECK_EQUAL(READ("--report", "here", "--batch", "3"), ARGUMENTS_OK);
    CHECK_TEXT(set.report, "here");
    CHECK_EQUAL(READ("--report=there"), ARGUMENTS_OK);
    CHECK_TEXT(set.report, "there");
    CHECK_EQUAL(READ("--report", "-"), ARGUMENTS_OK);
    CHECK_TEXT(set.report, "-");
    CHECK_EQUAL(READ("--report", "-h"), ARGUMENTS_HELP);
    CHECK_TEXT(set.report, "-");
    CHECK_WRONG("unknown option '-1'", "--report", "-1");
    CHECK_EQUAL(READ("--report=-1"), ARGUMENTS_OK);
    CHECK_TEXT(set.report, "-1");
    CHECK_WRONG("--report '': expected FILE", "--report=");
}

static void defaults_arrive(void)
{
    CHECK_EQUAL(read_words(0, (const char *const[]){NULL}), ARGUMENTS_OK);
    CHECK_EQUAL(set.batch, 64);
    CHECK(!arguments_given(&given, "batch"));
    CHECK(set.out == NULL);
}

static void sizes_have_units(void)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } known[] = {{"512", 512},     {"64kB", 64000},       {"64KB", 64000},      {"1.5GB", 1500000000},
                 {"64KiB", 65536}, {"2MiB", 2 * 1048576}, {"1GiB", 1073741824}, {"3M", 3000000},
                 {"1e6", 1000000}, {"1TB", 1000000000000}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        CHECK_EQUAL(READ("--size", known[i].text), ARGUMENTS_OK);
        CHECK_EQUAL(set.size, known[i].bytes);
    }
    CHECK_WRONG("bytes such as 64MB", "--size", "64XB");
    CHECK_WRONG("bytes such as 64MB", "--size", "2TB");
    CHECK_WRONG("bytes such as 64MB", "--size", "nan");
    CHECK_WRONG("bytes such as 64MB", "--size", "MB");
}

static void ranges_hold(void)
{
    CHECK_WRONG("--batch 0: expected a whole number from 1 to 1,000", "--batch", "0");
    CHECK_WRONG("from 1 to 1,000", "--batch=1001");
    CHECK_WRONG("from 1 to 1,000", "--batch", "-5");
    CHECK_WRONG("from 1 to 1,000", "--batch", "99999999999999999999");
    CHECK_WRONG("whole number", "--batch", "12.5");
    CHECK_WRONG("whole number", "--batch", "12x");
    CHECK_WRONG("whole number", "--batch=");
    CHECK_WRONG("--ratio 0: expected a number above 0, at most 1", "--ratio", "0");
    CHECK_WRONG("expected a number", "--ratio", "1.5");
    CHECK_WRONG("expected a number", "--ratio", "nan");
    CHECK_WRONG("expected a number", "--ratio", "inf");
    CHECK_WRONG("expected a number", "--ratio", "abc");
    CHECK_WRONG("--colour green: expected one of red, dark_blue", "--colour", "green");
    CHECK_WRONG("--shape flat: expected one of round, square", "--shape", "flat");
    CHECK_WRONG("--out '': expected FILE", "--out=");
}

static void mistakes_are_named(void)
{
    CHECK_WRONG("unknown option '--bacth' (did you mean '--batch'?)", "--bacth", "3");
    CHECK_WRONG("unknown option '--Options'", "--Options");
    CHECK_WRONG("unknown option '--zzzzzzzz'\n", "--zzzzzzzz");
    CHECK_WRONG("options begin with two dashes", "-b", "3");
    CHECK_WRONG("--batch needs a value: a whole number", "--batch");
    CHECK_WRONG("--out needs a value, found the option '--quiet'", "--out", "--quiet");
    CHECK_WRONG("--quiet takes no value, found 'yes'", "--quiet=yes");
    CHECK_WRONG("unexpected 'seven.png'", "seven.png");
}

static void operands_are_kept(void)
{
    const char *const words[] = {"a.png", "--batch", "3", "--", "--b.png", NULL};
    CHECK_EQUAL(read_words(2, words), ARGUMENTS_OK);
    CHECK_EQUAL(given.operand_count, 2);
    CHECK_TEXT(given.operand[0], "a.png");
    CHECK_TEXT(given.operand[1], "--b.png");
    CHECK_EQUAL(set.batch, 3);
    CHECK_EQUAL(read_words(2, (const char *const[]){"a.png", NULL}), ARGUMENTS_WRONG);
    CHECK(strstr(errors, "a picture is missing") != NULL);
}

static void expectations_read_well(void)
{
    CHECK_TEXT(argument_expected(&own[1]).text, "a whole number from 1 to 1,000");
    CHECK_TEXT(argument_expected(&own[3]).text, "one of red, dark_blue");
    CHECK_TEXT(argument_expected(&shared[0]).text, "a number above 0, at most 1");
}

int main(void)
{
    RUN(values_arrive);
    RUN(letters_stand_for_names);
    RUN(standard_streams);
    RUN(a_value_may_be_left_out);
    RUN(defaults_arrive);
    RUN(sizes_have_units);
    RUN(ranges_hold);
    RUN(mistakes_are_named);
    RUN(operands_are_kept);
    RUN(expectations_read_well);
    return test_summary();
}
