/* SPDX-License-Identifier: MIT */
/* The communicators of this build. A NULL row ends each list, since it may otherwise be empty. */
#include "communicators/registry.h"

static const sdlf_communicator_class *const classes[] = {
#define SDLF_COMMUNICATOR(class) &class,
#include "communicators/list.h"
#undef SDLF_COMMUNICATOR
    NULL,
};

static const struct left_out {
    const char *name, *reason;
} left_out[] = {
#ifndef SDLF_HAVE_MPI
    {"mpi", "it was made without MPI (libopenmpi-dev)"},
#endif
#ifndef SDLF_HAVE_NCCL
    {"nccl", "it was made without CUDA or NCCL"},
#endif
    {NULL, NULL},
};

const sdlf_communicator_class *sdlf_communicator_class_at(int index)
{
    int count = (int)(sizeof classes / sizeof classes[0]) - 1;
    return index >= 0 && index < count ? classes[index] : NULL;
}

const char *sdlf_communicator_unavailable(int index, const char **reason)
{
    int count = (int)(sizeof left_out / sizeof left_out[0]) - 1;
    if (index < 0 || index >= count) return NULL;
    if (reason != NULL) *reason = left_out[index].reason;
    return left_out[index].name;
}
