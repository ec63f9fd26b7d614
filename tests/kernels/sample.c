/* SPDX-License-Identifier: MIT */
/* Sampling the cases. See sample.h. */
#include "sample.h"

#include <math.h>
#include <stdio.h>

#include "framework/clock.h"

/* The part of a case. Multiplying by the golden ratio of 2^32 distributes consecutive numbers, and any with a fixed
 * stride, evenly over all parts. */
static int part_of(int64_t number)
{
    return (int)((uint32_t)number * 2654435769u / (UINT32_MAX / SAMPLE_PARTS + 1u));
}

void sample_begin(sample *s, double seconds, int64_t seed)
{
    *s = (sample){.on = true, .first = (int)(seed % SAMPLE_PARTS), .deadline = sdlf_clock() + seconds};
}

void sample_begin_parts(sample *s, int parts, int64_t seed)
{
    sample_begin(s, INFINITY, seed);
    s->parts = parts;
}

bool sample_takes(sample *s, int64_t number)
{
    if (!s->on) return true;
    if (s->done == 0) s->eligible++;
    int place = (part_of(number) + SAMPLE_PARTS - s->first) % SAMPLE_PARTS;
    if (s->parts > 0 ? place >= s->parts : place != s->done) return false;
    s->late = s->late || sdlf_clock() > s->deadline;
    s->seen += !s->late;
    return !s->late;
}

void sample_took(sample *s)
{
    if (!s->on || s->late || sdlf_clock() <= s->deadline) return;
    s->late = true;
    s->seen--;
}

bool sample_next(sample *s)
{
    s->emitted = 0;
    if (s->parts > 0) s->done = s->parts;
    if (s->late || s->parts > 0) return false;
    s->done++;
    return s->done < SAMPLE_PARTS && sdlf_clock() <= s->deadline;
}

int sample_goes_on(const sample *s)
{
    return (s->first + (s->done > 0 ? s->done : 1)) % SAMPLE_PARTS;
}

void sample_print(const sample *s)
{
    const char *given = s->parts > 0 ? "as many parts as were asked for" : "the time that was given";
    printf("%lld of %lld cases in %s, from --seed %d on; --seed %d goes on\n", (long long)s->seen,
           (long long)s->eligible, given, s->first, sample_goes_on(s));
}
