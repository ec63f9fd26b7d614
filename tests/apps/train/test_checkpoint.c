/* SPDX-License-Identifier: MIT */
/* sdlf train when its weights cannot be written, for a while or at all: it continues, reports this, and keeps the old
 * file. */
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/program.h"

/* The number of occurrences of `text` in a file. */
static int count_in(const char *path, const char *text)
{
    static char bytes[1 << 16];
    FILE *file = fopen(path, "rb");
    bytes[file ? fread(bytes, 1, sizeof bytes - 1, file) : 0] = '\0';
    if (file) fclose(file);
    int count = 0;
    for (const char *at = bytes; (at = strstr(at, text)); at++) count++;
    return count;
}

static void a_full_disk_ends_no_training(void)
{
    static program p;
    const char *out = test_path("full.safetensors"), *log = test_path("full.log");
    CHECK(symlink("/dev/full", out) == 0);
    p = (program){.code = 0};
    program_run(&p, (const char *const[]){"train", "--net", small_network(), "--data", "digits:200", "--calculator",
                                          "reference", "--epochs", "3", "--out", out, "--log", log, NULL});
    CHECK_EQUAL(p.code, 1);
    CHECK_SAYS(&p, "epoch 3/3  loss ");
    CHECK_SAYS(&p, "warning: cannot write '/dev/full': No space left on device");
    CHECK_SAYS(&p, "; training goes on, and saves after the next epoch");
    CHECK_SAYS(&p, "error: cannot write '/dev/full': No space left on device");
    CHECK(strstr(p.err, "still has") == NULL);
    CHECK_EQUAL(count_in(log, "\"event\":\"epoch\""), 3);
    CHECK_EQUAL(count_in(log, "{\"event\":\"unsaved\",\"epoch\":"), 2); /* the last one is an error */
    CHECK_EQUAL(count_in(log, "\"event\":\"end\",\"status\":\"io\""), 1);
}

/* Space becomes available during training. */
static void a_full_disk_may_pass(void)
{
    static program p;
    const char *out = test_path("passing.safetensors"), *log = test_path("passing.log");
    CHECK(symlink("/dev/full", out) == 0);
    p = (program){.code = 0};
    program_start(&p, (const char *const[]){"train", "--net", small_network(), "--data", "digits:200", "--calculator",
                                            "reference", "--epochs", "4", "--out", out, "--log", log, NULL});
    CHECK(program_wait_for(&p, "epoch 2/4"));
    CHECK(unlink(out) == 0);
    program_finish(&p);
    CHECK_EQUAL(p.code, 0);
    CHECK_SAYS(&p, "warning: cannot write");
    CHECK(count_in(log, "\"event\":\"unsaved\"") >= 1);
    CHECK_SAYS(SDLF(2, "train", "--resume", out, "--epochs", "4"), "has done its 4 epochs");
}

/* The file of an earlier epoch is reported, and is complete. */
static void the_earlier_file_stays(void)
{
    static program p;
    const char *out = test_path("kept.safetensors"), *kept = test_path("elsewhere.safetensors");
    CHECK(symlink(kept, out) == 0);
    p = (program){.code = 0};
    program_start(&p, (const char *const[]){"train", "--net", small_network(), "--data", "digits:20000", "--calculator",
                                            "reference", "--epochs", "2", "--out", out, NULL});
    CHECK(program_wait_for(&p, "epoch 1/2"));
    while (access(kept, F_OK) != 0) usleep(1000);
    CHECK(unlink(out) == 0 && symlink("/dev/full", out) == 0);
    program_finish(&p);
    CHECK_EQUAL(p.code, 1);
    CHECK_SAYS(&p, "kept.safetensors still holds the state after epoch 1.");
    SDLF(0, "eval", "--weights", kept, "--data", "digits:200");
}

int main(void)
{
    RUN(a_full_disk_ends_no_training);
    RUN(a_full_disk_may_pass);
    RUN(the_earlier_file_stays);
    return test_summary();
}
