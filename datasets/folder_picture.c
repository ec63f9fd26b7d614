/* SPDX-License-Identifier: MIT */
/* Converting an image of a folder to a sample. */
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

#include "datasets/folder_stream.h"
#include "datasets/images/decode.h"
#include "datasets/images/resize.h"

enum { PATH_SIZE = 8192 };

static sdlf_status read_picture(sdlf_image *picture, const char *folder, const folder_file *file, bool indices)
{
    char path[PATH_SIZE];
    if (snprintf(path, sizeof path, "%s/%s", folder, file->path) >= PATH_SIZE)
        return sdlf_fail(SDLF_ERROR_IO, "%s: the path is longer than %d bytes", file->path, PATH_SIZE - 1);
    struct stat about;
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode)) /* reading a pipe could block forever */
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: expected a file, found a pipe, a device or a socket", path);
    return indices ? image_read_indices(picture, path) : sdlf_image_read(picture, path, 0);
}

sdlf_status folder_read_picture(sdlf_image *picture, const char *folder, const folder_file *file)
{
    return read_picture(picture, folder, file, false);
}

sdlf_status folder_read_mask(sdlf_image *mask, const char *folder, const folder_file *file)
{
    return read_picture(mask, folder, file, true);
}

sdlf_status folder_fill_sample(uint8_t *sample, const sdlf_image *picture, sdlf_shape shape,
                               const sdlf_sample_part *part)
{
    const sdlf_sample_part whole = {{0, (int)shape.dim[1]}, {0, (int)shape.dim[2]}};
    double scale = fmin((double)picture->height / (double)shape.dim[1], (double)picture->width / (double)shape.dim[2]);
    double height = scale * (double)shape.dim[1], width = scale * (double)shape.dim[2];
    return image_resize_part(sample, shape, part != NULL ? part : &whole, picture, (picture->height - height) / 2,
                             (picture->width - width) / 2, height, width);
}
