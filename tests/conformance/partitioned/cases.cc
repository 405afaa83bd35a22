#include "tests/conformance/partitioned/cases.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "sluice/device/sharding/shard.h"

namespace sluice::conformance {
namespace {

constexpr int64_t kParts = 4;  // devices along both axes

const std::vector<std::string> kBoth = {"data", "fsdp"};

// One axis; which one alternates, so that both are seen.
std::vector<std::string> one_axis(size_t number) { return {kBoth[number % 2]}; }

bool divides(int64_t parts, int64_t size) { return size >= parts && size % parts == 0; }

std::string argument(size_t number) { return "argument " + std::to_string(number) + " "; }

Case laid_out_case(size_t tensors, size_t number, const Layout& layout) {
  Case made{argument(number) + layout.str(), std::vector<Placing>(tensors)};
  made.tensors[number] = {Placing::Kind::kLaidOut, layout};
  return made;
}

bool is_whole(const Layout& layout) { return layout.is_replicated(Mesh::parse(kTwoByTwo)); }

// Over both axes in two dimensions: a layout that no single dimension has.
bool is_mixed(const Layout& layout) {
  return std::count_if(layout.dims().begin(), layout.dims().end(),
                       [](const LayoutDim& dim) { return !dim.axes.empty(); }) > 1;
}

void add_dimensions(std::vector<Case>& cases, const Inputs& inputs, size_t number) {
  const at::Tensor& base = inputs.tensors[number].base;
  const auto rank = static_cast<size_t>(base.dim());
  for (size_t d = 0; d < rank; ++d) {
    const int64_t size = base.size(static_cast<int64_t>(d));
    const auto add = [&](std::vector<std::string> axes) {
      cases.push_back(laid_out_case(inputs.tensors.size(), number, Layout::along(rank, d, std::move(axes))));
    };
    if (divides(2, size)) add(one_axis(number + d));
    if (divides(kParts, size)) add(kBoth);
  }
  const Layout both = spread(base.sizes());
  if (is_mixed(both)) {
    cases.push_back(laid_out_case(inputs.tensors.size(), number, both));
    cases.back().name += ", results too";
    cases.back().results = true;
  }
}

bool can_be_a_sum(const at::Tensor& tensor) {
  return tensor.numel() > 0 && !c10::isFloat8Type(tensor.scalar_type());
}

void add_sums(std::vector<Case>& cases, const Inputs& inputs, size_t number) {
  if (!can_be_a_sum(inputs.tensors[number].base)) return;
  for (const bool results : {false, true}) {
    Case made{argument(number) + "unreduced" + (results ? ", results laid out" : ""),
              std::vector<Placing>(inputs.tensors.size()), results};
    made.tensors[number].kind = Placing::Kind::kUnreduced;
    cases.push_back(std::move(made));
  }
}

// Every tensor that can be, each as spread() says.
Case everything_case(const Inputs& inputs) {
  Case made{"all arguments", std::vector<Placing>(inputs.tensors.size())};
  for (size_t i = 0; i < inputs.tensors.size(); ++i) {
    const Layout layout = spread(inputs.tensors[i].base.sizes());
    if (!is_whole(layout)) made.tensors[i] = {Placing::Kind::kLaidOut, layout};
  }
  return made;
}

size_t laid_out_tensors(const Case& one) {
  return static_cast<size_t>(
      std::count_if(one.tensors.begin(), one.tensors.end(),
                    [](const Placing& placing) { return placing.kind != Placing::Kind::kWhole; }));
}

// All arguments along the same dimension over one axis; devices that differ along the other axis hold equal
// blocks.
void add_alike(std::vector<Case>& cases, const Inputs& inputs) {
  int64_t max_rank = 0;
  for (const auto& tensor : inputs.tensors) max_rank = std::max(max_rank, tensor.base.dim());
  for (int64_t d = 0; d < max_rank; ++d) {
    const auto number = static_cast<size_t>(d);
    Case made{"all arguments along dimension " + std::to_string(d),
              std::vector<Placing>(inputs.tensors.size())};
    for (size_t i = 0; i < inputs.tensors.size(); ++i) {
      const at::Tensor& base = inputs.tensors[i].base;
      if (d < base.dim() && divides(2, base.size(d)))
        made.tensors[i] = {Placing::Kind::kLaidOut,
                           Layout::along(static_cast<size_t>(base.dim()), number, one_axis(number))};
    }
    if (laid_out_tensors(made) > 1) cases.push_back(std::move(made));
  }
}

// A sum over the devices that gives the host's tensor: each device has a part of its elements, and 0 for the
// others.
at::Tensor sum_of_parts(const at::Tensor& host, bool broken) {
  const int64_t count = host.numel();
  const at::Tensor mine = at::arange(count).remainder(kParts).eq(at::arange(kParts).unsqueeze(1));
  at::Tensor parts = at::where(mine, host.reshape({1, count}), at::zeros({}, host.options()));
  if (broken) parts = at::cat({parts.narrow(0, 1, kParts - 1), parts.new_zeros({1, count})});
  const at::Tensor laid_out = shard(parts, Layout::along(2, 0, kBoth));
  if (at::isFloatingType(host.scalar_type())) {
    const at::Tensor ones = shard(at::ones({1, kParts}, host.options()), Layout::along(2, 1, kBoth));
    return at::mm(ones, laid_out).reshape(host.sizes());
  }
  if (host.scalar_type() == at::kBool) return laid_out.any(0).reshape(host.sizes());
  return at::sum(laid_out, at::IntArrayRef{0}, false, host.scalar_type()).reshape(host.sizes());
}

}  // namespace

Layout spread(c10::IntArrayRef sizes) {
  std::vector<LayoutDim> dims(sizes.size());
  size_t axis = 0;
  for (size_t d = 0; d < sizes.size() && axis < kBoth.size(); ++d)
    if (divides(2, sizes[d])) dims[d].axes = {kBoth[axis++]};
  if (axis != 1) return Layout(dims);
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!dims[d].axes.empty() && divides(kParts, sizes[d])) dims[d].axes = kBoth;
  return Layout(dims);
}

std::vector<Case> cases_of(const Inputs& inputs) {
  std::vector<Case> cases;
  for (size_t i = 0; i < inputs.tensors.size(); ++i) add_dimensions(cases, inputs, i);
  if (Case all = everything_case(inputs); laid_out_tensors(all) > 1) cases.push_back(std::move(all));
  add_alike(cases, inputs);
  for (size_t i = 0; i < inputs.tensors.size(); ++i) add_sums(cases, inputs, i);
  cases.push_back({"results laid out", {}, true});
  return cases;
}

std::vector<Case> few_cases_of(const Inputs& inputs) {
  std::vector<Case> cases;
  for (size_t i = 0; i < inputs.tensors.size(); ++i) {
    const Layout layout = spread(inputs.tensors[i].base.sizes());
    if (!is_whole(layout)) cases.push_back(laid_out_case(inputs.tensors.size(), i, layout));
  }
  return cases;
}

at::Tensor place(const Placing& placing, const at::Tensor& host, at::Device device, bool broken) {
  if (placing.kind == Placing::Kind::kWhole) return host.to(device);
  if (placing.kind == Placing::Kind::kUnreduced) return sum_of_parts(host, broken);
  if (!broken) return shard(host, placing.layout);
  at::Tensor moved = host;
  for (size_t d = 0; d < placing.layout.rank(); ++d)
    if (!placing.layout.dims()[d].axes.empty()) moved = moved.roll(1, static_cast<int64_t>(d));
  return shard(moved, placing.layout);
}

void spread_out(std::vector<at::Tensor>& tensors) {
  at::NoGradGuard no_grad;
  for (at::Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    const Layout layout = spread(tensor.sizes());
    if (is_whole(layout)) continue;
    const at::Tensor laid_out = shard(at::zeros(tensor.sizes(), at::dtype(tensor.scalar_type())), layout);
    laid_out.copy_(tensor);
    tensor = laid_out;
  }
}

}  // namespace sluice::conformance
