/* SPDX-License-Identifier: MIT */
/* A pretended /proc and /sys below a folder of the test's. */
#ifndef SDLF_TESTS_FRAMEWORK_MACHINE_FIXTURE_H
#define SDLF_TESTS_FRAMEWORK_MACHINE_FIXTURE_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "testing.h"

/* A fresh, empty root, in `root`. */
static inline void fixture_begin(char *root, size_t size)
{
    static int count;
    char name[32];
    snprintf(name, sizeof name, "root%d", count++);
    snprintf(root, size, "%s", test_path(name));
    CHECK(mkdir(root, 0700) == 0);
}

/* A file of that text at ROOT and `path`, its folders made. */
static inline void fixture_put(const char *root, const char *path, const char *text)
{
    char whole[6000];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        CHECK(mkdir(whole, 0700) == 0 || errno == EEXIST);
        *at = '/';
    }
    test_write_file(whole, text, strlen(text));
}

#endif
