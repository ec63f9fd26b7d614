/* SPDX-License-Identifier: MIT */
/* Event files: the framing of records, the encoding of fields, and the content of the file of a run. */
#include "testing.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/formats.h>

#include "apps/program.h"
#include "apps/tensorboard/events.h"
#include "apps/tensorboard/message.h"
#include "apps/tensorboard/record.h"

/* RFC 3720, B.4, and the usual check value. */
static void crc_is_castagnolis(void)
{
    unsigned char zeros[32] = {0};
    CHECK_EQUAL(record_crc("123456789", 9), 0xe3069283);
    CHECK_EQUAL(record_crc(zeros, sizeof zeros), 0x8a9136aa);
    CHECK_EQUAL(record_crc("", 0), 0);
}

/* The record that TensorFlow writes for these three bytes. */
static void a_record_is_framed(void)
{
    static const unsigned char expected[] = {3, 0, 0, 0, 0, 0, 0, 0};
    const char *path = test_path("record");
    FILE *file = fopen(path, "wb");
    CHECK(record_write(file, "abc", 3));
    fclose(file);
    unsigned char found[32];
    file = fopen(path, "rb");
    CHECK_EQUAL((int64_t)fread(found, 1, sizeof found, file), 8 + 4 + 3 + 4);
    fclose(file);
    CHECK(memcmp(found, expected, sizeof expected) == 0);
    CHECK(memcmp(found + 12, "abc", 3) == 0);
    uint32_t crc = record_crc("abc", 3), mask = (crc >> 15 | crc << 17) + 0xa282ead8;
    for (int i = 0; i < 4; i++) CHECK_EQUAL(found[15 + i], (mask >> (8 * i)) & 0xff);
}

/* The examples of the encoding's manual: 150 as field 1, "testing" as field 2, a message in field 3; and a double. */
static void fields_are_encoded(void)
{
    static const unsigned char expected[] = {0x08, 0x96, 0x01, 0x12, 0x07, 't',  'e',  's',  't',  'i',  'n',
                                             'g',  0x1a, 0x03, 0x08, 0x96, 0x01, 0x21, 0x00, 0x00, 0x00, 0x00,
                                             0x00, 0x00, 0xf0, 0x3f, 0x2d, 0x00, 0x00, 0x80, 0x3f};
    message m = {.bytes = NULL}, inner = {.bytes = NULL};
    message_integer(&m, 1, 150);
    message_text(&m, 2, "testing");
    message_integer(&inner, 1, 150);
    message_put(&m, 3, &inner);
    message_double(&m, 4, 1.0);
    message_float(&m, 5, 1.0f);
    CHECK_EQUAL((int64_t)m.length, (int64_t)sizeof expected);
    CHECK(m.length == sizeof expected && memcmp(m.bytes, expected, sizeof expected) == 0);
    message_release(&m);
    message_integer(&m, 1, -1);
    CHECK_EQUAL((int64_t)m.length, 11); /* negative: all 64 bits */
    message_release(&m);
}

/* The bytes of the only file in a folder; the caller frees them. */
static char *read_only_file(const char *folder, size_t *length)
{
    char path[2048] = "";
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        if (strncmp(entry->d_name, "events.out.tfevents.", 20) == 0)
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (entries) closedir(entries);
    FILE *file = fopen(path, "rb");
    char *bytes = calloc(1, 1 << 22);
    *length = file ? fread(bytes, 1, (1 << 22) - 1, file) : 0;
    if (file) fclose(file);
    return bytes;
}

static bool holds(const char *bytes, size_t length, const char *text)
{
    return memmem(bytes, length, text, strlen(text)) != NULL;
}

static void a_run_writes_its_events(void)
{
#if !defined SDLF_HAVE_PNG
    test_skip("built without libpng");
    return;
#endif
    char folder[1024], histograms[1024];
    snprintf(folder, sizeof folder, "%s", test_path("runs/a"));
    snprintf(histograms, sizeof histograms, "%s", test_path("runs/b"));
    SDLF(0, "train", "--net", small_network(), "--data", "digits:600,3", "--epochs", "2", "--no-save", "--quiet",
         "--augment-shift", "2", "--tensorboard", folder, "--log-steps", "4");
    size_t length;
    char *bytes = read_only_file(folder, &length);
    static const char *const tags[] = {"brain.Event:2",
                                       "loss/train",
                                       "accuracy/test",
                                       "learning_rate",
                                       "samples_per_second",
                                       "samples/first",
                                       "samples/augmented",
                                       "confusion",
                                       "_hparams_/experiment",
                                       "_hparams_/session_start_info",
                                       "_hparams_/session_end_info",
                                       "max_pool2d"};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (!CHECK(holds(bytes, length, tags[i]))) fprintf(stderr, "no %s\n", tags[i]);
    }
    CHECK(!holds(bytes, length, "fully_connected.weight"));
    free(bytes);
    SDLF(0, "train", "--net", small_network(), "--data", "digits:600,3", "--epochs", "1", "--no-save", "--quiet",
         "--tensorboard", histograms, "--histograms");
    bytes = read_only_file(histograms, &length);
    CHECK(holds(bytes, length, "fully_connected.weight"));
    CHECK(!holds(bytes, length, "gradients/"));
    CHECK(!holds(bytes, length, "samples/augmented"));
    free(bytes);
}

static int64_t hash_of(const char *path)
{
    sdlf_model *model = NULL;
    int64_t hash = CHECK_OK(sdlf_model_open(&model, path)) ? (int64_t)sdlf_model_hash(model) : -1;
    sdlf_model_free(model);
    return hash;
}

/* They are written on request, and training gives the same weights. */
static void gradients_leave_training_alone(void)
{
    char folder[1024], plain[1024], watched[1024];
    snprintf(folder, sizeof folder, "%s", test_path("runs/c"));
    snprintf(plain, sizeof plain, "%s", test_path("plain.safetensors"));
    snprintf(watched, sizeof watched, "%s", test_path("watched.safetensors"));
    /* batch normalisation, whose running statistics a forward pass of training would change */
    SDLF(0, "train", "--net", "resnet20", "--data", "digits:64,3", "--epochs", "2", "--batch", "32", "--no-test",
         "--quiet", "--out", plain);
    SDLF(0, "train", "--net", "resnet20", "--data", "digits:64,3", "--epochs", "2", "--batch", "32", "--no-test",
         "--quiet", "--out", watched, "--tensorboard", folder, "--gradient-histograms");
    size_t length;
    char *bytes = read_only_file(folder, &length);
    CHECK(holds(bytes, length, "gradients/"));
    CHECK(holds(bytes, length, ".weight"));
    CHECK(!holds(bytes, length, "running_mean")); /* which nothing trains */
    free(bytes);
    CHECK_EQUAL(hash_of(watched), hash_of(plain));
}

static void says_what_is_wrong(void)
{
    CHECK_SAYS(SDLF(2, "train", "--histograms"),
               "--histograms are written for TensorBoard, and need --tensorboard DIR");
    CHECK_SAYS(SDLF(2, "train", "--gradient-histograms"),
               "--gradient-histograms are written for TensorBoard, and need --tensorboard DIR");
    const char *file = test_path("file");
    test_write_file(file, "x", 1);
    CHECK_SAYS(SDLF(1, "train", "--no-save", "--tensorboard", file), "expected a folder, or a path to create one");
}

int main(void)
{
    RUN(crc_is_castagnolis);
    RUN(a_record_is_framed);
    RUN(fields_are_encoded);
    RUN(a_run_writes_its_events);
    RUN(gradients_leave_training_alone);
    RUN(says_what_is_wrong);
    return test_summary();
}
