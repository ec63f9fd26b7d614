/* SPDX-License-Identifier: MIT */
/* Sampling the cases when there is not enough time for all of them.
 *
 * Cases are numbered in the order in which generators emit them, and the number assigns them to one of SAMPLE_PARTS
 * parts, neighbours to different ones. A run starts with the part that --seed names and continues with the following
 * parts, cyclically, until its time is over. It prints the first unfinished part; with that as its seed the next run
 * continues, so that all cases are covered eventually. A run may also be given a number of parts instead of a time: it
 * then covers the same cases on every machine. */
#ifndef SDLF_TESTS_KERNEL_SAMPLE_H
#define SDLF_TESTS_KERNEL_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

enum { SAMPLE_PARTS = 256 };

/* Zeroed: every case is run. */
typedef struct sample {
    bool on, late;
    int first, done;        /* the first part; the number of finished parts */
    int parts;              /* parts in one pass, without a deadline; 0: one part per pass */
    double deadline;        /* of sdlf_clock */
    int64_t emitted;        /* the next case's number in this pass */
    int64_t seen, eligible; /* cases that were run; that could have been */
} sample;

void sample_begin(sample *s, double seconds, int64_t seed);

/* The same with a number of parts, 1 to SAMPLE_PARTS, instead of a time. */
void sample_begin_parts(sample *s, int parts, int64_t seed);

/* True if the case of this number is due and there is time for it. For cases that can be run independently. */
bool sample_takes(sample *s, int64_t number);

/* Record that the case was run. One that exceeded the time is not counted: parts of it may have been skipped. */
void sample_took(sample *s);

/* Advance to the next part. False: there is none, or no time. */
bool sample_next(sample *s);

/* The seed with which the next run continues: the first unfinished part, but never the one that this run started with,
 * or a part that is too long for the time would be repeated forever. */
int sample_goes_on(const sample *s);

/* Print how many of the cases were run, and the seed with which to continue. */
void sample_print(const sample *s);

#endif
