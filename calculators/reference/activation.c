/* Activations: y = f(x) and dx = dy f'(x), where f' is told from y alone. */
#include "calculators/reference/reference.h"

#include <math.h>

/* NaN passes through every one of them. */
double activate_reference(const sdlf_activation *activation, double x)
{
    switch (activation->function) {
    case SDLF_RELU: return x < 0 ? 0 : x;
    case SDLF_CLIP: {
        double low = (double)activation->low, high = (double)activation->high;
        return x < low ? low : x > high ? high : x;
    }
    case SDLF_LEAKY_RELU: return x < 0 ? (double)activation->slope * x : x;
    case SDLF_SIGMOID: return 1 / (1 + exp(-x));
    case SDLF_TANH: return tanh(x);
    default: return x;
    }
}

static double derivative(const sdlf_activation *activation, double y)
{
    switch (activation->function) {
    case SDLF_RELU: return y > 0 ? 1 : 0;
    case SDLF_CLIP: return y > (double)activation->low && y < (double)activation->high ? 1 : 0;
    case SDLF_LEAKY_RELU: return y > 0 ? 1 : (double)activation->slope;
    case SDLF_SIGMOID: return y * (1 - y);
    case SDLF_TANH: return 1 - y * y;
    default: return 1;
    }
}

sdlf_status activation_forward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    int64_t count = sdlf_tensor_count(y);
    for (int64_t e = 0; e < count; e++) put(y, e, activate_reference(&operation->activation, get(x, e)));
    return SDLF_OK;
}

sdlf_status activation_backward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *y = &operation->in[0], *dy = &operation->in[1], *dx = &operation->out[0];
    int64_t count = sdlf_tensor_count(dx);
    for (int64_t e = 0; e < count; e++) put(dx, e, get(dy, e) * derivative(&operation->activation, get(y, e)));
    return SDLF_OK;
}
