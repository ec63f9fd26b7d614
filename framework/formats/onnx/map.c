/* mmap, with every failure told. See map.h. */
#include "framework/formats/onnx/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

sdlf_status onnx_map_open(onnx_map *map, const char *path)
{
    *map = (onnx_map){.bytes = NULL};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return sdlf_fail(SDLF_ERROR_IO, "cannot open '%s': %s", path, strerror(errno));
    sdlf_status status = SDLF_OK;
    struct stat about;
    if (fstat(descriptor, &about) != 0) {
        status = sdlf_fail(SDLF_ERROR_IO, "cannot look at '%s': %s", path, strerror(errno));
    } else if (!S_ISREG(about.st_mode)) {
        status = sdlf_fail(SDLF_ERROR_IO, "cannot read '%s': a regular file was expected", path);
    } else if (about.st_size > 0) {
        void *memory = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (memory == MAP_FAILED)
            status = sdlf_fail(SDLF_ERROR_IO, "cannot map '%s': %s", path, strerror(errno));
        else
            *map = (onnx_map){.bytes = memory, .size = (uint64_t)about.st_size};
    }
    close(descriptor);
    return status;
}

void onnx_map_close(onnx_map *map)
{
    if (map->bytes != NULL) munmap((void *)map->bytes, (size_t)map->size);
    *map = (onnx_map){.bytes = NULL};
}

void onnx_map_done(const void *bytes, uint64_t size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)bytes + page - 1) / page * page, last = ((uintptr_t)bytes + size) / page * page;
    if (last > first) (void)madvise((void *)first, last - first, MADV_DONTNEED); /* only a hint; the mapping stays */
}
