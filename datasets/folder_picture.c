/* SPDX-License-Identifier: MIT */
/* A picture of a folder becomes a sample. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "datasets/folder_stream.h"

enum { PATH_SIZE = 8192 };

sdlf_status folder_read_picture(sdlf_image *picture, const char *folder, const folder_file *file)
{
    char path[PATH_SIZE];
    if (snprintf(path, sizeof path, "%s/%s", folder, file->path) >= PATH_SIZE)
        return sdlf_fail(SDLF_ERROR_IO, "%s: the path is longer than %d bytes", file->path, PATH_SIZE - 1);
    struct stat about;
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode)) /* a pipe would be waited for without end */
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: expected a file, found a pipe, a device or a socket", path);
    return sdlf_image_read(picture, path, 0);
}

sdlf_status folder_fill_sample(uint8_t *sample, const sdlf_image *picture, sdlf_shape shape)
{
    int channels = (int)shape.dim[0], rows = (int)shape.dim[1], columns = (int)shape.dim[2];
    int64_t count = sdlf_shape_count(shape);
    float *scratch = malloc((size_t)count * sizeof *scratch);
    if (scratch == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory for a picture");
    double scale = fmin((double)picture->height / rows, (double)picture->width / columns);
    double height = scale * rows, width = scale * columns;
    sdlf_status status = sdlf_image_resize(scratch, rows, columns, channels, picture, (picture->height - height) / 2,
                                           (picture->width - width) / 2, height, width);
    for (int64_t i = 0; status == SDLF_OK && i < count; i++) {
        float value = scratch[i] < 0 ? 0 : scratch[i];
        sample[i] = (uint8_t)(int)((value > 255 ? 255 : value) + 0.5f);
    }
    free(scratch);
    return status;
}
