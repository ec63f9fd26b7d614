/* SPDX-License-Identifier: MIT */
/* Option files (--config) of arbitrary bytes: an error that names the file, or valid options. */
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/arguments/config.h"
#include "tests/fuzz/memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[MEMORY_FILE_PATH];
    int file = memory_file(path, data, size);
    char *words[] = {(char[]){"train"}, (char[]){"--config"}, path, (char[]){"--"}, (char[]){"--config"}};
    config_words expanded;
    sdlf_status status = config_expand(&expanded, 5, words, 1);
    if (status != SDLF_OK && strstr(sdlf_error_message(), path) == NULL) abort();
    if (status == SDLF_OK) {
        if (expanded.count < 3 || strcmp(expanded.word[0], "train") != 0) abort();
        if (strcmp(expanded.word[expanded.count - 1], "--config") != 0 || expanded.word[expanded.count] != NULL)
            abort();
        for (int i = 1; i < expanded.count - 2; i++)
            if (strncmp(expanded.word[i], "--", 2) != 0 || expanded.word[i][2] == '-') abort();
    }
    config_release(&expanded);
    close(file);
    return 0;
}
