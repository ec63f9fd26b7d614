/* Placement across memory spaces, with a pretended device: the reference calculator in a space of its own, whose memory
 * begins as NaN. A copy that is missing shows as NaN; one too many shows in the counts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "framework/plan_networks.h"
#include "testing.h"

static sdlf_calculator_class device_class;
static int64_t uploaded, downloaded;
static int uploads, downloads;

static sdlf_status open_device(sdlf_calculator *calculator, const sdlf_calculator_options *options)
{
    (void)options;
    calculator->space = "device";
    return SDLF_OK;
}

static sdlf_status allocate_device(sdlf_calculator *calculator, int64_t bytes, void **memory)
{
    sdlf_status status = sdlf_calculator_class_at(0)->allocate(calculator, bytes, memory);
    if (status == SDLF_OK) memset(*memory, 0xff, (size_t)bytes);
    return status;
}

static sdlf_status upload_device(sdlf_calculator *calculator, void *to, const void *host, int64_t bytes)
{
    (void)calculator;
    uploads++;
    uploaded += bytes;
    memcpy(to, host, (size_t)bytes);
    return SDLF_OK;
}

static sdlf_status download_device(sdlf_calculator *calculator, void *host, const void *from, int64_t bytes)
{
    (void)calculator;
    downloads++;
    downloaded += bytes;
    memcpy(host, from, (size_t)bytes);
    return SDLF_OK;
}

static sdlf_calculator *make_device(void)
{
    device_class = *sdlf_calculator_class_at(0);
    CHECK_TEXT(device_class.name, "reference");
    device_class.name = "device";
    device_class.open = open_device;
    device_class.allocate = allocate_device;
    device_class.upload = upload_device;
    device_class.download = download_device;
    sdlf_calculator *device = calloc(1, device_class.size);
    device->type = &device_class;
    device_class.open(device, NULL);
    return device;
}

static sdlf_calculator *open_reference(void)
{
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    return reference;
}

/* Four steps of the branching network under these options; the parameters' hash and the last loss. */
static uint32_t train(sdlf_plan_options options, float *loss)
{
    sdlf_model *net = branching_net(0.25f);
    sdlf_plan *plan = NULL;
    options.batch = 3;
    options.mode = SDLF_TRAIN;
    options.optimizer = sdlf_sgd(.momentum = 0.9f);
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    uint32_t hash = 0;
    if (plan != NULL) {
        float a[150], b[75];
        fill_random(a, 150, 11);
        fill_random(b, 75, 12);
        for (int i = 0; i < 4; i++) {
            CHECK_OK(sdlf_plan_write(plan, "a", a));
            CHECK_OK(sdlf_plan_write(plan, "b", b));
            CHECK_OK(sdlf_plan_write(plan, "labels", (int32_t[]){2, 0, 1}));
            CHECK_OK(sdlf_plan_step(plan, 0.1f));
        }
        CHECK_OK(sdlf_plan_read(plan, "loss", loss));
        sdlf_metrics metrics;
        CHECK_OK(sdlf_plan_metrics(plan, &metrics));
        CHECK_CLOSE(metrics.samples, 12, 0);
        CHECK_OK(sdlf_plan_store_parameters(plan));
        hash = sdlf_model_hash(net);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    return hash;
}

static void every_placement_computes_the_same(void)
{
    sdlf_calculator *host = open_reference(), *device = make_device();
    float expected_loss = NAN, loss = NAN;
    uint32_t expected = train((sdlf_plan_options){.forward = host, .no_fusion = true}, &expected_loss);
    CHECK(isfinite(expected_loss));
    sdlf_placement placements[] = {
        {.layer = "conv2d_2", .forward = device},
        {.layer = "concat", .forward = device, .backward = host},
        {.layer = "batch_norm2d", .forward = host, .backward = device},
        {.layer = "fully_connected", .forward = device, .backward = device},
        {.layer = "loss", .forward = device},
    };
    sdlf_plan_options options[] = {
        {.forward = device},
        {.forward = device, .backward = host},
        {.forward = host, .backward = device},
        {.forward = host, .placement = placements, .placement_count = 5},
        {.forward = device, .placement = placements, .placement_count = 5},
        {.forward = device, .backward = host, .keep_activations = true},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        train(options[i], &loss); /* where calculators differ other steps are fused, and round otherwise */
        CHECK_CLOSE(loss, expected_loss, 1e-6);
        options[i].no_fusion = true;
        CHECK_EQUAL(train(options[i], &loss), expected);
        CHECK_CLOSE(loss, expected_loss, 0);
    }
    float clipped = NAN, placed = NAN;
    uint32_t clipped_hash = train((sdlf_plan_options){.forward = host, .clip_norm = 0.5f, .no_fusion = true}, &clipped);
    sdlf_plan_options mixed = {.forward = device,
                               .backward = host,
                               .placement = placements,
                               .placement_count = 5,
                               .clip_norm = 0.5f,
                               .no_fusion = true};
    CHECK_EQUAL(train(mixed, &placed), clipped_hash);
    CHECK(clipped_hash != expected);
    free(device);
    sdlf_calculator_close(host);
}

/* Forward on the device, backward on the host: per step the new parameters go up, what backward reads comes down. */
static void copies_are_counted(void)
{
    sdlf_calculator *host = open_reference(), *device = make_device();
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_plan_create(
        &plan, net, &(sdlf_plan_options){.batch = 2, .mode = SDLF_TRAIN, .forward = device, .backward = host}));
    if (plan != NULL) {
        float image[72];
        fill_random(image, 72, 1);
        CHECK_OK(sdlf_plan_write(plan, "image", image));
        CHECK_OK(sdlf_plan_write(plan, "labels", (int32_t[]){0, 1}));
        uploads = downloads = 0;
        uploaded = downloaded = 0;
        CHECK_OK(sdlf_plan_step(plan, 0.1f));
        int64_t up = 0, down = 0;
        for (int i = 0; i < sdlf_plan_step_count(plan); i++) {
            sdlf_step_info step = sdlf_plan_step_info(plan, i);
            if (step.phase != SDLF_PHASE_COPY) continue;
            bool to_device = strcmp(step.operation, "copy host to device") == 0;
            *(to_device ? &up : &down) += step.cost.bytes;
            CHECK_TEXT(step.calculator, "device");
        }
        CHECK_EQUAL(up, 4 * sdlf_model_trainable_count(net));
        CHECK_EQUAL(downloaded, down);
        CHECK(uploaded >= up && uploaded <= up + 64); /* and the scalars of the step */
        CHECK(down > 0 && down < 4 * 2 * (36 + 4 * 9 * 2 + 4 * 9 + 36 + 6 + 6 + 3 + 3 + 8));
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    free(device);
    sdlf_calculator_close(host);
}

/* An inference plan's parameters go up once, and a plan that shares has no copies of its own. */
static void inference_uploads_parameters_once(void)
{
    sdlf_calculator *device = make_device();
    sdlf_model *net = small_cnn();
    sdlf_plan *first = NULL, *second = NULL;
    CHECK_OK(sdlf_plan_create(&first, net, &(sdlf_plan_options){.batch = 2, .forward = device}));
    uploaded = 0;
    CHECK_OK(sdlf_plan_create(&second, net, &(sdlf_plan_options){.batch = 1, .forward = device, .share = first}));
    CHECK(uploaded <= 64);
    if (first != NULL && second != NULL) {
        int64_t values = 4 * sdlf_model_trainable_count(net);
        CHECK(sdlf_plan_memory(first).parameters >= 2 * values); /* the model's and the device's */
        CHECK_EQUAL(sdlf_plan_memory(second).parameters, values);
        float image[72], one[6], two[3];
        fill_random(image, 72, 1);
        CHECK_OK(sdlf_plan_write(first, "image", image));
        CHECK_OK(sdlf_plan_write(second, "image", image + 36));
        uploaded = 0;
        CHECK_OK(sdlf_plan_forward(first));
        CHECK_OK(sdlf_plan_forward(second));
        CHECK_EQUAL(uploaded, 0);
        CHECK_OK(sdlf_plan_read(first, "class", one));
        CHECK_OK(sdlf_plan_read(second, "class", two));
        for (int i = 0; i < 3; i++) CHECK_CLOSE(two[i], one[3 + i], 1e-6);
    }
    sdlf_plan_free(second);
    sdlf_plan_free(first);
    sdlf_model_free(net);
    free(device);
}

/* Forward on the device, backward on the host: the device's parameters are those before the last update. A plan that
 * shares must not see them. */
static void sharing_never_shows_old_parameters(void)
{
    sdlf_calculator *host = open_reference(), *device = make_device();
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL, *sharing = NULL, *own = NULL;
    float image[36], shown[3], expected[3];
    fill_random(image, 36, 1);
    sdlf_plan_options options = {.batch = 1, .mode = SDLF_TRAIN, .forward = device, .backward = host};
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    options.mode = SDLF_INFER;
    options.share = plan;
    CHECK_OK(sdlf_plan_create(&sharing, net, &options));
    if (plan != NULL && sharing != NULL) {
        CHECK_OK(sdlf_plan_write(plan, "image", image));
        CHECK_OK(sdlf_plan_write(plan, "labels", (int32_t[]){1}));
        CHECK_OK(sdlf_plan_step(plan, 0.5f));
        CHECK_OK(sdlf_plan_store_parameters(plan));
        CHECK_OK(sdlf_plan_load_parameters(sharing));
        options.share = NULL;
        CHECK_OK(sdlf_plan_create(&own, net, &options));
        CHECK_OK(sdlf_plan_write(sharing, "image", image));
        CHECK_OK(sdlf_plan_forward(sharing));
        CHECK_OK(sdlf_plan_read(sharing, "class", shown));
        CHECK_OK(sdlf_plan_write(own, "image", image));
        CHECK_OK(sdlf_plan_forward(own));
        CHECK_OK(sdlf_plan_read(own, "class", expected));
        for (int i = 0; i < 3; i++) CHECK_CLOSE(shown[i], expected[i], 0);
    }
    sdlf_plan_free(own);
    sdlf_plan_free(sharing);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    free(device);
    sdlf_calculator_close(host);
}

/* Three steps of two plans in turn that share their parameters on a device; timed before the last, or not. */
static uint32_t train_in_turns(sdlf_calculator *device, bool timed)
{
    sdlf_model *net = small_cnn();
    sdlf_plan *plans[2] = {NULL, NULL};
    float image[72];
    fill_random(image, 72, 1);
    sdlf_plan_options options = {
        .batch = 2, .mode = SDLF_TRAIN, .forward = device, .optimizer = sdlf_sgd(.momentum = 0.9f)};
    CHECK_OK(sdlf_plan_create(&plans[0], net, &options));
    options.batch = 1;
    options.share = plans[0];
    CHECK_OK(sdlf_plan_create(&plans[1], net, &options));
    for (int i = 0; plans[0] != NULL && plans[1] != NULL && i < 3; i++) {
        CHECK_OK(sdlf_plan_write(plans[i % 2], "image", image));
        CHECK_OK(sdlf_plan_write(plans[i % 2], "labels", (int32_t[]){1, 2}));
        CHECK_OK(sdlf_plan_step(plans[i % 2], 0.1f));
        if (i == 1 && timed) CHECK_OK(sdlf_plan_time(plans[1], 2));
    }
    if (plans[0] != NULL) CHECK_OK(sdlf_plan_store_parameters(plans[0]));
    uint32_t hash = sdlf_model_hash(net);
    sdlf_plan_free(plans[1]);
    sdlf_plan_free(plans[0]);
    sdlf_model_free(net);
    return hash;
}

static void timing_a_sharing_plan_changes_nothing(void)
{
    sdlf_calculator *device = make_device();
    uint32_t expected = train_in_turns(device, false);
    CHECK_EQUAL(train_in_turns(device, true), expected);
    free(device);
}

/* Each would queue its work by itself, and neither would wait for the other. */
static void one_calculator_a_device(void)
{
    sdlf_calculator *device = make_device(), *other = make_device();
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    sdlf_plan_options options = {.batch = 1, .mode = SDLF_TRAIN, .forward = device, .backward = other};
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT, "two calculators in the memory of device");
    CHECK(plan == NULL);
    sdlf_model_free(net);
    free(other);
    free(device);
}

/* A second training plan with fewer optimiser states leaves the first one's alone. */
static void plans_of_one_model_keep_their_states(void)
{
    sdlf_calculator *host = open_reference();
    sdlf_model *net = small_cnn();
    sdlf_plan *adam = NULL, *plain = NULL;
    float image[36];
    fill_random(image, 36, 1);
    sdlf_plan_options options = {
        .batch = 1, .mode = SDLF_TRAIN, .forward = host, .optimizer = sdlf_adam(.beta1 = 0.8f)};
    CHECK_OK(sdlf_plan_create(&adam, net, &options));
    options.optimizer = sdlf_sgd(.momentum = 0);
    CHECK_OK(sdlf_plan_create(&plain, net, &options));
    if (adam != NULL) {
        CHECK_OK(sdlf_plan_write(adam, "image", image));
        CHECK_OK(sdlf_plan_write(adam, "labels", (int32_t[]){1}));
        CHECK_OK(sdlf_plan_step(adam, 0.01f));
        for (int i = 0; i < sdlf_model_parameter_count(net); i++) {
            const sdlf_parameter *parameter = sdlf_model_parameter(net, i);
            if (parameter->spec.trainable) CHECK(sdlf_tensor_present(&parameter->state[1]));
        }
    }
    sdlf_plan_free(plain);
    sdlf_plan_free(adam);
    sdlf_model_free(net);
    sdlf_calculator_close(host);
}

static void a_missing_kernel_is_named(void)
{
    sdlf_calculator *device = make_device();
    device_class.kernel[SDLF_MAX_POOL2D_FORWARD] = (sdlf_kernel_slot){.run = NULL};
    device_class.kernel[SDLF_CONV2D_RELU_MAX_POOL_FORWARD] = (sdlf_kernel_slot){.run = NULL};
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    sdlf_status status = sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = device});
    CHECK_FAILS(status, SDLF_ERROR_UNSUPPORTED, "max_pool2d_forward");
    CHECK_FAILS(status, SDLF_ERROR_UNSUPPORTED, "'max_pool2d'");
    CHECK_FAILS(status, SDLF_ERROR_UNSUPPORTED, "calculator 'device'");
    CHECK(plan == NULL);
    sdlf_model_free(net);
    free(device);
}

int main(void)
{
    RUN(every_placement_computes_the_same);
    RUN(copies_are_counted);
    RUN(inference_uploads_parameters_once);
    RUN(sharing_never_shows_old_parameters);
    RUN(timing_a_sharing_plan_changes_nothing);
    RUN(one_calculator_a_device);
    RUN(plans_of_one_model_keep_their_states);
    RUN(a_missing_kernel_is_named);
    return test_summary();
}
