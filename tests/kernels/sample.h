/* SPDX-License-Identifier: MIT */
/* Some of the cases, spread over all of them: where there is not the time for all.
 *
 * Cases are numbered as generators emit them, and belong to one of SAMPLE_PARTS parts by their number, neighbours to
 * different ones. A run begins with the part that --seed names and goes on with those behind it, round the ring, until
 * its time is over. It says which part it did not end: with that as its seed the next run goes on, so that in the end
 * all have been seen. A run may also be given a number of parts, whatever time they take: then it is the same cases on
 * every machine. */
#ifndef SDLF_TESTS_KERNEL_SAMPLE_H
#define SDLF_TESTS_KERNEL_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

enum { SAMPLE_PARTS = 256 };

/* Zeroed: every case is taken. */
typedef struct sample {
    bool on, late;
    int first, done;        /* the part it began with; how many were ended */
    int parts;              /* so many in one turn, without a deadline; 0: one part a turn */
    double deadline;        /* of sdlf_clock */
    int64_t emitted;        /* of this part's turn: the next case's number */
    int64_t seen, eligible; /* cases that were taken; that could have been */
} sample;

void sample_begin(sample *s, double seconds, int64_t seed);

/* The same with a number of parts, 1 to SAMPLE_PARTS, instead of the time. */
void sample_begin_parts(sample *s, int parts, int64_t seed);

/* Is it the turn of the case of this number, and is there time? For cases that may be taken alone. */
bool sample_takes(sample *s, int64_t number);

/* The case was taken. One that outlasted the time is not counted: of what it tries, some may have been left out. */
void sample_took(sample *s);

/* Go on with the next part. False: there is none, or no time. */
bool sample_next(sample *s);

/* The seed with which the next run goes on: the part that was not ended, but never the one that this run began with, or
 * a part that is too long for the time would be tried for ever. */
int sample_goes_on(const sample *s);

/* Print how many cases were taken, of how many, and which seed goes on. */
void sample_print(const sample *s);

#endif
