/* SPDX-License-Identifier: MIT */
/* Stored reports of `sdlf bench conv` (--from) of arbitrary bytes: an error that names the file, or cases and rungs that
 * can be tabulated. */
#include <stdlib.h>
#include <string.h>

#include <sdlf/status.h>

#include "apps/bench/conv/read.h"
#include "tests/fuzz/memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const lab *l)
{
    if (l->cases < 1 || l->cases > LAB_CASES || l->rungs < 1 || l->rungs > LAB_RUNGS) abort();
    for (int i = 0; i < l->cases; i++)
        for (int j = 0; j < l->rungs; j++)
            if (l->result[i][j].ran && !(l->result[i][j].seconds > 0 && l->result[i][j].work.bytes > 0)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static lab read;
    static const argument_list all;
    char path[MEMORY_FILE_PATH];
    int file = memory_file(path, data, size);
    sdlf_status status = lab_read(&read, path, &all);
    if (status == SDLF_OK) check(&read);
    if (status != SDLF_OK && strstr(sdlf_error_message(), path) == NULL) abort();
    json_decref(read.source);
    close(file);
    return 0;
}
