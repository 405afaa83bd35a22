#include "sluice/ops/attention/sequence.h"

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/ops/attention/sequence_body.h"

namespace sluice::ops::attention {
namespace sequence_detail {

// Returns the layout of [batch or 1, heads or 1, …] with this dimension over `sequence`; -1: none. A
// dimension that the devices do not divide stays whole on each, as does one of size 1.
class Layouts {
 public:
  Layouts(const Mesh& mesh, const Operands& in) : mesh_(&mesh) {
    batch_ = in.q.dim(0) % (mesh.size("data") * mesh.size("fsdp")) == 0;
    heads_ = in.k.dim(1) % mesh.size("tensor") == 0;
  }
  Layout of(Value x, int64_t sequence_dim, size_t first_dim = 0) const {
    return of(x.dims(), sequence_dim, first_dim);
  }
  Layout of(const Dims& sizes, int64_t sequence_dim, size_t first_dim = 0) const {
    std::vector<LayoutDim> dims(sizes.size());
    if (batch_ && sizes[first_dim] > 1) dims[first_dim].axes = {"data", "fsdp"};
    if (heads_ && sizes[first_dim + 1] > 1) dims[first_dim + 1].axes = {"tensor"};
    if (sequence_dim >= 0) dims[static_cast<size_t>(sequence_dim)].axes = {"sequence"};
    return Layout(std::move(dims)).on(*mesh_);
  }
  Layout of_places() const { return Layout::along(1, 0, {"sequence"}); }

 private:
  const Mesh* mesh_;
  bool batch_ = false, heads_ = false;
};

void check_divides(const char* what, int64_t length, int64_t devices) {
  if (length % devices == 0) return;
  const int64_t before = length / devices * devices;
  throw_error(Code::kInvalidArgument, base::str("attention of ", length, ' ', what, ": sequence=", devices,
                                                " of the mesh does not divide them; choose a length of ",
                                                before > 0 ? base::str(before, " or ") : "", before + devices,
                                                ", or a mesh with another size of sequence"));
}

int64_t gathered_bytes(const Operands& in, const Mesh& mesh) {
  const Layout layout = Layouts(mesh, in).of(in.k, -1);
  int64_t elements = 1;
  for (const int64_t dim : layout.shard_dims(mesh, in.k.dims())) elements *= dim;
  return 2 * elements *
         static_cast<int64_t>(dtype_size(in.k.dtype()) + dtype_size(compute_type(in.k.dtype())));
}

Call call_of(const stablehlo::Operation& op, const Groups& groups, const Sequence& sequence,
             const BlockMask* mask) {
  Call call{read_composite(op), mask, {groups.bytes}, Devices(*sequence.mesh)};
  const Operands& in = call.in();
  const int64_t count = call.devices.count();
  check_divides("queries", in.q.dim(2), count);
  check_divides("keys", in.k.dim(2), count);
  call.gathered = gathered_bytes(in, *sequence.mesh) <= sequence.gather_bytes;
  const bool hides_later = mask != nullptr ? mask->hides_later : in.causal && !in.mask;
  call.mirrored = hides_later && in.q.dim(2) == in.k.dim(2) && in.q.dim(2) % (2 * count) == 0;
  return call;
}

}  // namespace sequence_detail

Values over_sequence(stablehlo::Rewriter& r, const stablehlo::Operation& composite, const Groups& groups,
                     const Sequence& sequence, const BlockMask* mask) {
  namespace detail = sequence_detail;
  const detail::Call call = detail::call_of(composite, groups, sequence, mask);
  const Operands& in = call.in();
  const detail::Layouts layouts(*sequence.mesh, in);
  Values operands;
  std::vector<Layout> laid_out;
  const auto add = [&](Value x, const Layout& layout) {
    operands.push_back(x);
    laid_out.push_back(layout);
  };
  add(r.b.iota(Type{DType::kS32, {call.devices.count()}}, 0), layouts.of_places());
  add(in.q, layouts.of(in.q, 2));
  const int64_t of_keys = call.gathered ? -1 : 2;
  for (const Value x : {in.k, in.v}) add(x, layouts.of(x, of_keys));
  if (call.composite.given)
    for (const Value x :
         {call.composite.given->grad, call.composite.given->output, call.composite.given->logsumexp})
      add(x, layouts.of(x, 2));
  if (in.seeds) {
    add(in.seeds, layouts.of(in.seeds, 3, 1));
    add(in.p, Layout());
  }
  if (mask != nullptr)
    for (const Value leaf : mask->leaves) add(leaf, layouts.of(leaf, -1));
  else if (in.mask)
    add(in.mask, layouts.of(in.mask, in.mask.dim(2) > 1 ? 2 : -1));
  std::vector<Layout> results = {layouts.of(in.q, 2)};
  if (call.composite.given)
    results.insert(results.end(), 2, layouts.of(in.k, 2));
  else
    results.push_back(layouts.of(Dims{in.q.dim(0), in.q.dim(1), in.q.dim(2)}, 2));
  return r.manual(
      *sequence.mesh, operands, laid_out, results,
      [&](Builder&, std::span<const Value> arguments) { return detail::body_of(r, call, arguments); });
}

}  // namespace sluice::ops::attention
