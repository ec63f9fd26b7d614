/* SPDX-License-Identifier: MIT */
/* The command line of the kernel tests. */
#include "options.h"

#include "families.h"
#include "sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* True if SDLF has a calculator of that name, in this build or another. */
static bool is_calculator(const char *name)
{
    const char *other, *reason;
    for (int i = 0; sdlf_calculator_class_at(i); i++) {
        if (strcmp(sdlf_calculator_class_at(i)->name, name) == 0) return true;
    }
    for (int i = 0; (other = sdlf_calculator_unavailable(i, &reason)); i++) {
        if (strcmp(other, name) == 0) return true;
    }
    fprintf(stderr, "no calculator '%s' in any build of SDLF\n", name);
    return false;
}

/* The same for a comma-separated list. */
static bool are_calculators(const char *list)
{
    char name[32];
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        if (!is_calculator(name)) return false;
    }
    return true;
}

/* Parse an option with its value; false: invalid. */
static bool read_value(kernel_options *options, const char *word, const char *value)
{
    if (strcmp(word, "--family") == 0 && kernel_families_in(value) > 0) {
        options->family = value;
    } else if (strcmp(word, "--but") == 0 && kernel_families_in(value) > 0) {
        options->but = value;
    } else if (strcmp(word, "--only") == 0) {
        options->only = value;
    } else if (strcmp(word, "--calculator") == 0 && is_calculator(value)) {
        options->calculator = value;
    } else if (strcmp(word, "--without") == 0 && are_calculators(value)) {
        options->without = value;
    } else if (strcmp(word, "--math") == 0 && sdlf_math_from_name(value) != SDLF_MATH_COUNT) {
        options->one_math = true;
        options->math = sdlf_math_from_name(value);
    } else if (strcmp(word, "--seconds") == 0 && atof(value) > 0) {
        options->seconds = atof(value);
    } else if (strcmp(word, "--parts") == 0 && atoi(value) > 0 && atoi(value) <= SAMPLE_PARTS) {
        options->parts = atoi(value);
    } else if (strcmp(word, "--seed") == 0 && *value != '\0' && strspn(value, "0123456789") == strlen(value)) {
        options->seed = strtoll(value, NULL, 10);
    } else {
        return false;
    }
    return true;
}

/* SDLF_KERNEL_SECONDS: as --seconds, with a seed that changes every second. SDLF_KERNEL_PARTS: as --parts, for builds
 * whose purpose is not to verify the kernels; SDLF_KERNEL_SEED is their seed. */
static void read_environment(kernel_options *options)
{
    const char *parts = getenv("SDLF_KERNEL_PARTS"), *seed = getenv("SDLF_KERNEL_SEED");
    if (parts && read_value(options, "--parts", parts)) {
        if (seed) read_value(options, "--seed", seed);
        return;
    }
    const char *seconds = getenv("SDLF_KERNEL_SECONDS");
    if (!seconds || !(atof(seconds) > 0)) return;
    options->seconds = atof(seconds);
    if (options->seed == 0) options->seed = (int64_t)time(NULL);
}

bool kernel_options_read(kernel_options *options, int argc, char **argv)
{
    *options = (kernel_options){.family = NULL};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bench") == 0) {
            options->bench = true;
            options->bench_only = i + 1 < argc ? argv[i + 1] : NULL;
            return true;
        }
        if (strcmp(argv[i], "--once") == 0) {
            options->once = true;
        } else if (strcmp(argv[i], "--dry") == 0) {
            options->dry = true;
        } else if (i + 1 < argc && read_value(options, argv[i], argv[i + 1])) {
            i++;
        } else {
            fprintf(stderr,
                    "usage: %s [--family NAME,...] [--but NAME,...] [--only TEXT] [--calculator NAME] "
                    "[--without NAME,...] [--math MODE] [--dry] [--once] [--seconds S | --parts P] [--seed N] [--bench "
                    "[TEXT]]\n",
                    argv[0]);
            return false;
        }
    }
    if (options->seconds == 0 && options->parts == 0 && !options->only && !options->dry) read_environment(options);
    return true;
}
