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

// [O, I, k…] as the library wants it: with the groups as a dimension of their own, where there are any.
Dims grouped_weight(const Convolution& c) {
  Dims dims = c.w;
  if (c.groups > 1) {
    dims[0] /= c.groups;
    dims.insert(dims.begin(), c.groups);
  }
  return dims;
}

// A primitive for some images at a time, and the change of the weight's layout before or after it.
class DirectConvolution : public ConvolutionKernel {
 public:
  // Null where the library has no fast primitive.
  static std::unique_ptr<ConvolutionKernel> make(const Convolution& c) {
    auto kernel = std::make_unique<DirectConvolution>();
    kernel->kind_ = c.kind;
    const Dims w = grouped_weight(c);
    std::vector<int> order(w.size());
    std::iota(order.begin(), order.end(), 0);
    kernel->w_ = dense(w, order);
    kernel->images_ = c.x[0];
    const int64_t parts = kernel->max_parts(c);
    kernel->images_of_part_ = (c.x[0] + parts - 1) / parts;
    kernel->parts_ = (c.x[0] + kernel->images_of_part_ - 1) / kernel->images_of_part_;
    kernel->full_ = kernel->make_part(c, kernel->images_of_part_);
    kernel->last_ = kernel->make_part(c, kernel->images_of(kernel->parts_ - 1));
    if (!kernel->full_.primitive || !kernel->last_.primitive) return nullptr;
    const dnnl_memory_desc_t& wanted = kernel->weight_layout();
    if (!same_layout(wanted, kernel->weight_layout(kernel->last_))) return nullptr;
    if (same_layout(wanted, kernel->w_)) return kernel;
    kernel->reorder_ =
        kernel->makes_weight() ? Reorder::make(wanted, kernel->w_) : Reorder::make(kernel->w_, wanted);
    return kernel->reorder_ ? std::move(kernel) : nullptr;
  }

  base::Status run(const ConvolutionTensors& at) const override {
    return makes_weight() ? run_weights(at) : run_images(at);
  }

 private:
  struct Part {
    dnnl_memory_desc_t x, y;
    size_t x_bytes, y_bytes;
    std::unique_ptr<Primitive> primitive;
  };

  bool makes_weight() const { return kind_ == Kind::kWeights; }

  // Each part of a weight's gradient is a sum that has to be added to the others.
  int64_t max_parts(const Convolution& c) const {
    if (!makes_weight()) return kMaxPartsPerThread * threads_of_a_call();
    const auto size = [](const Dims& dims) {
      return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
    };
    return parts_of_a_call((size(c.x) + size(c.y)) / (8 * size(c.w)));
  }
  int64_t images_of(int64_t part) const {
    return std::min(images_of_part_, images_ - part * images_of_part_);
  }
  const dnnl_memory_desc_t& weight_layout(const Part& part) const {
    return part.primitive->layout(makes_weight() ? dnnl_query_diff_weights_md : dnnl_query_weights_md);
  }
  const dnnl_memory_desc_t& weight_layout() const { return weight_layout(full_); }

  base::Status run_images(const ConvolutionTensors& at) const {
    const Scratch scratch(reorder_ ? layout_bytes(weight_layout()) : 0);
    void* const weight = reorder_ ? scratch.data() : at.w;
    if (reorder_) SLUICE_OK(reorder_->run(at.w, weight));
    return parallel_for_status(static_cast<size_t>(parts_),
                               [&](size_t i) { return run_part(i, at, weight); });
  }

  base::Status run_weights(const ConvolutionTensors& at) const {
    const auto parts = static_cast<size_t>(parts_);
    const size_t bytes = layout_bytes(weight_layout());
    const Scratch scratch((reorder_ ? parts : parts - 1) * bytes);
    // The first sum is the result, or what is brought into its layout.
    const std::vector<float*> sums = sum_buffers(
        parts, bytes / sizeof(float), reorder_ ? nullptr : static_cast<float*>(at.w), scratch.floats());
    SLUICE_OK(parallel_for_status(parts, [&](size_t i) { return run_part(i, at, sums[i]); }));
    add_partial_sums(sums, bytes / sizeof(float));
    return reorder_ ? reorder_->run(sums[0], at.w) : base::Status();
  }

  base::Status run_part(size_t i, const ConvolutionTensors& at, void* weight) const {
    const Part& part = images_of(static_cast<int64_t>(i)) == images_of_part_ ? full_ : last_;
    auto* const x = static_cast<std::byte*>(at.x) + i * full_.x_bytes;
    auto* const y = static_cast<std::byte*>(at.y) + i * full_.y_bytes;
    return part.primitive->execute(std::array<Argument, 3>{
        {{kind_ == Kind::kData ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, &part.x, x},
         {makes_weight() ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, &weight_layout(), weight},
         {kind_ == Kind::kForward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, &part.y, y}}});
  }

  Part make_part(const Convolution& c, int64_t images) const {
    Dims x = c.x, y = c.y;
    x[0] = y[0] = images;
    Part part{channels_last(x), channels_last(y), 0, 0, nullptr};
    part.x_bytes = layout_bytes(part.x);
    part.y_bytes = layout_bytes(part.y);
    part.primitive = make_primitive(c, part.x, part.y);
    return part;
  }

  std::unique_ptr<Primitive> make_primitive(const Convolution& c, const dnnl_memory_desc_t& x,
                                            const dnnl_memory_desc_t& y) const {
    const Onednn& library = *base::value_or_throw(Onednn::open());
    const dnnl_memory_desc_t any = any_layout(grouped_weight(c));
    const int64_t* stride = c.stride.data();
    const int64_t* padding = c.padding.data();  // the library finds the end's from the dims
    Dims holes = c.dilation;                    // which it counts from 0
    for (int64_t& d : holes) --d;
    dnnl_convolution_desc_t forward;
    if (library.dilated_convolution_forward_desc_init(&forward, dnnl_forward_training,
                                                      dnnl_convolution_direct, &x, &any, nullptr, &y, stride,
                                                      holes.data(), padding, padding) != dnnl_success)
      return nullptr;
    std::unique_ptr<Primitive> hint = Primitive::create(&forward);
    if (kind_ == Kind::kForward || !hint) return hint;
    dnnl_convolution_desc_t gradient;
    const auto status =
        makes_weight()
            ? library.dilated_convolution_backward_weights_desc_init(&gradient, dnnl_convolution_direct, &x,
                                                                     &any, nullptr, &y, stride, holes.data(),
                                                                     padding, padding)
            : library.dilated_convolution_backward_data_desc_init(
                  &gradient, dnnl_convolution_direct, &x, &any, &y, stride, holes.data(), padding, padding);
    return status == dnnl_success ? Primitive::create(&gradient, hint.get()) : nullptr;
  }

  Kind kind_{};
  int64_t images_ = 0, images_of_part_ = 0, parts_ = 0;
  dnnl_memory_desc_t w_;
  Part full_, last_;
  std::unique_ptr<Reorder> reorder_;
};

}  // namespace

std::unique_ptr<ConvolutionKernel> make_direct(const Convolution& c) { return DirectConvolution::make(c); }

}  // namespace sluice::kernels
