/* SPDX-License-Identifier: MIT */
/* The message of the last error, and the error callback. */
#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "testing.h"

typedef struct told {
    int count;
    sdlf_status status;
    char text[256];
    bool fails; /* calls a function that fails, too */
} told;

static void note(sdlf_status status, const char *message, void *user)
{
    told *t = user;
    t->count++;
    t->status = status;
    snprintf(t->text, sizeof t->text, "%s", message);
    if (t->fails) CHECK_EQUAL(sdlf_model_status(NULL), SDLF_ERROR_MEMORY);
}

static void messages_are_told(void)
{
    told t = {.count = 0};
    sdlf_set_message_function(note, &t);
    CHECK_EQUAL(sdlf_fail(SDLF_ERROR_SHAPE, "expected %d", 3), SDLF_ERROR_SHAPE);
    CHECK(t.count == 1 && t.status == SDLF_ERROR_SHAPE && strcmp(t.text, "expected 3") == 0);
    CHECK_EQUAL(sdlf_fail_context(SDLF_ERROR_SHAPE, "layer"), SDLF_ERROR_SHAPE);
    CHECK(t.count == 2 && strcmp(t.text, "layer: expected 3") == 0);
    CHECK_EQUAL(sdlf_fail_context(SDLF_OK, "layer"), SDLF_OK);
    CHECK_EQUAL(t.count, 2);
    t.fails = true;
    sdlf_fail(SDLF_ERROR_IO, "no file");
    CHECK_EQUAL(t.count, 3); /* not for the nested failure */
    CHECK(strcmp(sdlf_error_message(), "no file") == 0);
    sdlf_set_message_function(NULL, NULL);
    sdlf_fail(SDLF_ERROR_IO, "another");
    CHECK_EQUAL(t.count, 3);
}

static void the_version_is_one(void)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", SDLF_VERSION_MAJOR, SDLF_VERSION_MINOR, SDLF_VERSION_PATCH);
    CHECK(strcmp(text, SDLF_VERSION) == 0);
    CHECK(strcmp(sdlf_version(), SDLF_VERSION) == 0);
}

int main(void)
{
    RUN(messages_are_told);
    RUN(the_version_is_one);
    return test_summary();
}
