/* SPDX-License-Identifier: MIT */
/* Files of class names (--labels) of arbitrary bytes: an error that names the file, or single-line names that are safe
 * to print on a terminal. */
#include <stdlib.h>
#include <string.h>

#include <sdlf/status.h>

#include "apps/input/labels.h"
#include "tests/fuzz/memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[MEMORY_FILE_PATH];
    int file = memory_file(path, data, size);
    labels read;
    sdlf_status status = labels_read(&read, path);
    if (status != SDLF_OK && strstr(sdlf_error_message(), path) == NULL) abort();
    if (status == SDLF_OK && read.count < 1) abort();
    for (int i = 0; i < read.count; i++)
        for (const char *c = labels_name(&read, i); *c != '\0'; c++)
            if ((unsigned char)*c < ' ' || *c == 0x7f) abort();
    labels_release(&read);
    close(file);
    return 0;
}
