/* A library to be preloaded, under which a call that asks the system for something fails, whoever makes it: the program, the library or
 * one beneath it. scripts/faults.sh drives it. The environment says what it does:
 *
 *     SDLF_FAULT="memory 17"    the 17th allocation fails (malloc, calloc, realloc, aligned_alloc, memalign, posix_memalign, mmap)
 *     SDLF_FAULT="memory 17+"   that one and all that follow
 *     SDLF_FAULT="threads 1+"   no thread can be made
 *     SDLF_FAULT_COUNTS=FILE    at its end, the program writes "ALLOCATIONS THREADS" there
 *
 * Counted is what comes after the constructors of all libraries and of the program: CUDA's runtime registers every kernel there, and has no
 * answer to a lack of memory. Linux with the GNU C library only. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The C library's own names of what is replaced here. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *memalign(size_t alignment, size_t size);

typedef struct counter {
    atomic_long calls;
    long first; /* the call that fails; 0: none does */
    bool onward;
} counter;

static counter memory, threads;
static atomic_bool counting;
static int (*real_pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static bool fails(counter *c)
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
    dprintf(file, "%ld %ld\n", atomic_load(&memory.calls), atomic_load(&threads.calls));
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
