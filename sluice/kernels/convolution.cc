#include "sluice/kernels/convolution.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/onednn.h"
#include "sluice/kernels/prepared.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using Dims = stablehlo::Dims;
using Convolution = stablehlo::ConvolutionCall;
using Kind = Convolution::Kind;

std::vector<int> channels_last(size_t rank) {
  std::vector<int> order = {0};
  for (int i = 2; i < static_cast<int>(rank); ++i) order.push_back(i);
  order.push_back(1);
  return order;
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

// The primitive, and the change of the weight's layout before or after it.
struct Kernel {
  dnnl_memory_desc_t x, w, y;
  std::unique_ptr<Primitive> convolution, reorder;

  static std::unique_ptr<Kernel> make(const Convolution& c);
  base::Status run(Kind kind, void* x_data, void* w_data, void* y_data) const;

 private:
  bool make_primitive(const Convolution& c);
};

bool Kernel::make_primitive(const Convolution& c) {
  const Onednn& library = *base::value_or_throw(Onednn::open());
  const dnnl_memory_desc_t any = any_layout(grouped_weight(c));
  // The library counts dilation from 0.
  Dims dilation = c.dilation;
  for (int64_t& d : dilation) --d;
  dnnl_convolution_desc_t forward_description;
  const auto forward_status = library.dilated_convolution_forward_desc_init(
      &forward_description, dnnl_forward_training, dnnl_convolution_direct, &x, &any, nullptr, &y,
      c.stride.data(), dilation.data(), c.padding.data(), c.padding.data());
  if (forward_status != dnnl_success) return false;
  auto forward = Primitive::create(&forward_description);
  if (c.kind == Kind::kForward || !forward) {
    convolution = std::move(forward);
    return convolution != nullptr;
  }
  dnnl_convolution_desc_t description;
  const bool data = c.kind == Kind::kData;
  const auto status =
      data ? library.dilated_convolution_backward_data_desc_init(
                 &description, dnnl_convolution_direct, &x, &any, &y, c.stride.data(), dilation.data(),
                 c.padding.data(), c.padding.data())
           : library.dilated_convolution_backward_weights_desc_init(
                 &description, dnnl_convolution_direct, &x, &any, nullptr, &y, c.stride.data(),
                 dilation.data(), c.padding.data(), c.padding.data());
  if (status != dnnl_success) return false;
  convolution = Primitive::create(&description, forward.get());
  return convolution != nullptr;
}

std::unique_ptr<Kernel> Kernel::make(const Convolution& c) {
  auto kernel = std::make_unique<Kernel>();
  const Dims w = grouped_weight(c);
  std::vector<int> order(w.size());
  std::iota(order.begin(), order.end(), 0);
  kernel->x = dense(c.x, channels_last(c.x.size()));
  kernel->y = dense(c.y, channels_last(c.y.size()));
  kernel->w = dense(w, order);
  if (!kernel->make_primitive(c)) return nullptr;
  const bool gradient = c.kind == Kind::kWeights;
  const dnnl_memory_desc_t& wanted = kernel->convolution->layout(
      gradient ? dnnl_query_diff_weights_md : dnnl_query_weights_md);
  if (same_layout(wanted, kernel->w)) return kernel;
  kernel->reorder = gradient ? Primitive::reorder(wanted, kernel->w) : Primitive::reorder(kernel->w, wanted);
  return kernel->reorder ? std::move(kernel) : nullptr;
}

base::Status Kernel::run(Kind kind, void* x_data, void* w_data, void* y_data) const {
  const bool gradient = kind == Kind::kWeights;
  const dnnl_memory_desc_t& blocked =
      convolution->layout(gradient ? dnnl_query_diff_weights_md : dnnl_query_weights_md);
  const Scratch scratch(reorder ? layout_bytes(blocked) : 0);
  void* const weight = reorder ? scratch.data() : w_data;
  if (reorder && !gradient)
    SLUICE_OK(reorder->execute(std::array<Argument, 2>{{{DNNL_ARG_FROM, &w, w_data},
                                                        {DNNL_ARG_TO, &blocked, weight}}}));
  SLUICE_OK(convolution->execute(std::array<Argument, 3>{
      {{kind == Kind::kData ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, &x, x_data},
       {gradient ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, &blocked, weight},
       {kind == Kind::kForward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, &y, y_data}}}));
  if (reorder && gradient)
    SLUICE_OK(reorder->execute(std::array<Argument, 2>{{{DNNL_ARG_FROM, &blocked, weight},
                                                        {DNNL_ARG_TO, &w, w_data}}}));
  return {};
}

// All that the kernel depends on.
std::vector<int64_t> key_of(const Convolution& c) {
  std::vector<int64_t> key = {static_cast<int64_t>(c.kind), c.groups, threads_of_a_call()};
  for (const Dims* dims : {&c.x, &c.w, &c.y, &c.stride, &c.padding, &c.dilation})
    key.insert(key.end(), dims->begin(), dims->end());
  return key;
}

const Kernel* find_kernel(const Convolution& c) {
  static auto& kernels = *new Prepared<Kernel>;
  return kernels.find(key_of(c), [&] { return Kernel::make(c); });
}

base::Result<Dims> list(const pjrt::CustomCall& call, std::string_view name) {
  SLUICE_TRY(const auto found, call.numbers(name));
  if (!found) return base::fail(Code::kInvalidArgument, "a convolution's call needs the list ", name);
  return Dims(found->begin(), found->end());
}

}  // namespace

bool has_convolution(const Convolution& c) {
  const size_t spatial = c.stride.size();
  const auto empty = [](const Dims& dims) { return std::find(dims.begin(), dims.end(), 0) != dims.end(); };
  if (spatial < 1 || spatial > 3 || empty(c.x) || empty(c.y) || empty(c.w)) return false;
  if (!Onednn::open()) return false;
  const UseThreads threads;
  return find_kernel(c) != nullptr;
}

base::Status call_convolution(const pjrt::CustomCall& call) {
  Convolution c;
  SLUICE_TRY(const auto kind, call.number("kind"));
  SLUICE_TRY(const auto groups, call.number("groups"));
  c.kind = static_cast<Kind>(kind.value_or(0));
  c.groups = groups.value_or(1);
  SLUICE_TRY(c.stride, list(call, "stride"));
  SLUICE_TRY(c.padding, list(call, "padding"));
  SLUICE_TRY(c.dilation, list(call, "dilation"));
  SLUICE_TRY(const pjrt::CallBuffer first, call.operand(0));
  SLUICE_TRY(const pjrt::CallBuffer second, call.operand(1));
  SLUICE_TRY(const pjrt::CallBuffer result, call.result(0));
  const pjrt::CallBuffer& x = c.kind == Kind::kData ? result : first;
  const pjrt::CallBuffer& w = c.kind == Kind::kWeights ? result : second;
  const pjrt::CallBuffer& y =
      c.kind == Kind::kForward ? result : (c.kind == Kind::kData ? first : second);
  c.x.assign(x.dims.begin(), x.dims.end());
  c.w.assign(w.dims.begin(), w.dims.end());
  c.y.assign(y.dims.begin(), y.dims.end());
  const UseThreads threads;
  const Kernel* kernel = find_kernel(c);
  if (kernel == nullptr) {
    return base::fail(Code::kFailedPrecondition,
                      "this machine has no kernel for a convolution that the program was compiled with on "
                      "another; train with --cpu-kernels off here");
  }
  return kernel->run(c.kind, x.data, w.data, y.data);
}

}  // namespace sluice::kernels
