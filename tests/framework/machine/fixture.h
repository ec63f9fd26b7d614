/* SPDX-License-Identifier: MIT */
/* A mock /proc and /sys in the test's folder. */
#ifndef SDLF_TESTS_FRAMEWORK_MACHINE_FIXTURE_H
#define SDLF_TESTS_FRAMEWORK_MACHINE_FIXTURE_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "testing.h"

/* Create a fresh, empty root and write its path to `root`. */
static inline void fixture_begin(char *root, size_t size)
{
    static int count;
    char name[32];
    snprintf(name, sizeof name, "root%d", count++);
    snprintf(root, size, "%s", test_path(name));
    CHECK(mkdir(root, 0700) == 0);
}

/* Write a file with that text at ROOT/`path`, creating its folders. */
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
