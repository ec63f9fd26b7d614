/* SPDX-License-Identifier: MIT */
/* sdlf data: the description of a data set, and the sheet of samples. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/image.h>
#include <sdlf/sdlf.h>

#include "apps/program.h"
#include "testing.h"

static void a_set_is_described(void)
{
    const program *p = SDLF(0, "data", "digits:100");
    CHECK_TEXT(p->err, "");
    CHECK_SAYS(p, "  100 train  17 test  1x28x28\n");
    CHECK_SAYS(p, "uint8, classes, ");
    CHECK_SAYS(p, "mean 0.1306  deviation 0.3082  of full white");
    CHECK_SAYS(p, "      9     10  10.0%     2\n");
    p = SDLF(0, "data", "digits:100", "--json");
    CHECK_SAYS(p, "\"samples\": 17,");
    CHECK_SAYS(p, "\"type\": \"uint8\"");
    CHECK_SAYS(SDLF(2, "data"), "a data set");
    CHECK_SAYS(SDLF(2, "data", "nosuch"), "data set 'nosuch' is unknown");
    CHECK_SAYS(SDLF(0, "data", "--help"), "Data sets");
}

static void targets_and_halves_that_are_missing(void)
{
    char set[1200];
    static const char table[] = "u,v,price\n1,2,3.5\n5,6,7.5\n";
    test_write_file(test_path("h.csv"), table, strlen(table));
    snprintf(set, sizeof set, "csv:%s,all", test_path("h.csv"));
    CHECK_SAYS(SDLF(2, "data", test_path("h.csv")), "(did you mean 'csv:");
    CHECK_SAYS(SDLF(2, "data", "."), "data set '.' is unknown (did you mean 'folder:.'?)");
    const program *p = SDLF(0, "data", set, "--targets");
    CHECK_SAYS(p, "float32, float targets");
    CHECK_SAYS(p, "0 price   5.5          2    3.5   7.5\n");
    CHECK_SAYS(p, "channel 1  mean 4.0000  deviation 2.0000\n");
    CHECK_SAYS(SDLF(0, "data", set, "--targets", "--json"), "\"most\": 7.5");
    CHECK_SAYS(SDLF(1, "data", set, "--targets", "--show", test_path("h.png")), "draws pictures of 1 or 3 channels");
    snprintf(set, sizeof set, "npy:%s,%s", test_path("h.csv"), test_path("h.csv"));
    CHECK_SAYS(SDLF(1, "data", set), "h.csv");
}

/* The sheet's images are those of the loader, in its order. */
static void check_sheet(sdlf_loader_options options, const char *const words[3])
{
    if (strstr(sdlf_image_formats(), "PNG") == NULL) {
        test_skip("this build has no PNG");
        return;
    }
    char sheet[1024];
    sdlf_image image = {0};
    sdlf_dataset *data = NULL;
    snprintf(sheet, sizeof sheet, "%s", test_path("sheet.png"));
    const program *p =
        SDLF(0, "data", "digits:100", "--show", sheet, "--count", "16", "--epoch", "2", words[0], words[1], words[2]);
    CHECK_SAYS(p, "drawn  ");
    sdlf_loader *loader = NULL;
    sdlf_batch batch = {.count = 0};
    options.batch = 16;
    options.shuffle = true;
    options.seed = 1;
    CHECK_OK(sdlf_dataset_open(&data, "digits:100", SDLF_SPLIT_TRAIN));
    CHECK_OK(sdlf_loader_create(&loader, data, &options));
    CHECK_OK(sdlf_loader_seek(loader, 1, 0));
    CHECK_OK(sdlf_loader_next(loader, &batch));
    if (CHECK_OK(sdlf_image_read(&image, sheet, 0)) && CHECK(image.width == 8 * 58 - 2 && image.height == 2 * 58 - 2)) {
        const float *value = batch.samples.data;
        int channels = image.channels, differ = 0;
        for (int n = 0; n < 16; n++)
            for (int y = 0; y < 28; y++)
                for (int x = 0; x < 28; x++, value++) { /* each pixel is drawn as 2x2, images are 2 apart */
                    int row = n / 8 * 58 + 2 * y, column = n % 8 * 58 + 2 * x;
                    double wanted = (double)(*value / data->scale + data->mean);
                    differ += abs(image.pixels[(row * image.width + column) * channels] - (int)(wanted + 0.5)) > 0;
                }
        CHECK_EQUAL(differ, 0);
    }
    sdlf_image_release(&image);
    sdlf_loader_free(loader);
    sdlf_dataset_free(data);
    CHECK_SAYS(SDLF(1, "data", "digits:100", "--show", test_path("no/such/folder.png")), "no/such");
}

static void a_sheet_is_drawn(void)
{
    check_sheet((sdlf_loader_options){.augment = {.flip_alternate = true}},
                (const char *const[]){"--augment-flip-alternate", "--seed", "1"});
    check_sheet((sdlf_loader_options){.automatic = {.rand_augment = 2, .rand_magnitude = 20}},
                (const char *const[]){"--augment-rand", "2", "--augment-magnitude=20"});
}

int main(void)
{
    RUN(a_set_is_described);
    RUN(targets_and_halves_that_are_missing);
    RUN(a_sheet_is_drawn);
    return test_summary();
}
