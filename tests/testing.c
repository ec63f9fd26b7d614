/* The test harness: checks, allocation counting through the linker's --wrap, temporary files. */
#include "testing.h"

#include <errno.h>
#include <ftw.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- checks ---- */

static struct {
    int64_t checks, failed_checks;
    int tests, failed, skipped;
    const char *running, *skip_reason;
} totals;

static bool record(bool ok)
{
    __atomic_add_fetch(&totals.checks, 1, __ATOMIC_RELAXED);
    if (!ok) __atomic_add_fetch(&totals.failed_checks, 1, __ATOMIC_RELAXED);
    return ok;
}

bool test_check(bool ok, const char *file, int line, const char *text)
{
    if (!ok) printf("%s:%d: failed: %s\n", file, line, text);
    return record(ok);
}

bool test_check_status(sdlf_status found, sdlf_status expected, const char *text, const char *file, int line,
                       const char *expression)
{
    const char *message = found == SDLF_OK ? "" : sdlf_error_message();
    if (found != expected) {
        printf("%s:%d: %s: status is %s, expected %s%s%s\n", file, line, expression, sdlf_status_name(found),
               sdlf_status_name(expected), *message ? "; message: " : "", message);
        return record(false);
    }
    bool ok = !text || strstr(message, text);
    if (!ok) printf("%s:%d: %s: the message '%s' does not contain '%s'\n", file, line, expression, message, text);
    return record(ok);
}

bool test_check_equal(int64_t found, int64_t expected, const char *file, int line, const char *text)
{
    if (found != expected) {
        printf("%s:%d: %s is %lld, expected %lld\n", file, line, text, (long long)found, (long long)expected);
    }
    return record(found == expected);
}

bool test_check_close(double found, double expected, double tolerance, const char *file, int line, const char *text)
{
    bool ok = found == expected || (isnan(found) && isnan(expected)) || fabs(found - expected) <= tolerance;
    if (!ok) {
        printf("%s:%d: %s is %.17g, expected %.17g (difference %.3g, allowed %.3g)\n", file, line, text, found,
               expected, found - expected, tolerance);
    }
    return record(ok);
}

bool test_check_text(const char *found, const char *expected, const char *file, int line, const char *text)
{
    bool ok = found && expected ? strcmp(found, expected) == 0 : found == expected;
    if (!ok) {
        printf("%s:%d: %s is '%s', expected '%s'\n", file, line, text, found ? found : "(null)",
               expected ? expected : "(null)");
    }
    return record(ok);
}

void test_run(const char *name, void (*test)(void))
{
    int64_t failed = totals.failed_checks;
    totals.running = name;
    totals.skip_reason = NULL;
    totals.tests++;
    test();
    test_fail_allocation(0);
    if (totals.failed_checks != failed) {
        totals.failed++;
        printf("FAILED   %s\n", name);
    } else if (totals.skip_reason) {
        totals.skipped++;
        printf("skipped  %s: %s\n", name, totals.skip_reason);
    } else {
        printf("ok       %s\n", name);
    }
    fflush(stdout);
}

void test_skip(const char *reason)
{
    totals.skip_reason = reason;
}

int test_summary(void)
{
    printf("%d tests, %d failed, %d skipped; %lld checks\n", totals.tests, totals.failed, totals.skipped,
           (long long)totals.checks);
    if (totals.failed || totals.failed_checks) return 1;
    return totals.tests && totals.skipped == totals.tests ? 77 : 0;
}

/* ---- allocations ----
 *
 * The linker sends every call of these functions from the library and the test here. Blocks that are alive are kept in
 * a hash set, so that freeing what a shared library allocated (which is not counted) does not confuse the count. */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **block, size_t alignment, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **block, size_t alignment, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *block);

static struct {
    pthread_mutex_t lock;
    int64_t count, live;
    int64_t bytes, peak; /* in blocks that are alive; the most of them */
    int64_t fail_in;     /* the allocation that brings this to 0 fails */
    bool failed;
    void **slot; /* the set: open addressing; `gone` marks a removed one */
    size_t slots, used;
} heap = {.lock = PTHREAD_MUTEX_INITIALIZER};

static char gone;

static size_t find_slot(void **slot, size_t slots, const void *block)
{
    size_t i = (size_t)((uintptr_t)block / 16 * UINT64_C(0x9E3779B97F4A7C15) >> 20) % slots;
    while (slot[i] && slot[i] != block) i = (i + 1) % slots;
    return i;
}

static void grow_set(void)
{
    size_t slots = (size_t)(heap.live + 64) * 4;
    void **slot = __real_calloc(slots, sizeof *slot);
    if (!slot) abort();
    size_t used = 0;
    for (size_t i = 0; i < heap.slots; i++) {
        if (!heap.slot[i] || heap.slot[i] == &gone) continue;
        slot[find_slot(slot, slots, heap.slot[i])] = heap.slot[i];
        used++;
    }
    __real_free(heap.slot);
    heap.slot = slot;
    heap.slots = slots;
    heap.used = used;
}

static void remember(void *block)
{
    pthread_mutex_lock(&heap.lock);
    if (heap.used * 2 >= heap.slots) grow_set();
    size_t i = find_slot(heap.slot, heap.slots, block);
    if (!heap.slot[i]) { /* else a shared library freed the block, and here it is again */
        heap.slot[i] = block;
        heap.used++;
        heap.live++;
        heap.bytes += (int64_t)malloc_usable_size(block);
        if (heap.bytes > heap.peak) heap.peak = heap.bytes;
    }
    pthread_mutex_unlock(&heap.lock);
}

static bool forget(void *block)
{
    pthread_mutex_lock(&heap.lock);
    size_t i = heap.slots ? find_slot(heap.slot, heap.slots, block) : 0;
    bool known = heap.slots && heap.slot[i];
    if (known) {
        heap.slot[i] = &gone;
        heap.live--;
        heap.bytes -= (int64_t)malloc_usable_size(block);
    }
    pthread_mutex_unlock(&heap.lock);
    return known;
}

/* Count an allocation; true if it has to fail. */
static bool must_fail(void)
{
    pthread_mutex_lock(&heap.lock);
    heap.count++;
    bool fail = heap.fail_in > 0 && --heap.fail_in == 0;
    if (fail) heap.failed = true;
    pthread_mutex_unlock(&heap.lock);
    if (fail) errno = ENOMEM;
    return fail;
}

void *__wrap_malloc(size_t size)
{
    void *block = must_fail() ? NULL : __real_malloc(size);
    if (block) remember(block);
    return block;
}

void *__wrap_calloc(size_t count, size_t size)
{
    void *block = must_fail() ? NULL : __real_calloc(count, size);
    if (block) remember(block);
    return block;
}

void *__wrap_realloc(void *block, size_t size)
{
    if (must_fail()) return NULL;
    bool known = block && forget(block);
    void *moved = __real_realloc(block, size);
    if (moved && (known || !block)) remember(moved);
    if (!moved && known && size > 0) remember(block);
    return moved;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    void *block = must_fail() ? NULL : __real_aligned_alloc(alignment, size);
    if (block) remember(block);
    return block;
}

int __wrap_posix_memalign(void **block, size_t alignment, size_t size)
{
    if (must_fail()) return ENOMEM;
    int error = __real_posix_memalign(block, alignment, size);
    if (error == 0) remember(*block);
    return error;
}

char *__wrap_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = __wrap_malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

void __wrap_free(void *block)
{
    if (block) forget(block);
    __real_free(block);
}

int64_t test_allocations(void)
{
    pthread_mutex_lock(&heap.lock);
    int64_t count = heap.count;
    pthread_mutex_unlock(&heap.lock);
    return count;
}

int64_t test_live_bytes(void)
{
    pthread_mutex_lock(&heap.lock);
    int64_t count = heap.bytes;
    pthread_mutex_unlock(&heap.lock);
    return count;
}

int64_t test_peak_bytes(void)
{
    pthread_mutex_lock(&heap.lock);
    int64_t count = heap.peak;
    pthread_mutex_unlock(&heap.lock);
    return count;
}

void test_reset_peak(void)
{
    pthread_mutex_lock(&heap.lock);
    heap.peak = heap.bytes;
    pthread_mutex_unlock(&heap.lock);
}

int64_t test_live_allocations(void)
{
    pthread_mutex_lock(&heap.lock);
    int64_t live = heap.live;
    pthread_mutex_unlock(&heap.lock);
    return live;
}

void test_fail_allocation(int64_t n)
{
    pthread_mutex_lock(&heap.lock);
    heap.fail_in = n;
    heap.failed = false;
    pthread_mutex_unlock(&heap.lock);
}

bool test_allocation_failed(void)
{
    pthread_mutex_lock(&heap.lock);
    bool failed = heap.failed;
    pthread_mutex_unlock(&heap.lock);
    return failed;
}

void test_every_allocation(const char *name, sdlf_status (*attempt)(void *), void *argument)
{
    enum { LIMIT = 1000000 };
    for (int64_t n = 1; n <= LIMIT; n++) {
        int64_t live = test_live_allocations();
        test_fail_allocation(n);
        sdlf_status status = attempt(argument);
        bool failed = test_allocation_failed();
        test_fail_allocation(0);
        int64_t left = test_live_allocations() - live;
        bool ok = status == SDLF_OK || (failed && status == SDLF_ERROR_MEMORY);
        if (!ok || left != 0) {
            printf("%s: with allocation %lld %s: status %s (%s), %lld blocks left\n", name, (long long)n,
                   failed ? "failing" : "not reached", sdlf_status_name(status),
                   status == SDLF_OK ? "" : sdlf_error_message(), (long long)left);
        }
        record(ok && left == 0);
        if (!failed) return;
    }
    printf("%s: more than %d allocations\n", name, LIMIT);
    record(false);
}

/* ---- files ---- */

enum { ROTATION = 8, PATH_SIZE = 4096 };

static char directory[PATH_SIZE / 2];
static pid_t directory_owner;

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *position)
{
    (void)info, (void)type, (void)position;
    return remove(path);
}

static void remove_directory(void)
{
    if (getpid() != directory_owner) return; /* a forked child */
    nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_directory(void)
{
    const char *parent = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/sdlf-test-XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(directory)) {
        printf("cannot make %s: %s\n", directory, strerror(errno));
        exit(1);
    }
    directory_owner = getpid();
    atexit(remove_directory);
}

static char *join(const char *folder, const char *name)
{
    static char path[ROTATION][PATH_SIZE];
    static int next;
    char *result = path[next++ % ROTATION];
    snprintf(result, PATH_SIZE, "%s/%s", folder, name);
    return result;
}

const char *test_path(const char *name)
{
    if (!*directory) make_directory();
    return join(directory, name);
}

void test_write_file(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    bool ok = file && fwrite(bytes, 1, count, file) == count;
    if (file && fclose(file) != 0) ok = false;
    if (!ok) printf("cannot write %s: %s\n", path, strerror(errno));
    record(ok);
}

const char *test_data(const char *name)
{
    const char *folder = getenv("SDLF_DATA");
    if (!folder || !*folder) return NULL;
    const char *path = join(folder, name);
    return access(path, R_OK) == 0 ? path : NULL;
}
