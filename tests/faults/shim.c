/* SPDX-License-Identifier: MIT */
/* A preloaded library that makes a chosen call for a system resource fail, whether the program, SDLF or a library
 * beneath it makes the call. scripts/faults.sh drives it. The environment configures it:
 *
 *     SDLF_FAULT="memory 17"    the 17th allocation fails (malloc, calloc, realloc, aligned_alloc, memalign,
 *                               posix_memalign, mmap)
 *     SDLF_FAULT="memory 17+"   that one and all that follow
 *     SDLF_FAULT="threads 1+"   no thread can be created
 *     SDLF_FAULT="EIO 17"       the 17th call on a file fails with that: EIO, ENOSPC or EINTR (open, read, pread,
 *                               write, pwrite, fsync, fdatasync, ftruncate, rename, renameat2; and close, which
 *                               closes nevertheless); "EIO 17+": so do all that follow. With EIO and ENOSPC, streams
 *                               also fail (fopen, fflush, fclose, fread, fgets, getline)
 *     SDLF_FAULT="short 17"     that call reads or writes half of the requested bytes
 *     SDLF_FAULT="device 17"    the 17th call that creates a CUDA object (memory, stream, event, graph) finds no
 *                               memory; "device 17+": nor do all that follow
 *     SDLF_FAULT="lost 17"      from the 17th CUDA runtime call on, the device returns an error
 *     SDLF_FAULT_COUNTS=FILE    at exit, the program writes "ALLOCATIONS THREADS FILES CUDA_MADE CUDA_CALLS" there
 *
 * Counting starts after the constructors of all libraries and of the program, because CUDA's runtime registers every
 * kernel there, and cannot handle a lack of memory. Linux with the GNU C library only. */
#undef _FORTIFY_SOURCE /* under which the headers define some of these functions themselves */
#include "shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The C library's own names of the functions replaced here. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *memalign(size_t alignment, size_t size);

counter device, device_calls;
static counter memory, threads, files;
static int file_error; /* 0: short */
static atomic_bool counting;
static int (*real_pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

bool fails(counter *c)
{
    if (!atomic_load(&counting)) return false;
    long call = atomic_fetch_add(&c->calls, 1) + 1;
    return c->first > 0 && (c->onward ? call >= c->first : call == c->first);
}

static void *fail_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

static void read_fault(const char *fault, const char *kind, counter *c)
{
    size_t length = strlen(kind);
    if (fault == NULL || strncmp(fault, kind, length) != 0) return;
    char *end;
    c->first = strtol(fault + length, &end, 10);
    c->onward = *end == '+';
}

__attribute__((constructor)) static void begin(void)
{
    void *symbol = dlsym(RTLD_NEXT, "pthread_create");
    memcpy(&real_pthread_create, &symbol, sizeof symbol);
    read_fault(getenv("SDLF_FAULT"), "memory ", &memory);
    read_fault(getenv("SDLF_FAULT"), "threads ", &threads);
    read_fault(getenv("SDLF_FAULT"), "device ", &device);
    read_fault(getenv("SDLF_FAULT"), "lost ", &device_calls);
    static const struct {
        const char *kind;
        int error;
    } errors[] = {{"EIO ", EIO}, {"ENOSPC ", ENOSPC}, {"EINTR ", EINTR}, {"short ", 0}};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0] && files.first == 0; i++) {
        file_error = errors[i].error;
        read_fault(getenv("SDLF_FAULT"), errors[i].kind, &files);
    }
}

/* ---- the program's start ---- */

typedef int main_function(int, char **, char **);
static main_function *real_main;

static int counted_main(int count, char **words, char **environment)
{
    atomic_store(&counting, true);
    return real_main(count, words, environment);
}

/* What the C library's start file calls: constructors, then main. */
int __libc_start_main(main_function *function, int count, char **words, void (*prepare)(void), void (*finish)(void),
                      void (*unload)(void), void *stack);

int __libc_start_main(main_function *function, int count, char **words, void (*prepare)(void), void (*finish)(void),
                      void (*unload)(void), void *stack)
{
    int (*start)(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
    void *symbol = dlsym(RTLD_NEXT, "__libc_start_main");
    memcpy(&start, &symbol, sizeof start);
    real_main = function;
    return start(counted_main, count, words, prepare, finish, unload, stack);
}

__attribute__((destructor)) static void end(void)
{
    atomic_store(&counting, false);
    const char *path = getenv("SDLF_FAULT_COUNTS");
    int file = path != NULL ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
    if (file < 0) return;
    dprintf(file, "%ld %ld %ld %ld %ld\n", atomic_load(&memory.calls), atomic_load(&threads.calls),
            atomic_load(&files.calls), atomic_load(&device.calls), atomic_load(&device_calls.calls));
    close(file);
}

/* ---- what is replaced ---- */

void *malloc(size_t size)
{
    return fails(&memory) ? fail_memory() : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails(&memory) ? fail_memory() : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails(&memory) ? fail_memory() : __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size)
{
    return fails(&memory) ? fail_memory() : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size)
{
    void *found = memalign(alignment, size);
    if (found == NULL) return ENOMEM;
    *result = found;
    return 0;
}

void *mmap(void *at, size_t length, int protection, int flags, int file, off_t offset)
{
    if (!fails(&memory)) return (void *)syscall(SYS_mmap, at, length, protection, flags, file, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

void *mmap64(void *at, size_t length, int protection, int flags, int file, off64_t offset)
{
    return mmap(at, length, protection, flags, file, offset);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    return fails(&threads) ? EAGAIN : real_pthread_create(thread, attributes, run, argument);
}

/* ---- files: their calls go to the system by number, as those here stand for the C library's ---- */

/* True if this call must fail; sets errno. */
static bool file_fails(void)
{
    if (!fails(&files) || file_error == 0) return false;
    errno = file_error;
    return true;
}

void set_stream_error(void)
{
    errno = file_error;
}

bool stream_fails(void)
{
    if (!fails(&files) || file_error == 0 || file_error == EINTR) return false;
    set_stream_error();
    return true;
}

/* The bytes that a call may transfer: half of them if it must be short; -1: it fails. */
static ssize_t bytes_to_move(size_t count)
{
    if (!fails(&files)) return (ssize_t)count;
    if (file_error == 0) return (ssize_t)(count > 1 ? count / 2 : count);
    errno = file_error;
    return -1;
}

static int open_at(int folder, const char *path, int flags, mode_t mode)
{
    return file_fails() ? -1 : (int)syscall(SYS_openat, folder, path, flags, mode);
}

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_at(folder, path, flags, mode);
}

ssize_t read(int file, void *to, size_t count)
{
    ssize_t some = bytes_to_move(count);
    return some < 0 ? -1 : syscall(SYS_read, file, to, some);
}

ssize_t write(int file, const void *from, size_t count)
{
    ssize_t some = bytes_to_move(count);
    return some < 0 ? -1 : syscall(SYS_write, file, from, some);
}

ssize_t pread(int file, void *to, size_t count, off_t offset)
{
    ssize_t some = bytes_to_move(count);
    return some < 0 ? -1 : syscall(SYS_pread64, file, to, some, offset);
}

ssize_t pread64(int file, void *to, size_t count, off64_t offset)
{
    return pread(file, to, count, offset);
}

ssize_t pwrite(int file, const void *from, size_t count, off_t offset)
{
    ssize_t some = bytes_to_move(count);
    return some < 0 ? -1 : syscall(SYS_pwrite64, file, from, some, offset);
}

ssize_t pwrite64(int file, const void *from, size_t count, off64_t offset)
{
    return pwrite(file, from, count, offset);
}

int fsync(int file)
{
    return file_fails() ? -1 : (int)syscall(SYS_fsync, file);
}

int fdatasync(int file)
{
    return file_fails() ? -1 : (int)syscall(SYS_fdatasync, file);
}

int ftruncate(int file, off_t size)
{
    return file_fails() ? -1 : (int)syscall(SYS_ftruncate, file, size);
}

int rename(const char *from, const char *to)
{
    return file_fails() ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    return file_fails() ? -1 : (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

/* The file is closed even if the call fails, as on Linux. */
int close(int file)
{
    bool wrong = file_fails();
    int error = errno, status = (int)syscall(SYS_close, file);
    if (!wrong) return status;
    errno = error;
    return -1;
}
