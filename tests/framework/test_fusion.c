/* SPDX-License-Identifier: MIT */
/* Fusions: a fused operation is derived from its members and back, and calculators are only asked for fusions that they
 * declare. (tests/kernels computes both.) */
#include "operation_examples.h"
#include "testing.h"

#include <string.h>

#include <sdlf/calculator.h>

#include "framework/fusion.h"
#include "framework/operand.h"

static bool is_same_operand(const sdlf_tensor *a, const sdlf_tensor *b)
{
    if (!sdlf_tensor_present(a) || !sdlf_tensor_present(b)) return sdlf_tensor_present(a) == sdlf_tensor_present(b);
    return a->dtype == b->dtype && sdlf_shape_equal(a->shape, b->shape) && a->buffer == b->buffer &&
           memcmp(a->stride, b->stride, sizeof a->stride) == 0;
}

/* Check that the members are valid operations, of a variant that plans look for; that values between them have separate
 * memory; and that fusing them gives the operation again. `number` numbers the operands as a plan does. */
static void check_parts(sdlf_operation fused)
{
    const sdlf_fusion *fusion = fused.fused.fusion;
    sdlf_operation member[SDLF_FUSION_MEMBERS], joined;
    const sdlf_operation *found[SDLF_FUSION_MEMBERS] = {NULL};
    unsigned present = 0;
    int64_t next = 0;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) fused.in[i].buffer = i + 1;
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) fused.out[i].buffer = SDLF_MAX_INPUTS + i + 1;
    CHECK_OK(sdlf_operation_check(&fused));
    int64_t bytes = sdlf_fusion_split(&fused, member, &present, (void *)(uintptr_t)64);
    for (int i = 0; i < SDLF_FUSION_MEMBERS; i++) {
        if (!(present >> i & 1)) continue;
        CHECK_OK(sdlf_operation_check(&member[i]));
        found[i] = &member[i];
        for (int j = 0; j < SDLF_MAX_OUTPUTS; j++) {
            if (member[i].out[j].data == NULL) continue;
            CHECK_EQUAL((uintptr_t)member[i].out[j].data, (uintptr_t)(64 + next));
            next += (sdlf_tensor_bytes(&member[i].out[j]) + 63) / 64 * 64;
        }
    }
    CHECK_EQUAL(bytes, next);
    bool known = false;
    for (int v = 0; fusion->variant[v] != 0; v++) known = known || fusion->variant[v] == present;
    CHECK(known);
    if (!CHECK(sdlf_fusion_join(fusion, found, &joined))) return;
    for (int i = 0; i < SDLF_MAX_OPERANDS; i++)
        CHECK(is_same_operand(sdlf_operand_at(&joined, i), sdlf_operand_at(&fused, i)));
    CHECK(memcmp(joined.fused.options, fused.fused.options, sizeof fused.fused.options) == 0);
    CHECK(joined.kind == SDLF_FUSED && joined.fused.fusion == fusion);
}

/* Also with every possible operand channels last, if that is a valid operation. */
static void check_forms(const sdlf_operation *fused)
{
    const sdlf_operation last = sdlf_operation_channels_last(fused);
    check_parts(*fused);
    if (sdlf_operation_check(&last) == SDLF_OK) check_parts(last);
}

/* For each example, with and without each optional operand, if the result is a valid operation. */
static void parts_are_the_whole(void)
{
    int examples = 0, fusions = 0;
    while (sdlf_fusion_at(fusions) != NULL) fusions++;
    for (int index = INVERTED_RESIDUAL; index < EXAMPLES; index++, examples++) {
        const sdlf_operation good = example_at(index);
        const sdlf_operation_class *type = sdlf_operation_type(&good);
        check_forms(&good);
        for (int i = 0; i < SDLF_MAX_OPERANDS; i++) {
            const sdlf_operand *declared = sdlf_operand_declared(type, i);
            sdlf_operation less = good;
            sdlf_tensor *left_out = sdlf_operand_at(&less, i);
            *left_out = (sdlf_tensor){.dtype = SDLF_NONE};
            if (declared->name != NULL && declared->optional && sdlf_operation_check(&less) == SDLF_OK)
                check_forms(&less);
        }
    }
    CHECK_EQUAL(examples, fusions);
}

/* Members that depend on both options and operands: an activation's derivative, updates without momentum or bias. */
static void updates_have_parts_of_their_own(void)
{
    const sdlf_tensor none = {.dtype = SDLF_NONE};
    sdlf_operation o = gemm_backward_sgd();
    gemm_backward_sgd_options *options = gemm_backward_sgd_options_in(&o);
    options->activation.function = SDLF_RELU;
    options->sgd.decay = 0.25f, options->sgd.bias_decay = 0.5f, options->sgd.nesterov = true;
    check_parts(o);
    o.out[3] = o.out[4] = none, options->sgd.bias_decay = 0;
    check_parts(o);
    options->activation.function = SDLF_IDENTITY;
    check_parts(o);
    o.out[1] = none, options->sgd.momentum = 0;
    check_parts(o);
    o.out[2] = none;
    check_parts(o);
}

static void fusions_are_found_by_name(void)
{
    for (int i = 0; sdlf_fusion_at(i) != NULL; i++) {
        const sdlf_fusion *fusion = sdlf_fusion_at(i);
        CHECK(sdlf_fusion_find(fusion->type.name) == fusion);
        CHECK(fusion_fault(fusion) == NULL && (fusion->infer || fusion->train));
    }
    CHECK(sdlf_fusion_find("conv2d_forward") == NULL && sdlf_fusion_find(NULL) == NULL && sdlf_fusion_at(-1) == NULL);
}

/* ---- a fusion that nobody declares ---- */

static sdlf_fusion mine;

static sdlf_operation of_mine(void)
{
    sdlf_operation o = example_at(SDLF_FUSED);
    mine = *o.fused.fusion;
    o.fused.fusion = &mine;
    return o;
}

/* reference computes it, like any fusion; cpu does not know it. */
static void only_declared_ones_are_taken(void)
{
    const sdlf_operation unknown = of_mine(), known = example_at(SDLF_FUSED), none = {.kind = SDLF_FUSED};
    sdlf_calculator *reference = test_open("reference"), *cpu = test_open("cpu");
    CHECK(sdlf_calculator_supports(reference, &unknown) && !sdlf_calculator_supports(cpu, &unknown));
    CHECK(sdlf_calculator_supports(reference, &known));
    CHECK(sdlf_calculator_slot(cpu, &unknown)->run == NULL && sdlf_calculator_slot(cpu, &known)->run != NULL);
    CHECK(sdlf_calculator_workspace(cpu, &unknown) == 0 && sdlf_calculator_workspace(reference, &unknown) > 0);
    CHECK(!sdlf_calculator_supports(reference, &none) && sdlf_calculator_workspace(reference, &none) == 0);
    CHECK_FAILS(sdlf_operation_check(&none), SDLF_ERROR_ARGUMENT, "names no fusion");
    CHECK_FAILS(sdlf_calculator_run(cpu, &none), SDLF_ERROR_ARGUMENT, "names no fusion");
    sdlf_calculator_close(cpu);
    sdlf_calculator_close(reference);
}

int main(void)
{
    RUN(parts_are_the_whole);
    RUN(updates_have_parts_of_their_own);
    RUN(fusions_are_found_by_name);
    RUN(only_declared_ones_are_taken);
    return test_summary();
}
