/* SPDX-License-Identifier: MIT */
/* Logs of training runs (compare, report) of arbitrary bytes: an error that names the file, or comparable metrics and options. */
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/runs/run_log.h"
#include "tests/fuzz/memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[MEMORY_FILE_PATH];
    int file = memory_file(path, data, size), count;
    run_log runs[2];
    sdlf_status status = run_log_read(&runs[0], path);
    if (status != SDLF_OK && strstr(sdlf_error_message(), path) == NULL) abort();
    if (status == SDLF_OK) {
        if (run_log_read(&runs[1], path) != SDLF_OK) abort();
        run_figures figures = run_figures_of(&runs[0]);
        if (figures.epochs < 0 || (size_t)figures.epochs != json_array_size(runs[0].epochs) || figures.weights == NULL)
            abort();
        run_difference *options = run_differences(runs, 1, &count);
        run_differences_free(options, count, 1);
        run_difference *differences = run_differences(runs, 2, &count);
        if (count != 0) abort(); /* a run is like itself */
        run_differences_free(differences, count, 2);
        run_log_release(&runs[1]);
    }
    run_log_release(&runs[0]);
    close(file);
    return 0;
}
