/* SPDX-License-Identifier: MIT */
/* Queues of calculators that have them: transfers in order, fences between the queues, waiting, registered memory.
 *
 * A ring of two slots in the device's memory is filled by one queue and emptied by the other without a pause, so that
 * each slot is used many times: without one of the fences, a value is overwritten before it is read, or read before it
 * is written ("guarded" ensures that, in both directions). */
#include "testing.h"

enum { ITEMS = 40, PLACES = 2, COUNT = 100 };

typedef struct ring {
    sdlf_calculator *calculator;
    const sdlf_queue_class *queues;
    float *sent, *received; /* ITEMS x COUNT, for queued transfers */
    void *place[PLACES], *doubled;
    sdlf_fence *filled[PLACES], *emptied[PLACES];
} ring;

static void open_ring(ring *r)
{
    const sdlf_calculator_class *type = r->calculator->type;
    const int64_t bytes = COUNT * (int64_t)sizeof(float);
    CHECK_OK(r->queues->allocate_host(r->calculator, ITEMS * bytes, (void **)&r->sent));
    CHECK_OK(r->queues->allocate_host(r->calculator, ITEMS * bytes, (void **)&r->received));
    CHECK_OK(type->allocate(r->calculator, bytes, &r->doubled));
    for (int i = 0; i < PLACES; i++) {
        CHECK_OK(type->allocate(r->calculator, bytes, &r->place[i]));
        CHECK_OK(r->queues->fence_create(r->calculator, &r->filled[i]));
        CHECK_OK(r->queues->fence_create(r->calculator, &r->emptied[i]));
    }
}

static void close_ring(ring *r)
{
    CHECK_OK(r->calculator->type->synchronize(r->calculator));
    for (int i = 0; i < PLACES; i++) {
        r->queues->fence_free(r->calculator, r->filled[i]);
        r->queues->fence_free(r->calculator, r->emptied[i]);
        r->calculator->type->deallocate(r->calculator, r->place[i]);
    }
    r->calculator->type->deallocate(r->calculator, r->doubled);
    r->queues->deallocate_host(r->calculator, r->sent);
    r->queues->deallocate_host(r->calculator, r->received);
    r->queues->fence_free(r->calculator, NULL);
}

/* Upload item i in one queue; double and download it in the other. */
static void pass(ring *r, int i)
{
    const sdlf_queue_class *queues = r->queues;
    sdlf_calculator *calculator = r->calculator;
    const int64_t bytes = COUNT * (int64_t)sizeof(float);
    void *place = r->place[i % PLACES];
    CHECK_OK(queues->fence_follow(calculator, SDLF_QUEUE_TRANSFER, r->emptied[i % PLACES]));
    CHECK_OK(queues->upload(calculator, SDLF_QUEUE_TRANSFER, place, r->sent + i * COUNT, bytes));
    CHECK_OK(queues->fence_set(calculator, SDLF_QUEUE_TRANSFER, r->filled[i % PLACES]));
    CHECK_OK(queues->fence_follow(calculator, SDLF_QUEUE_COMPUTE, r->filled[i % PLACES]));
    sdlf_tensor x = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(COUNT), place);
    CHECK_OK(sdlf_calculator_run(calculator, &(sdlf_operation){
                                                 .kind = SDLF_ADD,
                                                 .in = {x, x},
                                                 .out = {sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(COUNT), r->doubled)},
                                             }));
    CHECK_OK(queues->fence_set(calculator, SDLF_QUEUE_COMPUTE, r->emptied[i % PLACES]));
    CHECK_OK(queues->download(calculator, SDLF_QUEUE_COMPUTE, r->received + i * COUNT, r->doubled, bytes));
}

static void check_ring(const char *name)
{
    ring r = {.calculator = NULL};
    if (!CHECK_OK(sdlf_calculator_open(&r.calculator, name, NULL))) return;
    r.queues = r.calculator->type->queues;
    open_ring(&r);
    for (int e = 0; e < ITEMS * COUNT; e++) r.sent[e] = (float)(e + 1);
    for (int i = 0; i < ITEMS; i++) CHECK_OK(r.queues->fence_wait(r.calculator, r.filled[i % PLACES])); /* never set */
    for (int i = 0; i < ITEMS; i++) pass(&r, i);
    CHECK_OK(r.calculator->type->synchronize(r.calculator));
    int64_t wrong = 0;
    for (int e = 0; e < ITEMS * COUNT; e++) wrong += r.received[e] != 2 * r.sent[e];
    CHECK_EQUAL(wrong, 0);

    sdlf_fence *last = NULL; /* after waiting for a fence, everything queued before it is visible */
    CHECK_OK(r.queues->fence_create(r.calculator, &last));
    bool never_set = false;
    CHECK_OK(r.queues->fence_passed(r.calculator, last, &never_set));
    CHECK(never_set);
    for (int i = 0; i < ITEMS; i++) {
        for (int e = 0; e < COUNT; e++) r.sent[i * COUNT + e] = (float)(i - e);
        pass(&r, i);
        CHECK_OK(r.queues->fence_set(r.calculator, SDLF_QUEUE_COMPUTE, last));
        if (i % 2 == 0) CHECK_OK(r.queues->fence_wait(r.calculator, last));
        for (bool passed = false; !passed;) /* polling has the same effect */
            if (!CHECK_OK(r.queues->fence_passed(r.calculator, last, &passed))) break;
        CHECK_CLOSE((double)r.received[i * COUNT + 7], 2 * (i - 7), 0);
    }
    r.queues->fence_free(r.calculator, last);
    close_ring(&r);
    sdlf_calculator_close(r.calculator);
}

static void fences_keep_order(void)
{
    for (int late = SDLF_QUEUE_COMPUTE; late <= SDLF_QUEUE_TRANSFER; late++) {
        test_guarded_late((sdlf_queue)late);
        for (int i = 0; test_calculator_class_at(i) != NULL; i++)
            if (test_calculator_class_at(i)->queues != NULL) check_ring(test_calculator_class_at(i)->name);
    }
    test_guarded_late(SDLF_QUEUE_COMPUTE);
}

static void memory_is_counted(void)
{
    enum { BYTES = 64 << 20 };
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        const sdlf_calculator_class *type = test_calculator_class_at(i);
        sdlf_calculator *calculator = NULL;
        int64_t before = -1, during = -1, total = 0;
        void *memory = NULL;
        if (type->memory_info == NULL || !CHECK_OK(sdlf_calculator_open(&calculator, type->name, NULL))) continue;
        CHECK_OK(type->memory_info(calculator, &before, &total));
        CHECK(before > 0 && before <= total);
        CHECK_OK(type->allocate(calculator, BYTES, &memory));
        CHECK_OK(type->memory_info(calculator, &during, &total));
        CHECK(during < before);
        type->deallocate(calculator, memory);
        sdlf_calculator_close(calculator);
    }
}

int main(void)
{
    RUN(fences_keep_order);
    RUN(memory_is_counted);
    return test_summary();
}
