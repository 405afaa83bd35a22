#include "sluice/device/libtorch/view_chains.h"

#include <ATen/ops/as_strided.h>

#include <optional>
#include <utility>
#include <vector>

namespace sluice::device {
namespace {

using torch::autograd::ViewFunc;
using torch::autograd::ViewInfo;
using SymInts = std::optional<std::vector<c10::SymInt>>;
using Tensors = std::optional<std::vector<at::Tensor>>;

// A part of a tensor's memory, relative to another tensor in it.
struct Strided {
  std::vector<int64_t> sizes, strides;
  int64_t offset;  // from the other tensor's first element

  Strided(const at::Tensor& tensor, const at::Tensor& other)
      : sizes(tensor.sizes().vec()),
        strides(tensor.strides().vec()),
        offset(tensor.storage_offset() - other.storage_offset()) {}
  at::Tensor of(const at::Tensor& other) const {
    return other.as_strided(sizes, strides, other.storage_offset() + offset);
  }
};

class StridedView final : public ViewFunc {
 public:
  explicit StridedView(Strided part) : part_(std::move(part)) {}
  at::Tensor operator()(const at::Tensor& base) const override { return part_.of(base); }
  std::unique_ptr<ViewFunc> clone_and_set(SymInts, Tensors) const override {
    return std::make_unique<StridedView>(part_);
  }

 private:
  Strided part_;
};

// A function and the number of views that it applies.
class CountedViews final : public ViewFunc {
 public:
  CountedViews(std::unique_ptr<ViewFunc> function, size_t views)
      : function_(std::move(function)), views_(views) {}
  size_t views() const { return views_; }

  std::vector<c10::SymInt> get_symints() const override { return function_->get_symints(); }
  size_t num_symints() const override { return function_->num_symints(); }
  std::vector<at::Tensor> get_tensors() const override { return function_->get_tensors(); }
  size_t num_tensors() const override { return function_->num_tensors(); }
  at::Tensor operator()(const at::Tensor& base) const override { return (*function_)(base); }
  std::unique_ptr<ViewFunc> clone_and_set(SymInts numbers, Tensors tensors) const override {
    return std::make_unique<CountedViews>(function_->clone_and_set(std::move(numbers), std::move(tensors)),
                                          views_);
  }

 private:
  std::unique_ptr<ViewFunc> function_;
  size_t views_;
};

// Returns whether the view's elements are the base's own, at other places: their type is the same, and no
// conjugation or negation is left to do.
bool is_part_of(const at::Tensor& view, const at::Tensor& base) {
  return view.is_xla() && base.is_xla() && view.scalar_type() == base.scalar_type() &&
         view.is_conj() == base.is_conj() && view.is_neg() == base.is_neg() &&
         view.storage().unsafeGetStorageImpl() == base.storage().unsafeGetStorageImpl() &&
         base.is_non_overlapping_and_dense();
}

}  // namespace

ViewInfo short_chain(const ViewInfo& parent, const at::Tensor& tensor, std::unique_ptr<ViewFunc> function,
                     ReverseView reverse,
                     const std::function<ViewInfo(std::unique_ptr<ViewFunc>, ReverseView)>& chain) {
  const auto* const counted = dynamic_cast<const CountedViews*>(parent.view_fn_.get());
  const size_t views = (counted == nullptr ? 1 : counted->views()) + 1;
  const at::Tensor& base = parent.base_;
  // A view without a function is one that may not be written, such as a part of unbind().
  if (views > kMaxChainedViews && parent.has_view_fn() && function != nullptr && is_part_of(tensor, base))
    return {base, std::make_unique<StridedView>(Strided(tensor, base)),
            [whole = Strided(base, tensor)](const at::Tensor& view) { return whole.of(view); }};
  ViewInfo info = chain(std::move(function), std::move(reverse));
  if (info.has_view_fn()) info.view_fn_ = std::make_unique<CountedViews>(std::move(info.view_fn_), views);
  return info;
}

}  // namespace sluice::device
