/* SPDX-License-Identifier: MIT */
/* JPEG, BMP, PGM and PPM, through libturbojpeg. */
#include "datasets/images/decode.h"

#if defined SDLF_HAVE_TURBOJPEG

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <turbojpeg.h>

#include "framework/portable.h"

enum { MOST_SCANS = 500 };

static sdlf_status damaged(const char *path, const char *format, const char *reason)
{
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: damaged %s: %s", path, format, reason);
}

/* Reports the library's own message: the file may be damaged, or of a kind that the library does not read. */
static sdlf_status unreadable(const char *path, const char *format, const char *reason)
{
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: cannot read this %s: %s", path, format, reason);
}

/* True if a progressive file has suspiciously many scans: each one costs a pass over the whole image but may take only a
 * few bytes; real files have about ten. Walks from marker to marker by the segments' lengths, so that the content of
 * comments and thumbnails does not matter, up to the end of the image; the rest is not read. */
static bool has_many_scans(const unsigned char *bytes, size_t size)
{
    enum { SCAN = 0xda, END = 0xd9 };
    const unsigned char *at = bytes, *end = bytes + size;
    int scans = 0;
    while (scans <= MOST_SCANS) {
        at = memchr(at, 0xff, (size_t)(end - at));
        if (at == NULL || end - at < 4 || at[1] == END) break;
        const int marker = at[1];
        scans += marker == SCAN;
        /* a byte of a scan, a fill byte, or a marker without a segment */
        const bool alone = marker <= 0x01 || (marker >= 0xd0 && marker <= 0xd8);
        const ptrdiff_t segment = marker == 0xff ? 1 : alone ? 2 : 2 + (at[2] << 8 | at[3]);
        if (segment > end - at) break;
        at += segment;
    }
    return scans > MOST_SCANS;
}

sdlf_status image_decode_jpeg(sdlf_image *picture, const unsigned char *bytes, size_t size, const char *path)
{
    tjhandle handle = tjInitDecompress();
    if (handle == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory for its decoder", path);
    int width = 0, height = 0, sampling = 0, colours = 0;
    sdlf_status status = SDLF_OK;
    if (tjDecompressHeader3(handle, bytes, size, &width, &height, &sampling, &colours) != 0) {
        status = unreadable(path, "JPEG", tjGetErrorStr2(handle));
        goto done;
    }
    if (width < 1 || height < 1) { /* the library accepts a stream of tables without an image */
        status = damaged(path, "JPEG", "it ends in its header");
        goto done;
    }
    if (colours == TJCS_CMYK || colours == TJCS_YCCK) {
        status = unreadable(path, "JPEG", "its colours are CMYK; expected RGB or grey");
        goto done;
    }
    if (has_many_scans(bytes, size)) {
        status = sdlf_fail(SDLF_ERROR_FORMAT, "%s: this JPEG has more than %d scans", path, (int)MOST_SCANS);
        goto done;
    }
    bool grey = colours == TJCS_GRAY;
    status = image_allocate(picture, width, height, grey ? 1 : 3, size, path);
    if (status != SDLF_OK) goto done;
    /* a warning means that part of the image is missing or made up */
    if (tjDecompress2(handle, bytes, size, picture->pixels, width, 0, height, grey ? TJPF_GRAY : TJPF_RGB,
                      TJFLAG_STOPONWARNING) != 0)
        status = unreadable(path, "JPEG", tjGetErrorStr2(handle));
done:
    tjDestroy(handle);
    return status;
}

/* Creates a file in memory, which has a name while it is open. */
static int file_of(const unsigned char *bytes, size_t size)
{
    int file = portable_memory_file("picture");
    while (file >= 0 && size > 0) {
        ssize_t count = write(file, bytes, size);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) {
            close(file);
            return -1;
        }
        bytes += count;
        size -= (size_t)count;
    }
    return file;
}

/* The library reads these formats only from files: it gets one with the same bytes whose size was checked. */
static sdlf_status load(sdlf_image *picture, const unsigned char *bytes, size_t size, const char *path, int channels,
                        const char *format)
{
    char name[32];
    int width = 0, height = 0, pixels = channels == 1 ? TJPF_GRAY : TJPF_RGB;
    int file = file_of(bytes, size);
    if (file < 0) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory for its decoder: %s", path, strerror(errno));
    portable_descriptor_path(name, sizeof name, file);
    unsigned char *loaded = tjLoadImage(name, &width, 1, &height, &pixels, 0);
    close(file);
    if (loaded == NULL) return unreadable(path, format, tjGetErrorStr2(NULL));
    sdlf_status status = image_allocate(picture, width, height, channels, size, path);
    if (status == SDLF_OK) memcpy(picture->pixels, loaded, (size_t)width * (size_t)height * (size_t)channels);
    tjFree(loaded);
    return status;
}

static int64_t little_endian(const unsigned char *bytes, int count)
{
    uint32_t value = 0;
    for (int i = count - 1; i >= 0; i--) value = value << 8 | bytes[i];
    return count == 4 ? (int64_t)(int32_t)value : (int64_t)value;
}

sdlf_status image_decode_bmp(sdlf_image *picture, const unsigned char *bytes, size_t size, const char *path)
{
    if (size < 26) return damaged(path, "BMP", "it ends in its header");
    bool old = little_endian(bytes + 14, 4) == 12; /* the OS/2 header has 16-bit sizes */
    int64_t width = little_endian(bytes + 18, old ? 2 : 4),
            height = little_endian(bytes + (old ? 20 : 22), old ? 2 : 4);
    sdlf_status status =
        image_check_size(width, height < 0 ? -height : height, 3, size, path); /* negative: rows from the top */
    return status == SDLF_OK ? load(picture, bytes, size, path, 3, "BMP") : status;
}

/* The next number of a header, in which white space and comments separate numbers; -1 if there is none. Further digits of
 * a number that is already too large for an image's side are ignored. */
static int64_t next_number(const unsigned char *bytes, size_t size, size_t *at)
{
    while (*at < size && (strchr(" \t\r\n\v\f", bytes[*at]) != NULL || bytes[*at] == '#')) {
        if (bytes[*at] == '#')
            while (*at < size && bytes[*at] != '\n') ++*at;
        else
            ++*at;
    }
    int64_t number = -1;
    for (; *at < size && bytes[*at] >= '0' && bytes[*at] <= '9'; ++*at)
        if (number <= SDLF_IMAGE_MAX_PIXELS) number = (number < 0 ? 0 : 10 * number) + (bytes[*at] - '0');
    return number;
}

sdlf_status image_decode_pnm(sdlf_image *picture, const unsigned char *bytes, size_t size, const char *path)
{
    bool grey = bytes[1] == '2' || bytes[1] == '5';
    const char *format = grey ? "PGM" : "PPM";
    size_t at = 2;
    int64_t width = next_number(bytes, size, &at), height = next_number(bytes, size, &at);
    if (width < 0 || height < 0) return damaged(path, format, "its header has no width and height");
    sdlf_status status = image_check_size(width, height, grey ? 1 : 3, size, path);
    return status == SDLF_OK ? load(picture, bytes, size, path, grey ? 1 : 3, format) : status;
}

#else

static sdlf_status unsupported(const char *path, const char *format)
{
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED,
                     "%s: this build reads no %s: it was made without libturbojpeg (libturbojpeg0-dev)", path, format);
}

sdlf_status image_decode_jpeg(sdlf_image *picture, const unsigned char *bytes, size_t size, const char *path)
{
    (void)picture, (void)bytes, (void)size;
    return unsupported(path, "JPEG");
}

sdlf_status image_decode_bmp(sdlf_image *picture, const unsigned char *bytes, size_t size, const char *path)
{
    (void)picture, (void)bytes, (void)size;
    return unsupported(path, "BMP");
}

sdlf_status image_decode_pnm(sdlf_image *picture, const unsigned char *bytes, size_t size, const char *path)
{
    (void)picture, (void)bytes, (void)size;
    return unsupported(path, "PGM or PPM");
}

#endif
