/* SPDX-License-Identifier: MIT */
/* Writes a whole file from memory, and reports failures. */
#include <sdlf/formats.h>

#include "framework/formats/atomic_file.h"
#include "framework/require.h"

sdlf_status sdlf_write_file(const char *path, const void *bytes, size_t count)
{
    SDLF_REQUIRE(path);
    if (count > 0) SDLF_REQUIRE(bytes);
    atomic_file file;
    sdlf_status status = atomic_file_open(&file, path);
    if (status != SDLF_OK) return status;
    status = atomic_file_write(&file, bytes, count);
    if (status == SDLF_OK) return atomic_file_commit(&file);
    atomic_file_abandon(&file);
    return status;
}

sdlf_status sdlf_can_write_file(const char *path)
{
    SDLF_REQUIRE(path);
    return atomic_file_check(path);
}
