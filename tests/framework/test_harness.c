/* SPDX-License-Identifier: MIT */
/* The test harness itself: allocations are counted and fail on demand, and files are in a folder. */
#include "testing.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* Blocks that a shared library allocates and we free are not counted at all. */
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

/* The mock device rejects accesses that would be errors on a real device. */
static void guarded_memory_is_out_of_reach(void)
{
    sdlf_calculator *guarded = NULL;
    CHECK_OK(sdlf_calculator_open(&guarded, "guarded", NULL));
    const float there[2] = {1, 2}, here[2] = {3, 4};
    float back[2] = {0};
    sdlf_binding a = test_tensor(guarded, SDLF_FLOAT32, sdlf_shape(2), there);
    sdlf_binding y = test_tensor(guarded, SDLF_FLOAT32, sdlf_shape(2), NULL);
    sdlf_operation add = {.kind = SDLF_ADD, .in = {a.tensor, a.tensor}, .out = {y.tensor}};
    CHECK_OK(sdlf_calculator_run(guarded, &add));
    CHECK(test_download(&y, back) && back[0] == 2 && back[1] == 4);
    add.in[1].data = (void *)here;
    CHECK_FAILS(sdlf_calculator_run(guarded, &add), SDLF_ERROR_DEVICE, "an operand of add, 2, lies in other memory");
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        _exit(((volatile float *)a.tensor.data)[1] == 2 ? 0 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    test_release(&a);
    test_release(&y);
    sdlf_calculator_close(guarded);
}

static void guarded_work_is_recorded(void)
{
    sdlf_calculator *guarded = NULL;
    CHECK_OK(sdlf_calculator_open(&guarded, "guarded", NULL));
    const sdlf_calculator_class *type = guarded->type;
    const float one = 1;
    float back = 0;
    void *recording = NULL;
    sdlf_binding a = test_tensor(guarded, SDLF_FLOAT32, sdlf_shape(1), &one);
    const sdlf_operation twice = {.kind = SDLF_ADD, .in = {a.tensor, a.tensor}, .out = {a.tensor}};
    CHECK_OK(type->record_begin(guarded));
    CHECK_OK(sdlf_calculator_run(guarded, &twice));
    CHECK_FAILS(type->upload(guarded, a.tensor.data, &one, sizeof one), SDLF_ERROR_DEVICE, "while work is recorded");
    CHECK_FAILS(type->synchronize(guarded), SDLF_ERROR_DEVICE, "while work is recorded");
    CHECK_OK(type->record_end(guarded, &recording));
    CHECK(test_download(&a, &back) && back == 1); /* nothing ran yet */
    for (int i = 0; i < 3; i++) CHECK_OK(type->replay(guarded, recording));
    CHECK(test_download(&a, &back) && back == 8);
    type->discard(guarded, recording);
    test_release(&a);
    sdlf_calculator_close(guarded);
}

int main(void)
{
    RUN(every_allocator_is_counted);
    RUN(blocks_of_others_do_not_confuse);
    RUN(the_chosen_allocation_fails);
    RUN(every_allocation_is_made_to_fail);
    RUN(files_have_a_place);
    RUN(guarded_memory_is_out_of_reach);
    RUN(guarded_work_is_recorded);
    return test_summary();
}
