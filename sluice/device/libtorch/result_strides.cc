#include "sluice/device/libtorch/result_strides.h"

#include <ATen/TensorIterator.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "sluice/device/program/call_arguments.h"
#include "sluice/device/storage.h"

namespace sluice::device {
namespace {

using Strides = std::vector<std::vector<int64_t>>;

std::vector<uint64_t> key_of(c10::ArrayRef<c10::IValue> arguments, const Instance& instance) {
  std::vector<uint64_t> key = {instance.id};
  for (const c10::IValue& argument : arguments)
    for_each_tensor(argument, [&](const at::Tensor& tensor) {
      key.insert(key.end(), tensor.strides().begin(), tensor.strides().end());
    });
  return key;
}

at::Tensor as_meta(const at::Tensor& tensor) {
  if (!on_device(tensor)) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
}

bool fits(const at::Tensor& tensor, TypeRef type) {
  return tensor.defined() && type != nullptr && tensor.sizes().equals(type->type.dims) &&
         tensor.storage_offset() == 0 && tensor.is_non_overlapping_and_dense();
}

// Operations whose results LibTorch makes row-major for all operands.
constexpr std::string_view kRowMajor[] = {"aten::mse_loss_backward",
                                          "aten::smooth_l1_loss_backward",
                                          "aten::huber_loss_backward",
                                          "aten::native_layer_norm",
                                          "aten::native_layer_norm_backward",
                                          "aten::_weight_norm_interface",
                                          "aten::_weight_norm_interface_backward",
                                          "aten::log_sigmoid_forward",
                                          "aten::cummax",
                                          "aten::cummin",
                                          "aten::logcumsumexp",
                                          "aten::roll",
                                          "aten::channel_shuffle",
                                          "aten::multilabel_margin_loss_forward",
                                          "aten::_scaled_dot_product_flash_attention_for_cpu",
                                          "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
                                          "sluice::attention_with_dropout",
                                          "sluice::attention_with_dropout_backward"};
// Operations whose results LibTorch makes row-major only for complex operands.
constexpr std::string_view kRowMajorOfComplex[] = {"aten::angle"};
// Operations whose first result LAPACK makes: matrices whose columns are contiguous.
constexpr std::string_view kColumnMajor[] = {"aten::_cholesky_solve_helper",     "aten::cholesky_inverse",
                                             "aten::linalg_solve_triangular",    "aten::geqrf",
                                             "aten::linalg_householder_product", "aten::ormqr"};
// Operations whose results have the strides of one argument (empty_like), and which have no meta kernel.
constexpr struct {
  std::string_view row;
  size_t argument;
} kLike[] = {{"aten::fake_quantize_per_channel_affine_cachemask", 0},
             {"aten::_fake_quantize_learnable_per_channel_affine", 0},
             {"aten::_fake_quantize_learnable_per_channel_affine_backward", 1}};
// Operations whose results have the first operand's order of channels (Tensor::suggest_memory_format), and
// which have no meta kernel.
constexpr std::string_view kAsImages[] = {"aten::convolution_overrideable", "aten::native_batch_norm",
                                          "aten::native_batch_norm_backward"};

template <size_t n>
bool lists(const std::string_view (&names)[n], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Returns the strides of LibTorch's own inference; nothing if the operation has no meta kernel.
std::optional<Strides> by_meta_kernel(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments,
                                      const Instance& instance) {
  if (!op.hasComputedKernelForDispatchKey(c10::DispatchKey::Meta)) return std::nullopt;
  // An observer that cuts the graph here would split the operation that is being recorded.
  const at::DisableRecordFunctionGuard unobserved;
  torch::jit::Stack stack;
  for (const c10::IValue& argument : arguments)
    stack.push_back(on_other_device(argument, at::kMeta, as_meta));
  try {
    at::AutoDispatchBelowAutograd below;
    op.callBoxed(stack);
  } catch (const std::exception&) {
    return std::nullopt;  // the kernel needs values
  }
  Strides strides(instance.results.size());
  for (size_t i = 0; i < stack.size() && i < strides.size(); ++i) {
    if (stack[i].isTensor() && fits(stack[i].toTensor(), instance.results[i]))
      strides[i] = stack[i].toTensor().strides().vec();
  }
  return strides;
}

// Returns the strides by the rule of LibTorch's TensorIterator, which operations on elements use.
std::vector<int64_t> by_elements(c10::ArrayRef<c10::IValue> arguments, TypeRef result) {
  at::TensorIteratorConfig config;
  config.check_all_same_dtype(false).set_check_mem_overlap(false).declare_static_dtype_and_device(
      result->scalar_type, at::kMeta);
  config.add_owned_output(at::Tensor());
  for (const c10::IValue& argument : arguments)
    for_each_tensor(argument, [&](const at::Tensor& tensor) {
      if (on_device(tensor)) config.add_owned_const_input(as_meta(tensor));
    });
  try {
    const at::Tensor output = config.build().output();
    if (fits(output, result)) return output.strides().vec();
  } catch (const std::exception&) {
    // The shapes do not broadcast to each other: this is an operation of another kind.
  }
  return {};
}

std::vector<int64_t> as_image(const at::Tensor& image, TypeRef result) {
  const auto format = image.suggest_memory_format();
  if (format == at::MemoryFormat::Contiguous || result->type.dims.size() != static_cast<size_t>(image.dim()))
    return {};
  return at::empty(result->type.dims, at::TensorOptions().device(at::kMeta).memory_format(format))
      .strides()
      .vec();
}

std::vector<int64_t> column_major(stablehlo::Dims dims) {
  std::swap(dims.back(), dims[dims.size() - 2]);
  return at::empty(dims, at::TensorOptions().device(at::kMeta)).mT().strides().vec();
}

std::vector<int64_t> strides_of(c10::ArrayRef<c10::IValue> arguments, const ops::Row& row, TypeRef result) {
  if (result == nullptr) return {};
  for (const auto& like : kLike) {
    if (like.row != row.name) continue;
    const at::Tensor made = at::empty_like(as_meta(arguments[like.argument].toTensor()));
    return fits(made, result) ? made.strides().vec() : std::vector<int64_t>();
  }
  if (lists(kAsImages, row.name)) return as_image(arguments[0].toTensor(), result);
  return by_elements(arguments, result);
}

}  // namespace

const Strides& result_strides(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments,
                              const Instance& instance) {
  static auto& known = *new std::map<std::vector<uint64_t>, Strides>();
  const auto [found, is_new] = known.try_emplace(key_of(arguments, instance));
  Strides& strides = found->second;
  if (!is_new) return strides;
  if (lists(kColumnMajor, instance.row->name)) {
    strides.resize(instance.results.size());
    strides[0] = column_major(instance.results[0]->type.dims);
    return strides;
  }
  const bool row_major =
      lists(kRowMajor, instance.row->name) ||
      (lists(kRowMajorOfComplex, instance.row->name) && arguments[0].toTensor().is_complex());
  if (auto inferred = row_major ? std::nullopt : by_meta_kernel(op, arguments, instance))
    return strides = std::move(*inferred);
  for (const TypeRef result : instance.results)
    strides.push_back(row_major ? std::vector<int64_t>() : strides_of(arguments, *instance.row, result));
  return strides;
}

}  // namespace sluice::device
