/* SPDX-License-Identifier: MIT */
/* NULL pointers passed to functions for calculators, operations and optimizers. */
#include "framework/nulls/nulls.h"

static void calculators(void)
{
    sdlf_calculator *reference = test_open("reference"), *made;
    sdlf_operation operation = {.kind = SDLF_FILL};
    REFUSED(sdlf_calculator_open(NULL, "cpu", NULL), "calculator");
    REFUSED(sdlf_calculator_open(&made, NULL, NULL), "name");
    CHECK(made == NULL);
    DOES_NOTHING(sdlf_calculator_close(NULL));
    GIVES(sdlf_calculator_unavailable(1000, NULL), NULL);
    DOES_NOTHING((void)sdlf_calculator_unavailable(0, NULL)); /* the reason may be omitted */
    GIVES(sdlf_calculator_supports(NULL, &operation), false);
    GIVES(sdlf_calculator_supports(reference, NULL), false);
    GIVES(sdlf_calculator_slot(NULL, &operation), NULL);
    GIVES(sdlf_calculator_slot(reference, NULL), NULL);
    GIVES(sdlf_fused_slot_in(NULL, NULL), NULL);
    GIVES(sdlf_calculator_workspace(NULL, &operation), 0);
    GIVES(sdlf_calculator_workspace(reference, NULL), 0);
    GIVES(sdlf_calculator_prepared(NULL, &operation), 0);
    GIVES(sdlf_calculator_prepared(reference, NULL), 0);
    GIVES(sdlf_calculator_prefers_channels_last(NULL, &operation), false);
    GIVES(sdlf_calculator_prefers_channels_last(reference, NULL), false);
    GIVES(sdlf_calculator_storage(NULL, NULL, true), SDLF_NONE);
    REFUSED(sdlf_calculator_run(NULL, &operation), "calculator");
    REFUSED(sdlf_calculator_run(reference, NULL), "operation");
    GIVES(sdlf_calculator_algorithm(NULL, &operation), NULL);
    GIVES(sdlf_calculator_algorithm(reference, NULL), NULL);
    GIVES(sdlf_calculator_note(NULL, &operation).summary, NULL);
    GIVES(sdlf_calculator_note(reference, NULL).summary, NULL);
    GIVES(sdlf_calculator_work(NULL, &operation).flops, 0);
    GIVES(sdlf_calculator_work(reference, NULL).flops, 0);
    GIVES(sdlf_calculator_shares_memory(NULL, reference), false);
    GIVES(sdlf_calculator_shares_memory(reference, NULL), false);
    GIVES(sdlf_calculator_is_on_host(NULL), false);
    REFUSED(sdlf_register_calculator_sized(NULL, sizeof(sdlf_calculator_class)), "type");
    CHECK_EQUAL(sdlf_register_calculator(NULL), SDLF_ERROR_ARGUMENT);
    DOES_NOTHING(sdlf_set_message_function(NULL, NULL));
    CHECK_OK(sdlf_set_allocator(NULL)); /* the heap's */
    GIVES(sdlf_math_from_name(NULL), SDLF_MATH_COUNT);
    sdlf_calculator_close(reference);
}

static void communicators(void)
{
    const sdlf_communicator alone = {.rank_count = 1};
    sdlf_communicator *made;
    double number = 1;
    int other;
    REFUSED(sdlf_communicator_open(NULL, "mpi", NULL), "communicator");
    REFUSED(sdlf_communicator_open(&made, NULL, NULL), "name");
    CHECK(made == NULL);
    REFUSED(sdlf_rank_group_create(NULL, 2), "group");
    DOES_NOTHING(sdlf_rank_group_free(NULL));
    DOES_NOTHING(sdlf_communicator_close(NULL));
    DOES_NOTHING(sdlf_communicator_abort(NULL));
    GIVES(sdlf_communicator_unavailable(1000, NULL), NULL);
    DOES_NOTHING((void)sdlf_communicator_unavailable(0, NULL));
    REFUSED(sdlf_communicator_sum(NULL, &number, 1), "communicator");
    REFUSED(sdlf_communicator_sum((sdlf_communicator *)&alone, NULL, 1), "numbers");
    REFUSED(sdlf_communicator_narrow(NULL, 1), "communicator");
    REFUSED(sdlf_communicator_agree(NULL, SDLF_OK), "communicator");
    REFUSED(sdlf_communicator_compare(NULL, &number, sizeof number, &other), "communicator");
    REFUSED(sdlf_communicator_compare((sdlf_communicator *)&alone, NULL, 1, &other), "mine");
    REFUSED(sdlf_communicator_compare((sdlf_communicator *)&alone, &number, sizeof number, NULL), "other");
    GIVES(sdlf_communicator_first(NULL, 10), 0);
    GIVES(sdlf_communicator_share(NULL, 10), 10);
    GIVES(sdlf_communicator_shard(0, 3, 10), 0);
}

static void operations(void)
{
    REFUSED(sdlf_operation_check(NULL), "operation");
    GIVES(sdlf_operation_is_channels_last(NULL), false);
    GIVES(sdlf_operation_storage(NULL), SDLF_NONE);
    GIVES(sdlf_operation_stored(NULL, SDLF_BFLOAT16).kind, SDLF_FILL);
    GIVES(sdlf_batch_norm2d_is_fused(NULL), false);
    GIVES(sdlf_operation_is_mixed(NULL), false);
    GIVES(sdlf_tensor_present(&sdlf_operation_channels_last(NULL).out[0]), false);
    GIVES(sdlf_operation_type(NULL), NULL);
    GIVES(sdlf_operation_cost(NULL).flops, 0);
    GIVES(sdlf_operation_epilogue(NULL), NULL);
    GIVES(sdlf_window2d_output(NULL, 0, 28), 0);
}

static void fusions(void)
{
    const sdlf_fusion *first = sdlf_fusion_at(0);
    const sdlf_operation *members[SDLF_FUSION_MEMBERS] = {NULL};
    sdlf_operation joined, member[SDLF_FUSION_MEMBERS], fused = {.kind = SDLF_FUSED};
    unsigned present = 1;
    CHECK(first != NULL);
    GIVES(sdlf_fusion_find(NULL), NULL);
    GIVES(sdlf_fusion_join(NULL, members, &joined), false);
    GIVES(sdlf_fusion_join(first, NULL, &joined), false);
    GIVES(sdlf_fusion_join(first, members, NULL), false);
    GIVES(sdlf_fusion_split(NULL, member, &present, NULL), 0);
    CHECK_EQUAL(present, 0);
    GIVES(sdlf_fusion_split(&fused, member, &present, NULL), 0); /* names no fusion */
    fused.fused.fusion = first;
    GIVES(sdlf_fusion_split(&fused, NULL, &present, NULL), 0);
    GIVES(sdlf_fusion_split(&fused, member, NULL, NULL), 0);
}

static void optimizers_and_schedules(void)
{
    sdlf_optimizer optimizer = sdlf_sgd(.momentum = 0);
    GIVES(sdlf_optimizer_class_find(NULL), NULL);
    REFUSED(sdlf_optimizer_complete(NULL), "optimizer");
    REFUSED(sdlf_schedule_complete(NULL), "schedule");
    GIVES(sdlf_optimizer_rate(NULL, 64), 0);
    GIVES(sdlf_optimizer_rate(&(sdlf_optimizer){.type = NULL}, 64), sdlf_optimizer_rate(&optimizer, 64));
    GIVES(sdlf_schedule_rate(NULL, 0, 1, 1), 0);
}

static void machine(void)
{
    REFUSED(sdlf_machine_look(NULL), "machine");
    CHECK_OK(sdlf_machine_check(0, NULL)); /* the name may be omitted */
    CHECK_OK(sdlf_machine_check_reading(0, 0, NULL));
}

static void suggestions(void)
{
    sdlf_suggestion near = {.word = "rely"}, nothing = {.word = NULL};
    DOES_NOTHING(sdlf_suggest(NULL, "relu"));
    DOES_NOTHING(sdlf_suggest(&near, NULL));
    DOES_NOTHING(sdlf_suggest(&nothing, "relu"));
    CHECK(near.best == NULL && nothing.best == NULL);
    CHECK_TEXT(sdlf_suggestion_print(NULL).text, "");
    CHECK_TEXT(sdlf_suggestion_print(&near).text, "");
}

int main(void)
{
    RUN(calculators);
    RUN(communicators);
    RUN(operations);
    RUN(fusions);
    RUN(optimizers_and_schedules);
    RUN(machine);
    RUN(suggestions);
    return test_summary();
}
