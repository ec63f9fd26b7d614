/* SPDX-License-Identifier: MIT */
/* Failing stream functions: the C library's internal calls cannot be intercepted, so the functions themselves fail. */
#undef _FORTIFY_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* A function's next definition, the C library's; looked up each time, which only tests pay for. */
#define NEXT(type, name)                                                                                               \
    type;                                                                                                              \
    do {                                                                                                               \
        void *symbol = dlsym(RTLD_NEXT, name);                                                                         \
        memcpy(&next, &symbol, sizeof symbol);                                                                         \
    } while (0)

enum { READING_FAILED = 0x20 }; /* how the C library marks a stream: _IO_ERR_SEEN */

FILE *fopen(const char *path, const char *mode)
{
    NEXT(FILE * (*next)(const char *, const char *), "fopen");
    return stream_fails() ? NULL : next(path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
    return fopen(path, mode);
}

/* Unwritten data stays in the stream, as when a disk is full for a while. */
int fflush(FILE *stream)
{
    NEXT(int (*next)(FILE *), "fflush");
    return stream != NULL && stream_fails() ? EOF : next(stream);
}

int fclose(FILE *stream)
{
    NEXT(int (*next)(FILE *), "fclose");
    const bool wrong = stream_fails();
    const int status = next(stream);
    if (wrong) set_stream_error();
    return wrong ? EOF : status;
}

size_t fread(void *to, size_t size, size_t count, FILE *stream)
{
    NEXT(size_t(*next)(void *, size_t, size_t, FILE *), "fread");
    if (!stream_fails()) return next(to, size, count, stream);
    stream->_flags |= READING_FAILED;
    return 0;
}

char *fgets(char *to, int size, FILE *stream)
{
    NEXT(char *(*next)(char *, int, FILE *), "fgets");
    if (!stream_fails()) return next(to, size, stream);
    stream->_flags |= READING_FAILED;
    return NULL;
}

ssize_t getline(char **line, size_t *size, FILE *stream)
{
    NEXT(ssize_t(*next)(char **, size_t *, FILE *), "getline");
    if (!stream_fails()) return next(line, size, stream);
    stream->_flags |= READING_FAILED;
    return -1;
}
