/* Depthwise convolution (groups = channels; K/C filters a channel), forward: nothing is shared between channels, so that memory
 * decides, and what counts is how many bytes are asked for at a time.
 *
 * Windows 3x3 and 5x5 with strides 1 and 2: a thread makes a rectangle of WIDE x ROWS pixels; lanes are neighbours in q. It asks for all of the
 * image that its windows cover, lines of WIDE or 2 WIDE numbers that lie side by side and a halo around these, before it computes; what
 * neighbouring lanes read too comes from the first-level cache. Rectangles wider than a number need padding of half a window on the
 * left, as it keeps an image's width, and lines of so many numbers that each is a multiple of a read.
 * Other windows: a strip of 4 pixels down a column, or of one or two where all pixels are few, tap by tap.
 * Moves 4 (NCHW + NKPQ) bytes (float32). */
#include "calculators/cuda/bundle.cuh"
#include "calculators/cuda/conv2d/clip.cuh"
#include "calculators/cuda/conv2d/depthwise.cuh"
#include "calculators/cuda/launch.cuh"

enum { RECTANGLE_THREADS = 128 };

template <typename T> struct depthwise_operands {
    const T *x, *w, *bias, *residual;
    T *y;
    sdlf_activation activation;
};

/* What a rectangle reads of a line of the image: PAD numbers, STEP bundles of WIDE, and the rest. */
template <typename T, int SIDE, int STEP, int WIDE> struct rectangle_line {
    static constexpr int COLUMNS = (WIDE - 1) * STEP + SIDE, PAD = SIDE / 2, INNER = STEP * WIDE;
    T at[COLUMNS];

    /* From column `left` on; 0 beyond the image. WIDE > 1: PAD before a multiple of INNER, and INNER numbers from there lie within. */
    __device__ __forceinline__ void read(const T *line, int left, int width)
    {
        if constexpr (WIDE == 1) {
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                at[c] = T(0);
                if (static_cast<unsigned>(left + c) < static_cast<unsigned>(width)) at[c] = __ldg(line + left + c);
            }
        } else {
            line += left;
#pragma unroll
            for (int i = 0; i < STEP; i++) {
                bundle<T, WIDE> inner = read_bundle<WIDE>(line + PAD + i * WIDE, 0);
#pragma unroll
                for (int v = 0; v < WIDE; v++) at[PAD + i * WIDE + v] = inner.at[v];
            }
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                if (c >= PAD && c < PAD + INNER) continue;
                at[c] = T(0);
                if (c < PAD ? left >= 0 : left + c < width) at[c] = __ldg(line + c);
            }
        }
    }

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) at[c] = T(0);
    }
};

/* Rectangle e: of plane e / (rectangles of a plane); those of a line follow each other. */
template <typename T, int SIDE, int STEP, int WIDE, int ROWS, bool CLIPS>
static __global__ void __launch_bounds__(RECTANGLE_THREADS)
    depthwise_rectangles(depthwise_operands<T> o, cuda_conv2d g, unsigned across, unsigned down, unsigned count)
{
    using line = rectangle_line<T, SIDE, STEP, WIDE>;
    unsigned e = blockIdx.x * RECTANGLE_THREADS + threadIdx.x;
    if (e >= count) return;
    int q = static_cast<int>(e % across) * WIDE;
    unsigned rest = e / across;
    int p = static_cast<int>(rest % down) * ROWS;
    unsigned plane = rest / down, filters = static_cast<unsigned>(g.filters);
    unsigned k = plane % filters, c = k / static_cast<unsigned>(g.group_filters);
    int height = static_cast<int>(g.height), width = static_cast<int>(g.width);
    int top = p * STEP - g.window.padding_before[0], left = q * STEP - g.window.padding_before[1];
    const T *x = o.x + (static_cast<int64_t>(plane / filters) * g.channels + c) * g.height * g.width;
    const T *w = o.w + k * (SIDE * SIDE);
    await_kernels();

    constexpr int LINES = (ROWS - 1) * STEP + SIDE;
    line value[LINES];
    T own[SIDE * SIDE];
#pragma unroll
    for (int r = 0; r < LINES; r++) {
        if (static_cast<unsigned>(top + r) < static_cast<unsigned>(height))
            value[r].read(x + static_cast<int64_t>(top + r) * width, left, width);
        else
            value[r].clear();
    }
#pragma unroll
    for (int i = 0; i < SIDE * SIDE; i++) own[i] = __ldg(w + i);
    T shift = o.bias != nullptr ? __ldg(o.bias + k) : T(0);
    int64_t to = (static_cast<int64_t>(plane) * g.out_height + p) * g.out_width + q;
#pragma unroll
    for (int i = 0; i < ROWS; i++, to += g.out_width) {
        bundle<T, WIDE> sum, rest_of = {};
        if (p + i >= g.out_height) break;
        if (o.residual != nullptr) rest_of = read_bundle<WIDE>(o.residual + to, 0);
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            T all = shift;
#pragma unroll
            for (int r = 0; r < SIDE; r++) {
#pragma unroll
                for (int s = 0; s < SIDE; s++) all += value[i * STEP + r].at[j * STEP + s] * own[r * SIDE + s];
            }
            sum.at[j] = activate_known<CLIPS>(o.activation, all + rest_of.at[j]);
        }
        write_bundle<WIDE>(o.y + to, 0, sum);
    }
}

/* Any window: strip e, as in depthwise.cuh. */
template <typename T, int LENGTH>
static __global__ void __launch_bounds__(THREADS)
    depthwise_strips(depthwise_operands<T> o, cuda_conv2d g, int64_t count)
{
    const sdlf_window2d &window = g.window;
    await_kernels();
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        strip<LENGTH> s(static_cast<unsigned>(e), static_cast<unsigned>(g.filters), static_cast<unsigned>(g.out_height),
                        static_cast<unsigned>(g.out_width));
        const T *image = o.x + (s.n * g.channels + s.plane / g.group_filters) * g.height * g.width;
        const T *weight = o.w + s.plane * window.size[0] * window.size[1];
        int top = s.row * window.stride[0] - window.padding_before[0];
        int left = s.column * window.stride[1] - window.padding_before[1];
        T sum[LENGTH] = {};
        for (int r = 0; r < window.size[0]; r++) {
            for (int c = 0; c < window.size[1]; c++) {
                T own = __ldg(weight + r * window.size[1] + c);
#pragma unroll
                for (int i = 0; i < LENGTH; i++)
                    sum[i] += own * at_or_zero(image, top + i * window.stride[0] + r * window.dilation[0],
                                               left + c * window.dilation[1], g.height, g.width);
            }
        }
        T shift = o.bias != nullptr ? o.bias[s.plane] : T(0);
        int64_t to = ((s.n * g.filters + s.plane) * g.out_height + s.row) * g.out_width + s.column;
#pragma unroll
        for (int i = 0; i < LENGTH; i++, to += g.out_width) {
            if (s.row + i >= g.out_height) break;
            T value = sum[i] + shift;
            if (o.residual != nullptr) value += o.residual[to];
            o.y[to] = activate(o.activation, value);
        }
    }
}

template <typename T, int SIDE, int STEP, int WIDE, int ROWS>
static void launch_rectangles(const cuda_calculator *calculator, const depthwise_operands<T> &o, const cuda_conv2d &g)
{
    int64_t across = (g.out_width + WIDE - 1) / WIDE, down = (g.out_height + ROWS - 1) / ROWS;
    int64_t count = g.batch * g.filters * down * across;
    depthwise_operands<T> clipped = o;
    auto kernel = make_clip(&clipped.activation) ? depthwise_rectangles<T, SIDE, STEP, WIDE, ROWS, true>
                                                 : depthwise_rectangles<T, SIDE, STEP, WIDE, ROWS, false>;
    launch_overlapped(calculator, kernel,
                      dim3(static_cast<unsigned>((count + RECTANGLE_THREADS - 1) / RECTANGLE_THREADS)),
                      dim3(RECTANGLE_THREADS), 0, clipped, g, static_cast<unsigned>(across),
                      static_cast<unsigned>(down), static_cast<unsigned>(count));
}

/* May rectangles be so wide? */
template <typename T> static bool is_wide(const depthwise_operands<T> &o, const cuda_conv2d &g, int wide)
{
    uintptr_t places =
        reinterpret_cast<uintptr_t>(o.x) | reinterpret_cast<uintptr_t>(o.y) | reinterpret_cast<uintptr_t>(o.residual);
    return places % (static_cast<size_t>(wide) * sizeof(T)) == 0 && g.width % wide == 0 && g.out_width % wide == 0 &&
           g.window.padding_before[1] == g.window.size[1] / 2 && g.out_width * g.window.stride[1] <= g.width;
}

/* Wide ones as far as there are threads enough to hide that each of them waits for memory; measured on an H200. */
template <typename T, int SIDE, int STEP>
static void launch_suited(const cuda_calculator *calculator, const depthwise_operands<T> &o, const cuda_conv2d &g)
{
    int64_t pixels = g.batch * g.filters * g.out_height * g.out_width / calculator->multiprocessors;
    if constexpr (STEP == 1 && sizeof(T) == sizeof(float)) {
        if (pixels > 1 << 16 && is_wide(o, g, 4)) {
            launch_rectangles<T, SIDE, STEP, 4, STRIP>(calculator, o, g);
            return;
        }
    }
    if ((STEP == 1 || pixels > 1 << 12) && is_wide(o, g, 2))
        launch_rectangles<T, SIDE, STEP, 2, STRIP>(calculator, o, g);
    else
        launch_rectangles<T, SIDE, STEP, 1, STRIP>(calculator, o, g);
}

template <typename T, int LENGTH>
static void launch_strips(const cuda_calculator *calculator, const depthwise_operands<T> &o, const cuda_conv2d &g)
{
    int64_t count = g.batch * g.filters * ((g.out_height + LENGTH - 1) / LENGTH) * g.out_width;
    launch_overlapped(calculator, depthwise_strips<T, LENGTH>, dim3(cuda_blocks(calculator, count, THREADS)),
                      dim3(THREADS), 0, o, g, count);
}

template <typename T>
static void forward(const cuda_calculator *calculator, const depthwise_operands<T> &o, const cuda_conv2d &g)
{
    with_window(g.window, [&](auto window) {
        using known = decltype(window);
        if constexpr (known::SIDE > 0) {
            launch_suited<T, known::SIDE, known::STEP>(calculator, o, g);
        } else {
            int64_t pixels = g.batch * g.filters * g.out_height * g.out_width / calculator->multiprocessors;
            if (pixels > 2048)
                launch_strips<T, STRIP>(calculator, o, g);
            else if (pixels > 512)
                launch_strips<T, 2>(calculator, o, g);
            else
                launch_strips<T, 1>(calculator, o, g);
        }
    });
}

extern "C" sdlf_status conv2d_depthwise_forward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    cuda_conv2d g = cuda_conv2d_geometry(op);
    if (sdlf_tensor_count(&op->out[0]) == 0) return SDLF_OK;
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        depthwise_operands<T> o = {data_of<T>(op->in[0]),  data_of<T>(op->in[1]),  optional<T>(op->in[2]),
                                   optional<T>(op->in[3]), data_of<T>(op->out[0]), op->conv2d.activation};
        forward(calculator, o, g);
    });
    return cuda_check_launch("conv2d, depthwise");
}
