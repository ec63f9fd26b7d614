/* The test harness itself: allocations are counted and fail on demand, files have a place. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void every_allocator_is_counted(void)
{
    int64_t count = test_allocations(), live = test_live_allocations();
    void *block[6] = {malloc(8), calloc(2, 8), realloc(NULL, 8), aligned_alloc(64, 64), NULL, strdup("text")};
    CHECK_EQUAL(posix_memalign(&block[4], 64, 64), 0);
    CHECK_EQUAL(test_allocations(), count + 6);
    CHECK_EQUAL(test_live_allocations(), live + 6);
    block[0] = realloc(block[0], 100000);
    CHECK_EQUAL(test_live_allocations(), live + 6);
    CHECK_TEXT(block[5], "text");
    for (int i = 0; i < 6; i++) free(block[i]);
    free(NULL);
    CHECK_EQUAL(test_live_allocations(), live);
}

/* What a shared library allocated and we free is not counted, neither way. */
static void blocks_of_others_do_not_confuse(void)
{
    int64_t live = test_live_allocations();
    char *canonical = realpath("/", NULL); /* allocated inside libc */
    CHECK_TEXT(canonical, "/");
    CHECK_EQUAL(test_live_allocations(), live);
    free(canonical);
    CHECK_EQUAL(test_live_allocations(), live);
}

static void the_chosen_allocation_fails(void)
{
    test_fail_allocation(2);
    void *first = malloc(1), *second = malloc(1), *third = malloc(1);
    CHECK(first && !second && third);
    CHECK(test_allocation_failed());
    test_fail_allocation(0);
    CHECK(!test_allocation_failed());
    free(first);
    free(third);
}

static sdlf_status two_blocks(void *calls)
{
    ++*(int *)calls;
    void *first = malloc(1), *second = first ? malloc(1) : NULL;
    bool ok = first && second;
    free(second);
    free(first);
    return ok ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "none left");
}

static void every_allocation_is_made_to_fail(void)
{
    int calls = 0;
    test_every_allocation("two blocks", two_blocks, &calls);
    CHECK_EQUAL(calls, 3);
}

static void files_have_a_place(void)
{
    const char *path = test_path("a file");
    test_write_file(path, "text", 4);
    struct stat info;
    CHECK_EQUAL(stat(path, &info), 0);
    CHECK_EQUAL(info.st_size, 4);
    CHECK(strcmp(test_path("b"), test_path("c")) != 0);
}

int main(void)
{
    RUN(every_allocator_is_counted);
    RUN(blocks_of_others_do_not_confuse);
    RUN(the_chosen_allocation_fails);
    RUN(every_allocation_is_made_to_fail);
    RUN(files_have_a_place);
    return test_summary();
}
