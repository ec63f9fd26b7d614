/* What "auto" stands for when a picture is brought into a network's form. */
#include "apps/pictures/photo.h"
#include "testing.h"

enum { UNIT = 1, AUTO = 4 }; /* of --normalize */

static void a_file_of_ours_says_how(void)
{
    const sdlf_normalization own = {.mean = 51, .scale = 1 / 102.0f, .known = true};
    photo_settings s = {.fit = PHOTO_FIT_AUTO, .normalize = AUTO, .crop = 0.875};
    CHECK_OK(photo_complete(&s, &own));
    CHECK_EQUAL(s.fit, PHOTO_STRETCH);
    for (int i = 0; i < 3; i++) {
        CHECK_CLOSE(s.mean_of[i], 0.2, 1e-6);
        CHECK_CLOSE(s.std_of[i], 0.4, 1e-6);
    }
}

static void what_is_asked_for_wins(void)
{
    const sdlf_normalization own = {.mean = 51, .scale = 1 / 102.0f, .known = true};
    photo_settings s = {.fit = PHOTO_CROP, .normalize = UNIT, .crop = 0.875};
    CHECK_OK(photo_complete(&s, &own));
    CHECK_EQUAL(s.fit, PHOTO_CROP);
    CHECK_CLOSE(s.mean_of[0], 0, 0);
    CHECK_CLOSE(s.std_of[2], 1, 0);
    s = (photo_settings){.fit = PHOTO_FIT_AUTO, .normalize = AUTO, .crop = 0.875, .mean = "0.25"};
    CHECK_OK(photo_complete(&s, &own));
    CHECK_CLOSE(s.mean_of[1], 0.25, 0);
    CHECK_CLOSE(s.std_of[1], 0.4, 1e-6);
}

static void else_it_is_imagenets(void)
{
    const sdlf_normalization unknown = {.mean = 0, .scale = 1};
    const sdlf_normalization *const given[] = {NULL, &unknown};
    for (int i = 0; i < 2; i++) {
        photo_settings s = {.fit = PHOTO_FIT_AUTO, .normalize = AUTO, .crop = 0.875};
        CHECK_OK(photo_complete(&s, given[i]));
        CHECK_EQUAL(s.fit, PHOTO_CROP);
        CHECK_CLOSE(s.mean_of[0], 0.485, 0);
        CHECK_CLOSE(s.std_of[2], 0.225, 0);
    }
}

int main(void)
{
    RUN(a_file_of_ours_says_how);
    RUN(what_is_asked_for_wins);
    RUN(else_it_is_imagenets);
    return test_summary();
}
