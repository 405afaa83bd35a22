// Regions that patterns add, whose operations work on blocks of values that lie over a mesh, and exchanges
// between its devices.
// All exchanges have one channel: operations with a channel name partitions, not replicas.
#include "sluice/stablehlo/builder/impl.h"
#include "sluice/stablehlo/rewriter.h"

namespace sluice::stablehlo {
namespace {

constexpr std::string_view kChannel = "#stablehlo.channel_handle<handle = 1, type = 1>";

// Returns "#sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>, …]>".
std::string layouts_text(const std::vector<Layout>& layouts) {
  constexpr std::string_view kPrefix = "#sdy.sharding";
  std::vector<std::string> items;
  for (const Layout& layout : layouts) items.push_back(layout.attribute().substr(kPrefix.size()));
  return base::str("#sdy.sharding_per_value<[", base::join(items, ", "), "]>");
}

std::string axes_text(const Mesh& mesh) {
  std::vector<std::string> items;
  for (const MeshAxis& axis : mesh.axes()) items.push_back('"' + axis.name + '"');
  return base::str("#sdy<manual_axes{", base::join(items, ", "), "}>");
}

Type whole_type(const Mesh& mesh, const Type& block, const Layout& layout) {
  Type type = block;
  for (size_t i = 0; i < type.dims.size(); ++i) type.dims[i] *= layout.parts(mesh, i);
  return type;
}

}  // namespace

Values Rewriter::manual(const Mesh& mesh, const Values& operands, const std::vector<Layout>& in,
                        const std::vector<Layout>& out, const Region& body) {
  auto& impl = *b.impl_;
  constexpr std::string_view kOp = kManual;
  impl.use(kOp, operands);
  if (operands.size() != in.size())
    reject(kOp, "expected a layout for each of ", operands.size(), " operands, found ", in.size());
  std::vector<const TypeEntry*> blocks, results;
  for (size_t i = 0; i < in.size(); ++i)
    blocks.push_back(impl.intern({operands[i].dtype(), in[i].shard_dims(mesh, operands[i].dims())}));
  Builder::Impl::Body made = impl.region(kOp, true, blocks, body);
  if (made.results.size() != out.size())
    reject(kOp, "expected a layout for each of ", made.results.size(), " results, found ", out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].rank() != made.results[i]->type.dims.size())
      reject(kOp, "the layout ", out[i].str(), " is for another result than ", made.results[i]->text);
    results.push_back(impl.intern(whole_type(mesh, made.results[i]->type, out[i])));
  }
  Attributes attributes;
  attributes.raw("in_shardings", layouts_text(in))
      .raw("manual_axes", axes_text(mesh))
      .raw("out_shardings", layouts_text(out));
  const Values values = impl.add(kOp, operands, {&made, 1}, attributes, results);
  impl.last().removable = true;  // on all devices, or on none
  return values;
}

Value Rewriter::permute_blocks(Value x, const std::vector<std::pair<int64_t, int64_t>>& pairs) {
  auto& impl = *b.impl_;
  constexpr std::string_view kOp = "stablehlo.collective_permute";
  impl.use(kOp, x);
  return impl.add(kOp, {x}, Attributes().raw("channel_handle", kChannel).pairs("source_target_pairs", pairs),
                  x.type());
}

Value Rewriter::add_and_split_blocks(Value x, int64_t dim, const std::vector<std::vector<int64_t>>& groups) {
  auto& impl = *b.impl_;
  constexpr std::string_view kOp = kReduceScatter;
  impl.use(kOp, x);
  const auto size = static_cast<int64_t>(groups.empty() ? 0 : groups[0].size());
  if (dim < 0 || dim >= x.rank() || size == 0 || x.dim(dim) % size != 0)
    reject(kOp, "a group of ", size, " devices cannot divide dimension ", dim, " of ", x.type().str());
  Type part = x.type();
  part.dims[static_cast<size_t>(dim)] /= size;
  const TypeEntry* scalar = impl.intern({x.dtype(), {}});
  Builder::Impl::Body made = impl.reducer(kOp, {&scalar, 1}, [](Builder& inside, std::span<const Value> in) {
    return Values{inside.add(in[0], in[1])};
  });
  const TypeEntry* result = impl.intern(part);
  Attributes attributes;
  attributes.raw("channel_handle", kChannel)
      .table("replica_groups", groups, static_cast<size_t>(size))
      .number("scatter_dimension", dim)
      .raw("use_global_device_ids", "unit");
  return impl.add(kOp, {&x, 1}, {&made, 1}, attributes, {&result, 1}).front();
}

}  // namespace sluice::stablehlo
