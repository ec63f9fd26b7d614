/* SPDX-License-Identifier: MIT */
/* Public functions of communicators: open by name, close, and what is common to all classes. */
#include <sdlf/communicator.h>
#include <sdlf/suggest.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/require.h"

static const double DEFAULT_TIMEOUT = 20;

static sdlf_status no_such(const char *name)
{
    char known[256] = "none";
    const char *other, *reason;
    sdlf_suggestion near = {.word = name};
    size_t used = 0;
    for (int i = 0; sdlf_communicator_class_at(i) != NULL && used < sizeof known; i++) {
        const char *there = sdlf_communicator_class_at(i)->name;
        sdlf_suggest(&near, there);
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", there);
    }
    for (int i = 0; (other = sdlf_communicator_unavailable(i, &reason)) != NULL; i++)
        if (strcmp(other, name) == 0)
            return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "communicator '%s' is not in this build: %s; there are: %s", name,
                             reason, known);
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "no communicator '%s'%s; there are: %s", name,
                     sdlf_suggestion_print(&near).text, known);
}

sdlf_status sdlf_communicator_open(sdlf_communicator **communicator, const char *name,
                                   const sdlf_communicator_options *options)
{
    SDLF_REQUIRE(communicator);
    *communicator = NULL;
    SDLF_REQUIRE(name);
    sdlf_communicator_options complete = {.timeout = 0};
    if (options != NULL) complete = *options;
    if (complete.timeout == 0) complete.timeout = DEFAULT_TIMEOUT;
    if (!(complete.timeout > 0))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "communicator '%s': timeout is %g, must be above 0", name,
                         complete.timeout);
    const sdlf_communicator_class *type = NULL;
    for (int i = 0; sdlf_communicator_class_at(i) != NULL && type == NULL; i++)
        if (strcmp(sdlf_communicator_class_at(i)->name, name) == 0) type = sdlf_communicator_class_at(i);
    if (type == NULL) return no_such(name);
    sdlf_communicator *made = calloc(1, type->size);
    if (made == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "communicator '%s': no memory", name);
    made->type = type;
    sdlf_status status = type->open(made, &complete);
    if (status != SDLF_OK) {
        free(made);
        return sdlf_fail_context(status, "communicator '%s'", name);
    }
    made->opened_count = made->rank_count;
    *communicator = made;
    return SDLF_OK;
}

void sdlf_communicator_close(sdlf_communicator *communicator)
{
    if (communicator == NULL) return;
    communicator->type->close(communicator);
    free(communicator);
}

void sdlf_communicator_abort(sdlf_communicator *communicator)
{
    if (communicator != NULL) communicator->type->abort(communicator);
}

sdlf_status sdlf_communicator_narrow(sdlf_communicator *communicator, int count)
{
    SDLF_REQUIRE(communicator);
    const sdlf_communicator_class *type = communicator->type;
    if (count < 1 || count > communicator->opened_count)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "communicator '%s': expected 1 to %d ranks, found %d", type->name,
                         communicator->opened_count, count);
    if (type->narrow == NULL)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "communicator '%s' is always of all ranks", type->name);
    sdlf_status status = type->narrow(communicator, count);
    if (status == SDLF_OK) communicator->rank_count = count;
    return status;
}

sdlf_status sdlf_communicator_sum(sdlf_communicator *communicator, double *numbers, int64_t count)
{
    SDLF_REQUIRE(communicator);
    SDLF_REQUIRE(numbers);
    int64_t ticket;
    const sdlf_communicator_class *type = communicator->type;
    sdlf_status status = type->allreduce_begin(communicator, NULL, numbers, SDLF_FLOAT64, count, &ticket);
    return status == SDLF_OK ? type->collective_end(communicator, ticket) : status;
}

sdlf_status sdlf_communicator_compare(sdlf_communicator *communicator, const void *mine, int64_t bytes, int *other)
{
    SDLF_REQUIRE(communicator);
    SDLF_REQUIRE(mine);
    SDLF_REQUIRE(other);
    *other = -1;
    char *all = malloc((size_t)bytes * (size_t)communicator->rank_count);
    if (all == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "communicator: no memory");
    sdlf_status status = communicator->type->gather(communicator, mine, bytes, all);
    for (int i = communicator->rank_count - 1; i > 0 && status == SDLF_OK; i--)
        if (memcmp(all, all + (size_t)bytes * (size_t)i, (size_t)bytes) != 0) *other = i;
    free(all);
    return status;
}

/* The outcome that a rank reports. */
typedef struct outcome {
    int32_t status;
    char host[64], message[700];
} outcome;

static sdlf_status first_failure(const outcome *all, int count)
{
    int failed = 0;
    bool same = true;
    while (failed < count && all[failed].status == SDLF_OK) failed++;
    if (failed == count) return SDLF_OK;
    for (int i = 0; i < count; i++)
        same = same && all[i].status == all[failed].status && strcmp(all[i].message, all[failed].message) == 0;
    sdlf_status status = sdlf_fail((sdlf_status)all[failed].status, "%s", all[failed].message);
    return same ? status : sdlf_fail_context(status, "rank %d on %s", failed, all[failed].host);
}

sdlf_status sdlf_communicator_agree(sdlf_communicator *communicator, sdlf_status status)
{
    SDLF_REQUIRE(communicator);
    outcome mine = {.status = status}, *all = malloc(sizeof *all * (size_t)communicator->rank_count);
    memcpy(mine.host, communicator->host, sizeof mine.host);
    if (status != SDLF_OK) snprintf(mine.message, sizeof mine.message, "%s", sdlf_error_message());
    if (all == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "communicator: no memory");
    sdlf_status met = communicator->type->gather(communicator, &mine, sizeof mine, all);
    if (met == SDLF_OK) {
        met = first_failure(all, communicator->rank_count);
        communicator->agreed = met != SDLF_OK;
    }
    free(all);
    return met;
}

int64_t sdlf_communicator_first(const sdlf_communicator *communicator, int64_t count)
{
    if (communicator == NULL) return 0;
    return count * communicator->rank / communicator->rank_count;
}

int64_t sdlf_communicator_share(const sdlf_communicator *communicator, int64_t count)
{
    if (communicator == NULL) return count;
    return count * (communicator->rank + 1) / communicator->rank_count - sdlf_communicator_first(communicator, count);
}

int64_t sdlf_communicator_shard(int rank, int rank_count, int64_t count)
{
    enum { UNIT = 64 }; /* parts begin at the alignment that vector kernels prefer */
    if (rank >= rank_count) return count;
    return rank > 0 ? (int64_t)((double)count * rank / rank_count) / UNIT * UNIT : 0;
}
