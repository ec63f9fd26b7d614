/* SPDX-License-Identifier: MIT */
/* The memory budget for reading a file, and readers that respect it: nothing is allocated for rejected files. */
#include "framework/formats/budget.h"

#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "framework/formats/safetensors.h"
#include "testing.h"

static const int64_t mega = 1 << 20;

static read_budget budget_of(int64_t stored, int64_t asked)
{
    read_budget budget;
    CHECK_OK(read_budget_make(&budget, stored, asked));
    return budget;
}

static void it_follows_the_file_and_the_machine(void)
{
    CHECK(setenv("SDLF_MEMORY", "100G", 1) == 0);
    CHECK_EQUAL(budget_of(0, 0).most, 128 * mega);
    CHECK_EQUAL(budget_of(mega, 0).limit, 160 * mega);
    CHECK_EQUAL(budget_of(INT64_MAX, 0).most, INT64_MAX);
    CHECK(budget_of(INT64_MAX, 0).limit <= 51200 * mega);
    read_budget budget = budget_of(mega, 0);
    read_budget_add_stored(&budget, mega);
    CHECK_EQUAL(budget.most, 192 * mega);
    read_budget_add_stored(&budget, INT64_MAX);
    CHECK_EQUAL(budget.most, INT64_MAX);
    CHECK(setenv("SDLF_MEMORY", "1M", 1) == 0); /* all of it is in use */
    budget = budget_of(mega, 0);
    CHECK(budget.limit == 0 && budget.most == 160 * mega);
    CHECK(!read_budget_take(&budget, 1));
    CHECK_FAILS(read_budget_fail(&budget), SDLF_ERROR_MEMORY, "half of what is available");
    CHECK(unsetenv("SDLF_MEMORY") == 0);
}

static void who_asks_for_more_has_it(void)
{
    CHECK(setenv("SDLF_READ_MEMORY", "5M", 1) == 0);
    CHECK_EQUAL(budget_of(mega, 0).most, 5 * mega);
    CHECK_EQUAL(budget_of(mega, 7).limit, 7);
    read_budget budget = budget_of(mega, 7), none;
    read_budget_add_stored(&budget, mega);
    CHECK_EQUAL(budget.most, 7);
    CHECK(setenv("SDLF_READ_MEMORY", "5 M", 1) == 0);
    CHECK_FAILS(read_budget_make(&none, 1, 0), SDLF_ERROR_ARGUMENT, "SDLF_READ_MEMORY is '5 M'");
    CHECK_OK(read_budget_make(&none, 1, 7));
    CHECK(unsetenv("SDLF_READ_MEMORY") == 0);
}

static void it_comes_to_its_end(void)
{
    read_budget budget = budget_of(1000, 100), none = {.most = 0};
    CHECK(read_budget_take(&budget, 60) && !read_budget_take(&budget, 41) && read_budget_take(&budget, 40));
    CHECK(!read_budget_take(&budget, 1) && read_budget_take(&budget, 0));
    CHECK_FAILS(read_budget_fail(&budget), SDLF_ERROR_MEMORY,
                "more than the 100 bytes of memory that reading a file of 1.0 kB may take; SDLF_READ_MEMORY");
    read_budget_give_back(&budget, 100);
    CHECK(read_budget_take(&budget, 100));
    CHECK_OK(read_budget_check(&budget, 100, "them"));
    CHECK_FAILS(read_budget_check(&budget, 101, "them"), SDLF_ERROR_MEMORY, "them: 101 bytes, more than the 100 bytes");
    CHECK(read_budget_take(&none, INT64_MAX) && read_budget_take(NULL, INT64_MAX));
    CHECK_OK(read_budget_check(&none, INT64_MAX, "all"));
    read_budget_give_back(NULL, 1);
    CHECK_FAILS(read_budget_fail(NULL), SDLF_ERROR_MEMORY, "out of memory");
    CHECK_FAILS(read_budget_fail(&none), SDLF_ERROR_MEMORY, "out of memory");
}

static void whole_files(void)
{
    static const char bytes[1000];
    const char *path = test_path("whole");
    size_t most;
    test_write_file(path, bytes, sizeof bytes);
    CHECK_OK(read_budget_file(&most, path, 2));
    CHECK(most >= sizeof bytes);
    CHECK(setenv("SDLF_READ_MEMORY", "2000", 1) == 0);
    CHECK_OK(read_budget_file(&most, path, 2));
    CHECK_EQUAL(most, 1000);
    CHECK(setenv("SDLF_READ_MEMORY", "1999", 1) == 0);
    CHECK_FAILS(read_budget_file(&most, path, 2), SDLF_ERROR_MEMORY,
                "whole: 2 times its size is more than the 2.0 kB of memory that reading a file of 1.0 kB may take");
    CHECK_OK(read_budget_file(&most, "/dev/zero", 2)); /* whose size is meaningless */
    CHECK_EQUAL(most, 999);
    CHECK_OK(read_budget_file(&most, "/none", 2)); /* reported by its reader */
    CHECK(unsetenv("SDLF_READ_MEMORY") == 0);
    CHECK(setenv("SDLF_MEMORY", "4M", 1) == 0); /* half of that, however much is in use */
    CHECK_OK(read_budget_file(&most, "/dev/zero", 2));
    CHECK(most <= mega);
    CHECK(unsetenv("SDLF_MEMORY") == 0);
}

/* The interface for readers outside the library. */
static void others_may_ask(void)
{
    CHECK_OK(sdlf_machine_check_reading(mega, 0, "it"));
    CHECK_OK(sdlf_machine_check_reading(INT64_MIN, INT64_MIN, "it"));
    CHECK_FAILS(sdlf_machine_check_reading(INT64_MAX, mega, "a.jsonl: its JSON"), SDLF_ERROR_MEMORY,
                "a.jsonl: its JSON becomes 9.2 EB: more than the ");
    CHECK(setenv("SDLF_READ_MEMORY", "1M", 1) == 0);
    CHECK_OK(sdlf_machine_check_reading(mega, 0, "it"));
    CHECK_FAILS(sdlf_machine_check_reading(mega + 1, 7 * mega, NULL), SDLF_ERROR_MEMORY,
                "what is read becomes 1.0 MB: more than the 1.0 MB of memory that reading a file of 7.3 MB may take; "
                "SDLF_READ_MEMORY");
    CHECK(setenv("SDLF_READ_MEMORY", "much", 1) == 0);
    CHECK_FAILS(sdlf_machine_check_reading(0, 0, "it"), SDLF_ERROR_ARGUMENT, "SDLF_READ_MEMORY is 'much'");
    CHECK(unsetenv("SDLF_READ_MEMORY") == 0);
}

/* "[" and that many copies of `item`, separated by commas. */
static char *list_of(const char *before, const char *item, int count, const char *after)
{
    size_t length = strlen(item);
    char *text = malloc(strlen(before) + (length + 1) * (size_t)count + strlen(after) + 1);
    if (text == NULL) abort();
    char *at = stpcpy(text, before);
    for (int i = 0; i < count; i++) {
        if (i > 0) *at++ = ',';
        memcpy(at, item, length);
        at += length;
    }
    strcpy(at, after);
    return text;
}

/* 3 MB of empty objects would become 250 MB: more than 128 MB plus 32 times 3 MB. */
static void json_is_weighed_before_it_is_parsed(void)
{
    static const char *const items[] = {"{}", "[]", "{\"\":{}}"};
    for (int i = 0; i < 3; i++) {
        char *text = list_of("{\"layers\": [", items[i], 1200000, "]}");
        sdlf_model *model;
        safetensors_header header;
        test_reset_peak();
        int64_t before = test_live_bytes();
        CHECK_FAILS(sdlf_network_parse(&model, text, strlen(text), "net.json"), SDLF_ERROR_MEMORY,
                    "net.json: its JSON becomes ");
        CHECK_FAILS(safetensors_header_parse(&header, text, strlen(text), 0, "w.safetensors"), SDLF_ERROR_MEMORY,
                    "w.safetensors: a header of ");
        CHECK(test_peak_bytes() - before < mega);
        free(text);
    }
}

/* A header of a hundred thousand tensors, more than any model has, is far below it. */
static void real_headers_pass(void)
{
    char *text = list_of("{\"x\":[", "{\"dtype\":\"F32\",\"shape\":[768,3072],\"data_offsets\":[2359296,11796480]}",
                         100000, "]}");
    safetensors_header header;
    CHECK_FAILS(safetensors_header_parse(&header, text, strlen(text), 0, "w"), SDLF_ERROR_FORMAT, "tensor 'x'");
    free(text);
}

/* A header is trusted if its content fits in memory, because the length of a pipe is unknown. */
static void arrays_are_held_against_the_machine(void)
{
    sdlf_tensor tensor;
    CHECK(setenv("SDLF_MEMORY", "1G", 1) == 0);
    CHECK_FAILS(read_tensor_create(&tensor, SDLF_FLOAT32, sdlf_shape(1000, 1000, 1000), "a.npy"), SDLF_ERROR_MEMORY,
                "a.npy: 4.0 GB of memory are needed, and ");
    CHECK(unsetenv("SDLF_MEMORY") == 0);
}

int main(void)
{
    RUN(it_follows_the_file_and_the_machine);
    RUN(who_asks_for_more_has_it);
    RUN(it_comes_to_its_end);
    RUN(whole_files);
    RUN(others_may_ask);
    RUN(json_is_weighed_before_it_is_parsed);
    RUN(real_headers_pass);
    RUN(arrays_are_held_against_the_machine);
    return test_summary();
}
