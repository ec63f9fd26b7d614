/* SPDX-License-Identifier: MIT */
/* See json_size.h. */
#include "apps/input/json_size.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <sdlf/machine.h>

#include "apps/input/bytes.h"
#include "apps/system/memory.h"
#include "framework/json_cost.h"

enum { LITTLE = 16 << 20 }; /* always allowed, without reading the machine's memory from files */

static sdlf_status check(int64_t needed, int64_t stored, const char *path)
{
    if (needed <= LITTLE && getenv("SDLF_READ_MEMORY") == NULL) return SDLF_OK;
    char *what = memory_print("%s: its JSON", path);
    sdlf_status status = sdlf_machine_check_reading(needed, stored, what);
    free(what);
    return status;
}

sdlf_status input_json_read(unsigned char **bytes, size_t *size, const char *path, size_t limit)
{
    struct stat about;
    int64_t needed = 0;
    bool regular = stat(path, &about) == 0 && S_ISREG(about.st_mode);
    *bytes = NULL;
    *size = 0;
    sdlf_status status = regular ? check((int64_t)about.st_size, (int64_t)about.st_size, path) : SDLF_OK;
    if (status == SDLF_OK) status = input_read(bytes, size, path, limit);
    for (size_t i = 0; status == SDLF_OK && i < *size; i++) needed += json_cost((char)(*bytes)[i]);
    if (status == SDLF_OK) status = check(needed, (int64_t)*size, path);
    if (status == SDLF_OK) return SDLF_OK;
    free(*bytes);
    *bytes = NULL;
    return status;
}
