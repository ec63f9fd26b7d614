/* SPDX-License-Identifier: MIT */
/* The operations of TrivialAugment and RandAugment, compared with torchvision's on PIL images. */
#include "framework/operations/changed_pictures.h"

#include "torch/fixtures.h"

enum { ROOM = 3 * 11 * 9, MOVES_END = 5 };

static void bytes_of(const json_t *array, uint8_t *to)
{
    CHECK_EQUAL(json_array_size(array) <= ROOM, true);
    for (size_t i = 0; i < json_array_size(array) && i < ROOM; i++)
        to[i] = (uint8_t)json_integer_value(json_array_get(array, i));
}

static void as_torchvision(void)
{
    json_t *root = fixtures_open("torch_augment.json"), *item;
    size_t index;
    json_array_foreach(json_object_get(root, "cases"), index, item)
    {
        uint8_t picture[ROOM], after[ROOM], scratch[ROOM];
        const json_t *dims = json_object_get(item, "shape");
        sdlf_shape shape =
            sdlf_shape(json_integer_value(json_array_get(dims, 0)), json_integer_value(json_array_get(dims, 1)),
                       json_integer_value(json_array_get(dims, 2)));
        int operation = (int)fixture_number(item, "operation", -1), wrong = 0;
        float m = (float)fixture_number(item, "step", 0) / 30.0f;
        bytes_of(json_object_get(item, "before"), picture);
        bytes_of(json_object_get(item, "after"), after);
        sdlf_augment_apply(picture, scratch, shape, operation, m, json_is_true(json_object_get(item, "negative")),
                           json_is_true(json_object_get(item, "wide")));
        /* geometric operations: the same pixels; colours: PIL truncates where SDLF rounds */
        for (int64_t i = 0; i < sdlf_shape_count(shape); i++)
            wrong += abs(picture[i] - after[i]) > (operation > MOVES_END ? 1 : 0);
        if (!CHECK(wrong == 0))
            printf("  %s: %d of %d\n", fixture_text(item, "name"), wrong, (int)sdlf_shape_count(shape));
    }
    CHECK(index > 80);
    json_decref(root);
}

int main(void)
{
    RUN(as_torchvision);
    return test_summary();
}
