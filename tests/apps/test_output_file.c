/* Reports in files: whole or as they were. */
#include "testing.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "apps/output_file.h"

/* The file's text, in static storage. */
static const char *text_of(const char *path)
{
    static char text[256];
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static bool print_text(FILE *file, const void *text)
{
    return fputs(text, file) != EOF;
}

static bool print_half(FILE *file, const void *text)
{
    fputs(text, file);
    return false;
}

static void writes_and_replaces(void)
{
    const char *path = test_path("report.json");
    CHECK_OK(output_file_write(path, print_text, "one, and longer\n"));
    CHECK_TEXT(text_of(path), "one, and longer\n");
    CHECK_OK(output_file_write(path, print_text, "two\n"));
    CHECK_TEXT(text_of(path), "two\n");
    CHECK_FAILS(output_file_write(test_path("none/report.json"), print_text, "three"), SDLF_ERROR_IO, "none");
}

/* A disk that fills up: files end after ten bytes. */
static void full_disk_leaves_the_old(void)
{
    const char *path = test_path("kept.svg");
    CHECK_OK(output_file_write(path, print_text, "old\n"));
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    struct rlimit less = {.rlim_cur = 10, .rlim_max = limit.rlim_max};
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &less) == 0);
    sdlf_status status = output_file_write(path, print_text, "new, and much longer than ten bytes\n");
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    signal(SIGXFSZ, before);
    CHECK_FAILS(status, SDLF_ERROR_IO, "kept.svg");
    CHECK_TEXT(text_of(path), "old\n");
}

static void half_a_report_is_none(void)
{
    const char *path = test_path("half.json");
    CHECK_OK(output_file_write(path, print_text, "old\n"));
    CHECK(output_file_write(path, print_half, "{\"half\":") != SDLF_OK);
    CHECK_TEXT(text_of(path), "old\n");
}

int main(void)
{
    RUN(writes_and_replaces);
    RUN(full_disk_leaves_the_old);
    RUN(half_a_report_is_none);
    return test_summary();
}
