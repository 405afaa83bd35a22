#include "sluice/kernels/convolution/convolution.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/convolution/few_pixels.h"
#include "sluice/kernels/convolution/winograd.h"
#include "sluice/kernels/gemm/partial_sums.h"
#include "sluice/kernels/gemm/product.h"
#include "sluice/kernels/onednn.h"
#include "sluice/kernels/prepared.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using Dims = stablehlo::Dims;
using Convolution = stablehlo::ConvolutionCall;
using Kind = Convolution::Kind;

// Where the operands and results of a call lie: x and y or their gradients, w or its gradient.
struct Places {
  void *x, *w, *y;
};

// Whether the numbers from place `from` on lie in [low, high].
bool all_within(const Dims& numbers, ptrdiff_t from, int64_t low, int64_t high) {
  return std::all_of(numbers.begin() + from, numbers.end(), [&](int64_t n) { return n >= low && n <= high; });
}

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual base::Status run(const Places& at) const = 0;
};

// ---- Windows of one element: a product of matrices ----

bool is_pointwise(const Convolution& c) {
  return c.groups == 1 && all_within(c.w, 2, 1, 1) && all_within(c.padding, 0, 0, 0);
}

// A row of a matrix is what the channels hold at one place. With a stride, the rows of x that the windows
// touch are gathered first, or put in their places afterwards.
class Pointwise : public Kernel {
 public:
  // Null where the library has no fast product.
  static std::unique_ptr<Kernel> make(const Convolution& c) {
    auto kernel = std::make_unique<Pointwise>();
    kernel->kind_ = c.kind;
    kernel->channels_ = static_cast<size_t>(c.w[1]);
    kernel->list_rows(c);
    kernel->product_ = find_product(as_product(c));
    return kernel->product_ == nullptr ? nullptr : std::move(kernel);
  }

  base::Status run(const Places& at) const override {
    const Scratch scratch(rows_.size() * row_bytes());
    void* const x = rows_.empty() ? at.x : scratch.data();
    auto* const all = static_cast<float*>(at.x);
    if (kind_ == Kind::kData) {
      SLUICE_OK(product_->run(at.y, at.w, x));
      if (rows_.empty()) return {};
      std::memset(all, 0, x_rows_ * row_bytes());
      copy_rows([&](size_t i) {
        return std::pair{all + rows_[i] * channels_, scratch.floats() + i * channels_};
      });
      return {};
    }
    copy_rows([&](size_t i) {
      return std::pair{scratch.floats() + i * channels_, all + rows_[i] * channels_};
    });
    return kind_ == Kind::kForward ? product_->run(x, at.w, at.y) : product_->run(at.y, x, at.w);
  }

 private:
  // The product in the order of its operands and result: (x, w) → y, (y, w) → x, (y, x) → w.
  static stablehlo::ProductCall as_product(const Convolution& c) {
    const int64_t in = c.w[1], out = c.w[0];
    const int64_t places = std::accumulate(c.y.begin() + 2, c.y.end(), c.y[0], std::multiplies<>());
    if (c.kind == Kind::kForward) return {.m = places, .k = in, .n = out, .transposed_b = true};
    if (c.kind == Kind::kData) return {.m = places, .k = out, .n = in};
    return {.m = out, .k = places, .n = in, .transposed_a = true};
  }

  // The rows of x that the windows touch, in their order; none where that is all of them.
  void list_rows(const Convolution& c) {
    x_rows_ = 1;
    for (size_t d = 0; d < c.x.size(); ++d) x_rows_ *= d == 1 ? 1 : static_cast<size_t>(c.x[d]);
    if (all_within(c.stride, 0, 1, 1)) return;
    rows_ = {0};
    for (size_t d = 0; d < c.x.size(); ++d) {
      if (d == 1) continue;
      const auto extent = static_cast<size_t>(c.x[d]), count = static_cast<size_t>(c.y[d]);
      const size_t step = d == 0 ? 1 : static_cast<size_t>(c.stride[d - 2]);
      std::vector<size_t> finer;
      finer.reserve(rows_.size() * count);
      for (const size_t row : rows_)
        for (size_t i = 0; i < count; ++i) finer.push_back(row * extent + i * step);
      rows_ = std::move(finer);
    }
  }

  size_t row_bytes() const { return channels_ * sizeof(float); }

  // to_and_from(i): where row i goes, and where it is.
  template <typename Row>
  void copy_rows(const Row& to_and_from) const {
    parallel_for((rows_.size() + kRowsOfPart - 1) / kRowsOfPart, [&](size_t part) {
      const size_t end = std::min(rows_.size(), (part + 1) * kRowsOfPart);
      for (size_t i = part * kRowsOfPart; i < end; ++i) {
        const auto [to, from] = to_and_from(i);
        std::memcpy(to, from, row_bytes());
      }
    });
  }

  static constexpr size_t kRowsOfPart = 64;

  Kind kind_{};
  size_t channels_ = 0, x_rows_ = 0;
  std::vector<size_t> rows_;
  const ProductKernel* product_ = nullptr;
};

// ---- Pictures of few pixels: a product of matrices too ----

class FewPixels : public Kernel {
 public:
  // Null where there are too many of them.
  static std::unique_ptr<Kernel> make(const Convolution& c) {
    auto kernel = std::make_unique<FewPixels>();
    kernel->convolution_ = FewPixelsConvolution::make(c);
    return kernel->convolution_ ? std::move(kernel) : nullptr;
  }

  base::Status run(const Places& at) const override {
    return convolution_->run(static_cast<float*>(at.x), static_cast<float*>(at.w), static_cast<float*>(at.y));
  }

 private:
  std::unique_ptr<FewPixelsConvolution> convolution_;
};

// ---- 3×3 with a stride of 1 or 2 ----

class Small : public Kernel {
 public:
  // Null where it is no such convolution, or where nothing would be gained.
  static std::unique_ptr<Kernel> make(const Convolution& c) {
    const bool fits = c.stride.size() == 2 && c.groups == 1 && all_within(c.w, 2, 3, 3) &&
                      all_within(c.dilation, 0, 1, 1) && all_within(c.padding, 0, 0, 2);
    const bool plain = all_within(c.stride, 0, 1, 1);
    const bool halving = all_within(c.stride, 0, 2, 2) && all_within(c.padding, 0, 1, 1);
    if (!fits || !(plain || halving)) return nullptr;
    auto kernel = std::make_unique<Small>();
    kernel->kind_ = c.kind;
    WinogradShape shape = {.batch = c.x[0],
                           .channels = c.x[1],
                           .filters = c.y[1],
                           .in_height = c.x[2],
                           .in_width = c.x[3],
                           .out_height = c.y[2],
                           .out_width = c.y[3],
                           .padding_height = c.padding[0],
                           .padding_width = c.padding[1],
                           .tiling = plain ? Tiling::kPlain : Tiling::kHalving};
    if (c.kind == Kind::kData) {
      std::swap(shape.channels, shape.filters);
      std::swap(shape.in_height, shape.out_height);
      std::swap(shape.in_width, shape.out_width);
      shape.padding_height = plain ? 2 - shape.padding_height : 0;
      shape.padding_width = plain ? 2 - shape.padding_width : 0;
      shape.turned = true;
      if (!plain) shape.tiling = Tiling::kDoubling;
    }
    kernel->winograd_ = c.kind == Kind::kWeights ? make_winograd_gradient(shape) : make_winograd(shape);
    return kernel->winograd_ ? std::move(kernel) : nullptr;
  }

  base::Status run(const Places& at) const override {
    auto *x = static_cast<float*>(at.x), *w = static_cast<float*>(at.w), *y = static_cast<float*>(at.y);
    if (kind_ == Kind::kWeights) return winograd_->run(x, y, w);
    return kind_ == Kind::kData ? winograd_->run(y, w, x) : winograd_->run(x, w, y);
  }

 private:
  Kind kind_{};
  std::unique_ptr<Winograd> winograd_;
};

// ---- The library's convolutions ----

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

// A primitive for some pictures at a time, and the change of the weight's layout before or after it.
class Windowed : public Kernel {
 public:
  // Null where the library has no fast primitive.
  static std::unique_ptr<Kernel> make(const Convolution& c) {
    auto kernel = std::make_unique<Windowed>();
    kernel->kind_ = c.kind;
    const Dims w = grouped_weight(c);
    std::vector<int> order(w.size());
    std::iota(order.begin(), order.end(), 0);
    kernel->w_ = dense(w, order);
    kernel->pictures_ = c.x[0];
    const int64_t parts = kernel->most_parts(c);
    kernel->pictures_of_part_ = (c.x[0] + parts - 1) / parts;
    kernel->parts_ = (c.x[0] + kernel->pictures_of_part_ - 1) / kernel->pictures_of_part_;
    kernel->full_ = kernel->make_part(c, kernel->pictures_of_part_);
    kernel->last_ = kernel->make_part(c, kernel->pictures_of(kernel->parts_ - 1));
    if (!kernel->full_.primitive || !kernel->last_.primitive) return nullptr;
    const dnnl_memory_desc_t& wanted = kernel->weight_layout();
    if (!same_layout(wanted, kernel->weight_layout(kernel->last_))) return nullptr;
    if (same_layout(wanted, kernel->w_)) return kernel;
    kernel->reorder_ =
        kernel->makes_weight() ? Reorder::make(wanted, kernel->w_) : Reorder::make(kernel->w_, wanted);
    return kernel->reorder_ ? std::move(kernel) : nullptr;
  }

  base::Status run(const Places& at) const override {
    return makes_weight() ? run_weights(at) : run_pictures(at);
  }

 private:
  struct Part {
    dnnl_memory_desc_t x, y;
    size_t x_bytes, y_bytes;
    std::unique_ptr<Primitive> primitive;
  };

  bool makes_weight() const { return kind_ == Kind::kWeights; }

  // Each part of a weight's gradient is a sum that has to be added to the others.
  int64_t most_parts(const Convolution& c) const {
    if (!makes_weight()) return kMostPartsOfThread * threads_of_a_call();
    const auto size = [](const Dims& dims) {
      return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
    };
    return parts_of_a_call((size(c.x) + size(c.y)) / (8 * size(c.w)));
  }
  int64_t pictures_of(int64_t part) const {
    return std::min(pictures_of_part_, pictures_ - part * pictures_of_part_);
  }
  const dnnl_memory_desc_t& weight_layout(const Part& part) const {
    return part.primitive->layout(makes_weight() ? dnnl_query_diff_weights_md : dnnl_query_weights_md);
  }
  const dnnl_memory_desc_t& weight_layout() const { return weight_layout(full_); }

  base::Status run_pictures(const Places& at) const {
    const Scratch scratch(reorder_ ? layout_bytes(weight_layout()) : 0);
    void* const weight = reorder_ ? scratch.data() : at.w;
    if (reorder_) SLUICE_OK(reorder_->run(at.w, weight));
    return parallel_for_status(static_cast<size_t>(parts_),
                               [&](size_t i) { return run_part(i, at, weight); });
  }

  base::Status run_weights(const Places& at) const {
    const auto parts = static_cast<size_t>(parts_);
    const size_t bytes = layout_bytes(weight_layout());
    const Scratch scratch((reorder_ ? parts : parts - 1) * bytes);
    // The first sum is the result, or what is brought into its layout.
    const std::vector<float*> sums = places_of_sums(
        parts, bytes / sizeof(float), reorder_ ? nullptr : static_cast<float*>(at.w), scratch.floats());
    SLUICE_OK(parallel_for_status(parts, [&](size_t i) { return run_part(i, at, sums[i]); }));
    add_partial_sums(sums, bytes / sizeof(float));
    return reorder_ ? reorder_->run(sums[0], at.w) : base::Status();
  }

  base::Status run_part(size_t i, const Places& at, void* weight) const {
    const Part& part = pictures_of(static_cast<int64_t>(i)) == pictures_of_part_ ? full_ : last_;
    auto* const x = static_cast<std::byte*>(at.x) + i * full_.x_bytes;
    auto* const y = static_cast<std::byte*>(at.y) + i * full_.y_bytes;
    return part.primitive->execute(std::array<Argument, 3>{
        {{kind_ == Kind::kData ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, &part.x, x},
         {makes_weight() ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, &weight_layout(), weight},
         {kind_ == Kind::kForward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, &part.y, y}}});
  }

  Part make_part(const Convolution& c, int64_t pictures) const {
    Dims x = c.x, y = c.y;
    x[0] = y[0] = pictures;
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
  int64_t pictures_ = 0, pictures_of_part_ = 0, parts_ = 0;
  dnnl_memory_desc_t w_;
  Part full_, last_;
  std::unique_ptr<Reorder> reorder_;
};

// ---- The calls ----

std::unique_ptr<Kernel> make_kernel(const Convolution& c) {
  if (is_pointwise(c))
    if (auto kernel = Pointwise::make(c)) return kernel;
  if (auto kernel = FewPixels::make(c)) return kernel;
  if (auto kernel = Small::make(c)) return kernel;
  return Windowed::make(c);
}

// For any kind but kBackward.
const Kernel* find_kernel(const Convolution& c) {
  static auto& kernels = *new Prepared<Kernel>;
  std::vector<int64_t> key = {static_cast<int64_t>(c.kind), c.groups, threads_of_a_call()};
  for (const Dims* dims : {&c.x, &c.w, &c.y, &c.stride, &c.padding, &c.dilation})
    key.insert(key.end(), dims->begin(), dims->end());
  return kernels.find(key, [&] { return make_kernel(c); });
}

std::vector<Convolution> parts_of(const Convolution& c) {
  if (c.kind != Kind::kBackward) return {c};
  std::vector<Convolution> parts = {c, c};
  parts[0].kind = Kind::kData;
  parts[1].kind = Kind::kWeights;
  return parts;
}

// What is wrong with the call, if anything is: then nothing may run it.
std::optional<std::string> fault_of(const Convolution& c) {
  const size_t spatial = c.stride.size();
  const auto text = [](const Dims& dims) { return base::str("[", base::join(dims, ","), "]"); };
  if (spatial < 1 || spatial > 3 || c.padding.size() != spatial || c.dilation.size() != spatial)
    return base::str("stride ", text(c.stride), ", padding ", text(c.padding), ", dilation ",
                     text(c.dilation), ", expected one entry for each of 1 to 3 spatial dimensions");
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  if (!all_within(c.stride, 0, 1, kMax) || !all_within(c.padding, 0, 0, kMax) ||
      !all_within(c.dilation, 0, 1, kMax) || c.groups < 1)
    return base::str("stride ", text(c.stride), ", padding ", text(c.padding), ", dilation ",
                     text(c.dilation), ", ", c.groups,
                     " groups, expected 1 or more each, and a padding of 0 or more");
  const std::string shapes = base::str("x ", text(c.x), ", w ", text(c.w), ", y ", text(c.y));
  for (const Dims* dims : {&c.x, &c.w, &c.y})
    if (dims->size() != spatial + 2 || !all_within(*dims, 0, 1, kMax))
      return base::str(shapes, ", expected ", spatial + 2, " dims each, which are not 0");
  if (c.x[0] != c.y[0] || c.w[0] != c.y[1] || c.w[0] % c.groups != 0 || c.w[1] * c.groups != c.x[1])
    return base::str(shapes, ", expected [N, C, …], [O, C / groups, …] and [N, O, …] with ", c.groups,
                     " groups");
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t room = c.x[d + 2] + 2 * c.padding[d] - c.dilation[d] * (c.w[d + 2] - 1) - 1;
    if (room < 0 || room / c.stride[d] + 1 != c.y[d + 2])
      return base::str(shapes, ", expected ", room < 0 ? 0 : room / c.stride[d] + 1,
                       " results along dimension ", d + 2, " with stride ", c.stride[d], ", padding ",
                       c.padding[d], " and dilation ", c.dilation[d]);
  }
  return std::nullopt;
}

}  // namespace

bool has_convolution(const Convolution& c) {
  if (fault_of(c)) return false;
  if (!Onednn::open()) return false;
  const UseThreads threads;
  const std::vector<Convolution> parts = parts_of(c);
  return std::all_of(parts.begin(), parts.end(),
                     [](const Convolution& p) { return find_kernel(p) != nullptr; });
}

base::Status run_convolution(const Convolution& c, const ConvolutionMemory& at) {
  for (const Convolution& part : parts_of(c)) {
    const Kernel* kernel = find_kernel(part);
    if (kernel == nullptr) return no_kernel("convolution");
    SLUICE_OK(kernel->run({part.kind == Kind::kData ? at.x_gradient : at.x,
                           part.kind == Kind::kWeights ? at.w_gradient : at.w, at.y}));
  }
  return {};
}

base::Status call_convolution(const Call& call) {
  Convolution c;
  SLUICE_TRY(const int64_t kind, call.number("kind"));
  SLUICE_TRY(c.groups, call.number("groups"));
  SLUICE_TRY(c.stride, call.list("stride"));
  SLUICE_TRY(c.padding, call.list("padding"));
  SLUICE_TRY(c.dilation, call.list("dilation"));
  c.kind = static_cast<Kind>(kind);
  const bool both = c.kind == Kind::kBackward;
  SLUICE_OK(call.takes({{both ? size_t{3} : size_t{2}, both ? size_t{2} : size_t{1}}}));
  SLUICE_TRY(const Tensor first, call.operand(0, c.kind == Kind::kData ? "grad_y" : "x"));
  SLUICE_TRY(const Tensor second, call.operand(1, c.kind == Kind::kWeights ? "grad_y" : "w"));
  SLUICE_TRY(const Tensor third, both ? call.operand(2, "grad_y") : base::Result<Tensor>(second));
  SLUICE_TRY(const Tensor result, both ? call.result(0, "grad_x", first.dims) : call.result(0, "result"));
  SLUICE_TRY(const Tensor other, both ? call.result(1, "grad_w", second.dims) : base::Result<Tensor>(result));
  const Tensor &x = c.kind == Kind::kData ? result : first, &w = c.kind == Kind::kWeights ? result : second,
               &y = c.kind == Kind::kForward ? result : (c.kind == Kind::kData ? first : third);
  c.x.assign(x.dims.begin(), x.dims.end());
  c.w.assign(w.dims.begin(), w.dims.end());
  c.y.assign(y.dims.begin(), y.dims.end());
  if (const auto fault = fault_of(c)) return call.refuse(*fault);
  return run_convolution(c, {x.data, w.data, y.data, result.data, other.data});
}

}  // namespace sluice::kernels
