#include "sluice/device/sharding/layouts.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "sluice/base/error.h"
#include "sluice/base/formats/hash.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/runtime.h"
#include "sluice/device/sharding/gradients.h"
#include "sluice/device/sharding/processes.h"

namespace sluice::device {

LayoutRef intern_layout(const Mesh& mesh, const Layout& layout) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::pair<uint64_t, std::string>, InternedLayout>();
  const Layout used = layout.on(mesh);
  if (used.is_replicated(mesh)) return nullptr;
  const uint64_t opening = opening_now();
  const std::string text = used.attribute() + used.str();  // only str() says what is padded
  const std::scoped_lock lock(mutex);
  const auto [found, fresh] = all.try_emplace({opening, text});
  InternedLayout& made = found->second;
  if (fresh) {
    made.layout = used;
    for (size_t i = 0; i < used.rank(); ++i) made.parts *= used.parts(mesh, i);
    made.hash = base::hash_text(text);
    made.opening = opening;
  }
  return &made;
}

LayoutRef fitting(LayoutRef layout, const Mesh& mesh, c10::IntArrayRef dims) {
  if (layout == nullptr || layout->opening != opening_now()) return nullptr;
  return layout->layout.misfit(mesh, dims.vec()).empty() ? layout : nullptr;
}

LayoutRef layout_to_keep(const at::Tensor& tensor) {
  const std::shared_ptr<const Mesh> mesh = runtime().world.mesh;
  if (mesh == nullptr || !tensor.is_contiguous() || tensor.storage_offset() != 0) return nullptr;
  const TraceLock lock = lock_trace();
  const LazyStorage& storage = *LazyStorage::of(tensor);
  const bool covers = static_cast<size_t>(tensor.numel()) * tensor.itemsize() == storage.nbytes();
  return covers ? fitting(storage.layout, *mesh, tensor.sizes()) : nullptr;
}

Layout layout_of_batch(const Mesh& mesh, c10::IntArrayRef dims) {
  const Layout rows = batch_layout(dims.size());
  const bool is_sequence = dims.size() == 2 || dims.size() == 3;
  if (!is_sequence || mesh.size("sequence") == 1 || dims[1] % mesh.size("sequence") != 0) return rows;
  std::vector<LayoutDim> all = rows.dims();
  all[1].axes = {"sequence"};
  return Layout(std::move(all));
}

LayoutRef layout_of_upload(const at::Tensor& host) {
  const std::shared_ptr<const Mesh> mesh = runtime().world.mesh;
  if (mesh == nullptr || host.dim() == 0) return nullptr;
  const Layout layout = layout_of_batch(*mesh, host.sizes());
  std::vector<int64_t> dims = host.sizes().vec();
  dims[0] *= row_part(runtime().world).parts;
  const std::string misfit = layout.misfit(*mesh, dims);
  if (misfit.empty()) return intern_layout(*mesh, layout);
  if (runtime().world.mesh_spans_processes())
    throw_error(Code::kInvalidArgument,
                base::str("a batch whose part of each process has the shape ", host.sizes(), ": ", misfit));
  static std::atomic<bool> said = false;
  // A few numbers that belong to a batch, such as its counts of rows, cost nothing.
  const bool is_batch = host.dim() > 1 || host.size(0) > mesh->devices();
  if (is_batch && host.size(0) > 1 && !said.exchange(true))
    base::warn("a batch stays whole on every device, which then computes all of it: ", misfit);
  return nullptr;
}

Layout whole_or(LayoutRef layout, size_t rank) {
  return layout == nullptr ? Layout::replicated(rank) : layout->layout;
}

stablehlo::Type block_type(const Mesh& mesh, const stablehlo::Type& type, LayoutRef layout) {
  return layout == nullptr ? type : stablehlo::Type{type.dtype, layout->layout.shard_dims(mesh, type.dims)};
}

stablehlo::Type padded_type(const Mesh& mesh, const stablehlo::Type& type, LayoutRef layout) {
  return layout == nullptr ? type : stablehlo::Type{type.dtype, layout->layout.padded_dims(mesh, type.dims)};
}

namespace {

// Returns the part of a tensor that begins at `start` and has these sizes, or less where the tensor ends.
at::Tensor part_of(at::Tensor tensor, const std::vector<int64_t>& start, const std::vector<int64_t>& sizes) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto dim = static_cast<int64_t>(i);
    const int64_t first = std::min(start[i], tensor.size(dim));
    tensor = tensor.narrow(dim, first, std::min(sizes[i], tensor.size(dim) - first));
  }
  return tensor;
}

}  // namespace

std::vector<int64_t> start_of(const Data& data, size_t device) {
  const World& world = runtime().world;
  return data.layout->layout.shard_start(*world.mesh, data.type->type.dims,
                                         world.first_device() + static_cast<int64_t>(device));
}

at::Tensor block_of(const Mesh& mesh, const at::Tensor& host, LayoutRef layout, int64_t device,
                    const std::vector<int64_t>& dims, int64_t first_row) {
  if (layout == nullptr) return host.contiguous();
  std::vector<int64_t> start = layout->layout.shard_start(mesh, dims, device);
  if (!start.empty()) start[0] -= first_row;
  const std::vector<int64_t> sizes = layout->layout.shard_dims(mesh, dims);
  return padded_block(part_of(host, start, sizes), sizes);
}

at::Tensor padded_block(const at::Tensor& block, const std::vector<int64_t>& sizes) {
  if (block.sizes() == at::IntArrayRef(sizes)) return block.contiguous();
  const at::Tensor padded = at::zeros(sizes, block.options());
  part_of(padded, std::vector<int64_t>(sizes.size(), 0), block.sizes().vec()).copy_(block);
  return padded;
}

std::vector<size_t> buffers_to_read(const Data& data) {
  std::vector<size_t> found;
  std::vector<std::vector<int64_t>> starts;
  for (size_t r = 0; r < data.buffers.size(); ++r) {
    if (data.layout != nullptr) {
      std::vector<int64_t> start = start_of(data, r);
      if (std::find(starts.begin(), starts.end(), start) != starts.end()) continue;
      starts.push_back(std::move(start));
    } else if (r > 0 && runtime().world.mesh != nullptr) {
      break;
    }
    found.push_back(r);
  }
  return found;
}

at::Tensor joined_blocks(const Data& data, const std::vector<size_t>& buffers,
                         const std::vector<at::Tensor>& blocks) {
  if (data.layout == nullptr) return blocks.front();
  const at::Tensor whole = at::empty(data.type->type.dims, at::TensorOptions().dtype(data.type->scalar_type));
  for (size_t i = 0; i < blocks.size(); ++i) {
    const at::Tensor place = part_of(whole, start_of(data, buffers[i]), blocks[i].sizes().vec());
    place.copy_(part_of(blocks[i], std::vector<int64_t>(place.dim(), 0), place.sizes().vec()));
  }
  return whole;
}

namespace {

// The layouts of a trace's values, as far as they are known.
class KnownLayouts {
 public:
  LayoutRef of(Ref value) const {
    const auto found = known_.find(key(value));
    return found == known_.end() ? nullptr : found->second;
  }
  // The first layout of a value stays.
  void set(Ref value, LayoutRef layout) {
    if (layout != nullptr && !value.leaf()) known_.try_emplace(key(value), layout);
  }
  bool empty() const { return known_.empty(); }

 private:
  static uint64_t key(Ref value) { return uint64_t{value.node} << 16 | value.output; }
  std::unordered_map<uint64_t, LayoutRef> known_;
};

// Gives the operands of a node the layout of its result if they have its shape. Integers and predicates (a
// mask, a count) stay as they are.
void pass_on(const Trace& trace, uint32_t number, KnownLayouts& known) {
  const Node& node = trace.nodes[number];
  const Instance& instance = *node.instance;
  for (size_t output = 0; output < instance.results.size(); ++output) {
    const LayoutRef layout = known.of({number, static_cast<uint16_t>(output)});
    if (layout == nullptr) continue;
    for (size_t k = 0; k < instance.operands.size(); ++k) {
      const stablehlo::Type& type = instance.operands[k]->type;
      if (type.dims == instance.results[output]->type.dims && stablehlo::is_float(type.dtype))
        known.set(trace.inputs[node.first_input + k], layout);
    }
  }
}

}  // namespace

std::vector<LayoutRef> layouts_of_outputs(const Trace& trace, const Plan& plan, const Mesh& mesh,
                                          const std::vector<uint32_t>& output_of) {
  lay_out_gradients(mesh);
  KnownLayouts known;
  size_t i = 0;
  for (LazyStorage* s = trace.first_pending(); s != nullptr; s = s->next, ++i) {
    LayoutRef layout = s->layout;
    if (layout == nullptr && s->replaced_leaf != LazyStorage::kNoLeaf)
      layout = trace.leaves[s->replaced_leaf]->layout;
    known.set(plan.outputs[output_of[i]], fitting(layout, mesh, s->type->type.dims));
  }
  if (!known.empty())
    for (auto node = plan.nodes.rbegin(); node != plan.nodes.rend(); ++node) pass_on(trace, *node, known);
  std::vector<LayoutRef> layouts;
  for (const Ref output : plan.outputs) layouts.push_back(known.of(output));
  return layouts;
}

}  // namespace sluice::device
