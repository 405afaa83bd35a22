// Operations whose results have shapes that depend on values. A program has one shape, so the host must see
// the values: it reads the values that decide the shape, once, and the rest stays on the device. (If all
// values decide, as for nonzero, LibTorch runs the operation on the host: fallback.cc.)
#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/native/IndexingUtils.h>
#include <torch/library.h>

#include <algorithm>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/device/operators/host_shapes.h"
#include "sluice/device/operators/value_shapes.h"
#include "sluice/device/program/record.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/report/recompiles.h"
#include "sluice/device/storage.h"
#include "sluice/device/transfer.h"

namespace sluice::device {
namespace {

// Returns the values on the host; an error unless all replicas have the same.
at::Tensor on_host(const at::Tensor& tensor, const char* op) {
  return on_device(tensor) ? download(tensor, op, Sameness::kGlobal, 0) : tensor;
}

void note_length(std::string_view operation, int64_t length) {
  const TraceLock lock = lock_trace();
  note_value_shape(operation, length);
}

at::Tensor noted(std::string_view operation, at::Tensor result) {
  const TraceLock lock = lock_trace();
  note_value_shape(operation, result.size(0));
  const c10::IValue value(result);
  note_lengths_here(value, operation);
  return result;
}

at::Tensor& put(const at::Tensor& result, at::Tensor& out) {
  return out.resize_(result.sizes()).copy_(result);
}

at::Tensor select_by_mask(const at::Tensor& self, const at::Tensor& mask) {
  if (mask.scalar_type() != at::kBool)
    throw_error(Code::kInvalidArgument, base::str("aten::masked_select: expected a mask of bool, found ",
                                                  c10::toString(mask.scalar_type())));
  const at::Tensor there = mask.to(self.device());
  const auto [values, where] = at::expand_outplace(self, there);
  const at::Tensor positions = at::nonzero(where->reshape({-1})).squeeze(1);
  note_length("masked_select", positions.numel());
  return values->reshape({-1}).index_select(0, positions);
}

at::Tensor& select_by_mask_out(const at::Tensor& self, const at::Tensor& mask, at::Tensor& out) {
  return put(select_by_mask(self, mask), out);
}

// Returns each position i repeats[i] times: place p of the result holds the first i whose running total
// exceeds p.
at::Tensor repeated_positions(const at::Tensor& repeats, std::optional<int64_t> output_size) {
  if (repeats.dim() != 1 || (repeats.scalar_type() != at::kLong && repeats.scalar_type() != at::kInt))
    throw_error(Code::kInvalidArgument,
                base::str("aten::repeat_interleave: expected repeats of one dimension of int or long, found ",
                          repeats.sizes(), " of ", c10::toString(repeats.scalar_type())));
  if (!output_size) {
    const at::Tensor host = on_host(repeats, "aten::repeat_interleave");
    return noted("repeat_interleave", at::repeat_interleave(host).to(repeats.device()));
  }
  return at::searchsorted(repeats.cumsum(0), at::arange(*output_size, repeats.options().dtype(at::kLong)),
                          /*out_int32=*/false, /*right=*/true)
      .to(repeats.scalar_type());
}

// Counts on the host; for values that stay with the host.
at::Tensor counts_on_host(const at::Tensor& self, const std::optional<at::Tensor>& weights,
                          int64_t minlength) {
  const at::Tensor values = on_host(self, "aten::bincount");
  std::optional<at::Tensor> each;
  if (weights && weights->defined()) each = on_host(*weights, "aten::bincount");
  return noted("bincount", at::bincount(values, each, minlength).to(self.device()));
}

at::Tensor counts_of_values(const at::Tensor& self, const std::optional<at::Tensor>& weights,
                            int64_t minlength) {
  if (self.dim() != 1 || !c10::isIntegralType(self.scalar_type(), false))
    throw_error(Code::kInvalidArgument,
                base::str("aten::bincount: expected integers of one dimension, found ", self.sizes(), " of ",
                          c10::toString(self.scalar_type())));
  if (minlength < 0) throw_error(Code::kInvalidArgument, "aten::bincount: expected minlength of at least 0");
  const bool weighted = weights.has_value() && weights->defined();
  if (weighted && !weights->sizes().equals(self.sizes()))
    throw_error(Code::kInvalidArgument, base::str("aten::bincount: expected one weight a value, found ",
                                                  weights->sizes(), " for ", self.sizes()));
  {
    const TraceLock lock = lock_trace();
    if (on_device(self) && stays_with_host(self)) return counts_on_host(self, weights, minlength);
  }
  int64_t size = minlength;
  if (self.numel() > 0) {
    const auto [low, high] = at::aminmax(self);
    const at::Tensor bounds = on_host(at::stack({low, high}).to(at::kLong), "aten::bincount");
    if (bounds[0].item<int64_t>() < 0)
      throw_error(Code::kInvalidArgument,
                  base::str("aten::bincount: expected no negative value, found ", bounds[0].item<int64_t>()));
    size = std::max(size, bounds[1].item<int64_t>() + 1);
  }
  const at::Tensor places = self.to(at::kLong);
  const auto type = !weighted ? at::kLong : weights->scalar_type() == at::kFloat ? at::kFloat : at::kDouble;
  const at::Tensor counts = at::zeros({size}, self.options().dtype(type));
  return noted("bincount",
               counts.scatter_add(0, places, weighted ? weights->to(type) : at::ones_like(places)));
}

// The operations whose second argument is a list of indices.
constexpr std::string_view kIndexed[] = {"aten::index.Tensor", "aten::index.Tensor_out",
                                         "aten::_index_put_impl_"};

bool is_mask(const at::Tensor& index) {
  return index.defined() && (index.scalar_type() == at::kBool || index.scalar_type() == at::kByte);
}

}  // namespace

bool index_by_positions(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string name = toString(op.schema().operator_name());
  if (std::find(std::begin(kIndexed), std::end(kIndexed), name) == std::end(kIndexed)) return false;
  const size_t count = op.schema().arguments().size();
  const auto indices = torch::jit::peek(*stack, 1, count).toOptionalTensorList();
  bool masked = false;
  for (size_t i = 0; i < indices.size(); ++i) {
    const std::optional<at::Tensor> index = indices.get(i);
    masked = masked || (index && is_mask(*index));
  }
  if (!masked) return false;
  const at::Tensor self = torch::jit::peek(*stack, 0, count).toTensor();
  c10::List<std::optional<at::Tensor>> positions;
  for (const at::Tensor& index : at::native::expandTensors(self, indices))
    positions.push_back(index.defined() ? std::optional(index) : std::nullopt);
  for (size_t i = 0; i < positions.size(); ++i) {
    const std::optional<at::Tensor> position = positions.get(i);
    if (position && position->dim() == 1)
      note_length(name == "aten::_index_put_impl_" ? "index_put_" : "index", position->size(0));
  }
  torch::jit::peek(*stack, 1, count) = positions;
  op.callBoxed(stack);
  return true;
}

void register_value_shapes() {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::XLA, __FILE__, __LINE__);
  library->impl("masked_select", TORCH_FN(select_by_mask));
  library->impl("masked_select.out", TORCH_FN(select_by_mask_out));
  library->impl("repeat_interleave.Tensor", TORCH_FN(repeated_positions));
  library->impl("bincount", TORCH_FN(counts_of_values));
}

}  // namespace sluice::device
