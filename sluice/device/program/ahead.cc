#include "sluice/device/program/ahead.h"

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/device/open.h"
#include "sluice/device/program/lower.h"
#include "sluice/device/sharding/layouts.h"

namespace sluice::device {
namespace {

DataPtr typed_data(TypeRef type, Sameness sameness, LayoutRef layout) {
  auto data = c10::make_intrusive<Data>();
  data->type = type;
  data->sameness = sameness;
  data->layout = layout;
  return data;
}

[[noreturn]] void refuse_value() {
  throw_error(Code::kFailedPrecondition,
              "a value was read while programs are only compiled ahead of time: nothing runs, so there is "
              "none (an operation without a row, which would run on the CPU, reads its operands too)");
}

}  // namespace

Ahead::Ahead(int replicas, bool explicit_nan, std::string_view device_kind, const Mesh& mesh) {
  auto lock = lock_trace();
  Runtime& rt = runtime();
  if (rt.ahead || Trace::get().first_pending() != nullptr || replicas < 1) {
    throw_error(Code::kFailedPrecondition,
                base::str("recording ahead of time for ", replicas,
                          " replicas: expected one replica or more, nothing pending and no other of its "
                          "kind"));
  }
  const Mesh whole = mesh.empty() ? mesh : mesh.over(replicas);  // throws before anything changes
  world_ = rt.world;
  rt.world = World();
  rt.world.local_replicas = replicas;
  rt.world.explicit_nan = explicit_nan;
  rt.world.precision = world_.precision;
  rt.world.check_values = world_.check_values;
  rt.world.detect_anomaly = world_.detect_anomaly;
  rt.world.loops = world_.loops;
  rt.world.layer_loops = layer_loops(rt.options, explicit_nan);
  rt.world.attention_bytes = attention_bytes(device_kind);
  if (!whole.empty()) lay_over(rt.world, whole);
  const auto devices = static_cast<double>(whole.empty() ? 1 : whole.devices());
  rt.ahead = [this, devices](std::string_view what, std::string text, std::vector<std::string> arguments,
                             double flops) {
    Cut& cut = cuts_.try_emplace(std::string(what)).first->second;
    cut.text = std::move(text);
    cut.arguments = std::move(arguments);
    cut.flops = flops / devices;
    ++cut.count;
    if (on_cut_) on_cut_(what);
  };
}

Ahead::~Ahead() {
  auto lock = lock_trace();
  Runtime& rt = runtime();
  Trace& trace = Trace::get();
  // Values that are still pending must not reach a program that runs.
  static const auto gone = std::make_shared<const std::string>("it was only compiled ahead of time");
  while (LazyStorage* storage = trace.first_pending()) {
    trace.unlink(*storage);
    storage->state = LazyStorage::State::kLost;
    storage->lost = gone;
    storage->strides.clear();
  }
  trace.clear();
  rt.ahead = nullptr;
  rt.world = world_;
}

at::Tensor Ahead::input(c10::IntArrayRef sizes, at::ScalarType type) {
  auto lock = lock_trace();
  const World& world = runtime().world;
  const LayoutRef layout =
      world.mesh == nullptr ? nullptr : intern_layout(*world.mesh, layout_of_batch(*world.mesh, sizes));
  if (layout != nullptr && fitting(layout, *world.mesh, sizes) == nullptr)
    throw_error(Code::kInvalidArgument, base::str("a batch over the mesh ", world.mesh->str(), ": ",
                                                  layout->layout.misfit(*world.mesh, sizes.vec())));
  return make_tensor(typed_data(intern(to_dtype(type), sizes),
                                world.replicas() == 1 ? Sameness::kGlobal : Sameness::kDifferent, layout));
}

const std::string& Ahead::text(std::string_view what) const {
  static const std::string none;
  const auto found = cuts_.find(what);
  return found == cuts_.end() ? none : found->second.text;
}

const std::vector<std::string>& Ahead::arguments(std::string_view what) const {
  static const std::vector<std::string> none;
  const auto found = cuts_.find(what);
  return found == cuts_.end() ? none : found->second.arguments;
}

double Ahead::flops(std::string_view what) const {
  const auto found = cuts_.find(what);
  return found == cuts_.end() ? 0 : found->second.flops;
}

int Ahead::count(std::string_view what) const {
  const auto found = cuts_.find(what);
  return found == cuts_.end() ? 0 : found->second.count;
}

void check_has_value(const Data& data) {
  if (data.buffers.empty()) refuse_value();
}

void lower_ahead(Runtime& rt, Trace& trace, std::string_view what) {
  if (what == kHostRead) refuse_value();
  std::vector<uint32_t> output_of;
  const Plan plan = make_plan(trace, rt.world, output_of);
  std::vector<std::string> names;
  for (const uint32_t leaf : plan.leaves)
    names.push_back(trace.leaves[leaf]->name == 0 ? "" : Names::name(trace.leaves[leaf]->name));
  Lowered lowered = lower(trace, plan, rt.world, rt.options.donate);
  rt.ahead(what, std::move(lowered.text), std::move(names), lowered.flops.sum());
  std::vector<DataPtr> results;
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const Ref output = plan.outputs[i];
    const Operand value = trace.result(output.node, output.output);
    results.push_back(
        typed_data(value.type, value.sameness, rt.world.mesh == nullptr ? nullptr : plan.layouts[i]));
    results.back()->origin = trace.origin(output);
  }
  for (const uint32_t output : output_of) {
    LazyStorage& storage = *trace.first_pending();
    set_data(storage, results[output], std::move(storage.strides));
  }
  trace.clear();
}

}  // namespace sluice::device
