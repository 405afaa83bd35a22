#include "sluice/kernels/convolution/direct.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/gemm/partial_sums.h"
#include "sluice/kernels/onednn.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using Dims = stablehlo::Dims;
using Convolution = stablehlo::ConvolutionCall;
using Kind = Convolution::Kind;

dnnl_memory_desc_t channels_last(const Dims& dims) {
  std::vector<int> order = {0};
  for (int i = 2; i < static_cast<int>(dims.size()); ++i) order.push_back(i);
  order.push_back(1);
  return dense(dims, order);
}

// Returns [O, I, k…] in the library's form: if there are groups, they are a dimension of their own.
Dims grouped_weight(const Convolution& c) {
  Dims dims = c.w;
  if (c.groups > 1) {
    dims[0] /= c.groups;
    dims.insert(dims.begin(), c.groups);
  }
  return dims;
}

// The least work for a part: multiplications of a part of an image, and pixels of y of a part that makes a
// sum for the weights. With less work another thread costs more than it gains.
constexpr int64_t kMinWorkOfLines = int64_t{1} << 20;
constexpr int64_t kMinPixelsOfSum = 256;

int64_t elements(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

// Some lines of x and y, along the first spatial axis, and how far a window reaches beyond the lines of x.
struct Lines {
  int64_t x, x_end, y, y_end, front, back;
};

// Primitives for some images at a time, or for some lines of an image if there are fewer images than threads,
// with the change of the weight's layout before or after.
class DirectConvolution : public ConvolutionKernel {
 public:
  // Null if the library has no fast primitive.
  static std::unique_ptr<ConvolutionKernel> make(const Convolution& c) {
    auto kernel = std::make_unique<DirectConvolution>();
    kernel->kind_ = c.kind;
    const Dims w = grouped_weight(c);
    std::vector<int> order(w.size());
    std::iota(order.begin(), order.end(), 0);
    kernel->w_ = dense(w, order);
    if (!kernel->add_lines(c) && !kernel->add_images(c)) return nullptr;
    const dnnl_memory_desc_t& wanted = kernel->weight_layout();
    if (same_layout(wanted, kernel->w_)) return kernel;
    kernel->reorder_ =
        kernel->makes_weight() ? Reorder::make(wanted, kernel->w_) : Reorder::make(kernel->w_, wanted);
    return kernel->reorder_ ? std::move(kernel) : nullptr;
  }

  base::Status run(const ConvolutionTensors& at) const override {
    return makes_weight() ? run_weights(at) : run_images(at);
  }

 private:
  struct Shape {
    Dims x, y, padding, back;
    dnnl_memory_desc_t x_layout, y_layout;
    std::unique_ptr<Primitive> primitive;
  };
  struct Part {
    size_t shape, x_floats, y_floats;  // floats of x and y before the part
  };

  bool makes_weight() const { return kind_ == Kind::kWeights; }
  const dnnl_memory_desc_t& weight_layout(const Shape& shape) const {
    return shape.primitive->layout(makes_weight() ? dnnl_query_diff_weights_md : dnnl_query_weights_md);
  }
  const dnnl_memory_desc_t& weight_layout() const { return weight_layout(shapes_[0]); }

  bool add_images(const Convolution& c) {
    shapes_.clear();
    parts_.clear();
    // Each part of a weight's gradient is a sum that has to be added to the others.
    const int64_t max_parts = makes_weight()
                                  ? parts_of_a_call((elements(c.x) + elements(c.y)) / (8 * elements(c.w)))
                                  : kMaxPartsPerThread * threads_of_a_call();
    const int64_t at_once = (c.x[0] + max_parts - 1) / max_parts;
    Convolution part = c;
    for (int64_t image = 0; image < c.x[0]; image += at_once) {
      part.x[0] = part.y[0] = std::min(at_once, c.x[0] - image);
      if (!add_part(part, c.padding, image * elements(c.x) / c.x[0], image * elements(c.y) / c.y[0]))
        return false;
    }
    return true;
  }

  bool add_lines(const Convolution& c) {
    const int64_t images = c.x[0], per_image = (threads_of_a_call() + images - 1) / images;
    const int64_t lines = kind_ == Kind::kData ? c.x[2] : c.y[2], pixels = elements(c.y) / c.y[0] / c.y[1];
    if (per_image < 2 || lines < per_image || pixels * elements(c.w) < per_image * kMinWorkOfLines)
      return false;
    if (makes_weight() && pixels < per_image * kMinPixelsOfSum) return false;
    const int64_t line_of_x = elements(c.x) / images / c.x[2], line_of_y = elements(c.y) / images / c.y[2];
    Convolution part = c;
    part.x[0] = part.y[0] = 1;
    for (int64_t image = 0; image < images; ++image)
      for (int64_t i = 0; i < per_image; ++i) {
        const Lines some = lines_of(c, i * lines / per_image, (i + 1) * lines / per_image);
        part.x[2] = some.x_end - some.x;
        part.y[2] = some.y_end - some.y;
        part.padding[0] = some.front;
        Dims back = c.padding;
        back[0] = some.back;
        if (part.x[2] < 1 || part.y[2] < 1 || some.front < 0 ||
            !add_part(part, back, (image * c.x[2] + some.x) * line_of_x,
                      (image * c.y[2] + some.y) * line_of_y))
          return false;
      }
    return true;
  }

  // Returns the lines [begin, end) of x for its gradient, else of y, with the lines of the other that they
  // need.
  Lines lines_of(const Convolution& c, int64_t begin, int64_t end) const {
    const int64_t stride = c.stride[0], padding = c.padding[0], reach = c.dilation[0] * (c.w[2] - 1) + 1;
    Lines some{};
    if (kind_ == Kind::kData) {
      some.x = begin;
      some.x_end = end;
      some.y = std::max<int64_t>(0, (begin + padding - reach) / stride);
      while (some.y < c.y[2] && some.y * stride - padding + reach <= begin) ++some.y;
      some.y_end = std::min(c.y[2], (end - 1 + padding) / stride + 1);
    } else {
      some.y = begin;
      some.y_end = end;
      some.x = std::max<int64_t>(0, begin * stride - padding);
      some.x_end = std::min(c.x[2], (end - 1) * stride - padding + reach);
    }
    some.front = some.x - (some.y * stride - padding);
    some.back = (some.y_end - 1) * stride - padding + reach - some.x_end;
    return some;
  }

  // Adds a part; false without a fast primitive that wants the weights in the same layout as the other
  // parts'.
  bool add_part(const Convolution& c, const Dims& back, int64_t x_floats, int64_t y_floats) {
    size_t i = 0;
    while (i < shapes_.size() && !(shapes_[i].x == c.x && shapes_[i].y == c.y &&
                                   shapes_[i].padding == c.padding && shapes_[i].back == back))
      ++i;
    if (i == shapes_.size()) {
      Shape shape{c.x, c.y, c.padding, back, channels_last(c.x), channels_last(c.y), nullptr};
      shape.primitive = make_primitive(c, back, shape.x_layout, shape.y_layout);
      if (!shape.primitive) return false;
      shapes_.push_back(std::move(shape));
      if (!same_layout(weight_layout(), weight_layout(shapes_.back()))) return false;
    }
    parts_.push_back({i, static_cast<size_t>(x_floats), static_cast<size_t>(y_floats)});
    return true;
  }

  base::Status run_images(const ConvolutionTensors& at) const {
    const Scratch scratch(reorder_ ? layout_bytes(weight_layout()) : 0);
    void* const weight = reorder_ ? scratch.data() : at.w;
    if (reorder_) SLUICE_OK(reorder_->run(at.w, weight));
    return parallel_for_status(parts_.size(), [&](size_t i) { return run_part(i, at, weight); });
  }

  base::Status run_weights(const ConvolutionTensors& at) const {
    const size_t parts = parts_.size();
    const size_t bytes = layout_bytes(weight_layout());
    const Scratch scratch((reorder_ ? parts : parts - 1) * bytes);
    // The first sum is the result itself, or is reordered into the result's layout.
    const std::vector<float*> sums = sum_buffers(
        parts, bytes / sizeof(float), reorder_ ? nullptr : static_cast<float*>(at.w), scratch.floats());
    SLUICE_OK(parallel_for_status(parts, [&](size_t i) { return run_part(i, at, sums[i]); }));
    add_partial_sums(sums, bytes / sizeof(float));
    return reorder_ ? reorder_->run(sums[0], at.w) : base::Status();
  }

  base::Status run_part(size_t i, const ConvolutionTensors& at, void* weight) const {
    const Part& part = parts_[i];
    const Shape& shape = shapes_[part.shape];
    auto* const x = static_cast<float*>(at.x) + part.x_floats;
    auto* const y = static_cast<float*>(at.y) + part.y_floats;
    return shape.primitive->execute(std::array<Argument, 3>{
        {{kind_ == Kind::kData ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, &shape.x_layout, x},
         {makes_weight() ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, &weight_layout(), weight},
         {kind_ == Kind::kForward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, &shape.y_layout, y}}});
  }

  std::unique_ptr<Primitive> make_primitive(const Convolution& c, const Dims& back,
                                            const dnnl_memory_desc_t& x, const dnnl_memory_desc_t& y) const {
    const Onednn& library = *base::value_or_throw(Onednn::open());
    const dnnl_memory_desc_t any = any_layout(grouped_weight(c));
    const int64_t* stride = c.stride.data();
    const int64_t* padding = c.padding.data();
    Dims holes = c.dilation;  // the library counts dilation from 0
    for (int64_t& d : holes) --d;
    dnnl_convolution_desc_t forward;
    if (library.dilated_convolution_forward_desc_init(&forward, dnnl_forward_training,
                                                      dnnl_convolution_direct, &x, &any, nullptr, &y, stride,
                                                      holes.data(), padding, back.data()) != dnnl_success)
      return nullptr;
    std::unique_ptr<Primitive> hint = Primitive::create(&forward);
    if (kind_ == Kind::kForward || !hint) return hint;
    dnnl_convolution_desc_t gradient;
    const auto status = makes_weight() ? library.dilated_convolution_backward_weights_desc_init(
                                             &gradient, dnnl_convolution_direct, &x, &any, nullptr, &y,
                                             stride, holes.data(), padding, back.data())
                                       : library.dilated_convolution_backward_data_desc_init(
                                             &gradient, dnnl_convolution_direct, &x, &any, &y, stride,
                                             holes.data(), padding, back.data());
    return status == dnnl_success ? Primitive::create(&gradient, hint.get()) : nullptr;
  }

  Kind kind_{};
  dnnl_memory_desc_t w_;
  std::vector<Shape> shapes_;
  std::vector<Part> parts_;
  std::unique_ptr<Reorder> reorder_;
};

}  // namespace

std::unique_ptr<ConvolutionKernel> make_direct(const Convolution& c) { return DirectConvolution::make(c); }

}  // namespace sluice::kernels
