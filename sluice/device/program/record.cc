#include "sluice/device/program/record.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/resize.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/library.h>

#include <algorithm>
#include <map>
#include <thread>

#include "sluice/base/error.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/device/capture/watch.h"
#include "sluice/device/exact.h"
#include "sluice/device/libtorch/backward.h"
#include "sluice/device/libtorch/fallback.h"
#include "sluice/device/libtorch/overlap.h"
#include "sluice/device/libtorch/overrides.h"
#include "sluice/device/libtorch/result_strides.h"
#include "sluice/device/libtorch/torch_error.h"
#include "sluice/device/operators/factor_statuses.h"
#include "sluice/device/operators/host_shapes.h"
#include "sluice/device/program/parts.h"
#include "sluice/device/program/signature.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/random.h"
#include "sluice/device/report/metrics.h"
#include "sluice/device/runtime.h"

namespace sluice::device {
namespace {

// The form of an operation. kFactoryOut is an out form without the dtype, layout, device and pin_memory of
// its functional form (arange.start_out).
enum class Variant : uint8_t { kFunctional, kInPlace, kOut, kFactoryOut };

// Writes a result into an existing tensor: converts it to the tensor's element type and checks its shape.
void write_result(const ops::Row& row, const at::Tensor& target, Operand value) {
  const auto dtype = to_dtype(target.scalar_type());
  if (!base::starts_with(row.name, "aten::fill") && row.name != "aten::zero")
    check_internal_overlap(row.name, target);
  if (value.type->type.dtype != dtype) {
    if (!c10::canCast(value.type->scalar_type, target.scalar_type())) {
      throw_error(Code::kInvalidArgument,
                  base::str(row.name, ": a result of ", c10::toString(value.type->scalar_type),
                            " cannot be stored in a tensor of ", c10::toString(target.scalar_type())));
    }
    value = record_internal("sluice::convert", value, {}, dtype);
  }
  if (!target.sizes().equals(value.type->type.dims)) {
    throw_error(Code::kInvalidArgument,
                base::str(row.name, ": the result has shape ", c10::IntArrayRef(value.type->type.dims),
                          ", the tensor to write it to ", target.sizes()));
  }
  write(target, value);
}

// Cuts a graph that has grown too large: without a boundary a loop would become one endless program.
void forced_cut(const Trace& trace) {
  base::warn("the graph was cut after ", trace.nodes.size(),
             " recorded operations without a boundary; call session.step, ",
             "session.sync or sluice::sync once an iteration");
  {
    Metrics& metrics = Metrics::get();
    std::scoped_lock lock(metrics.mutex);
    ++metrics.counters.forced_cuts;
  }
  cut_in_parts("forced");
}

const std::vector<std::string> kFactoryOptions = {"ScalarType?", "Layout?", "Device?", "bool?"};

}  // namespace

void check_thread(Trace& trace) {
  const auto here = std::this_thread::get_id();
  if (trace.owner == here || torch::autograd::get_current_graph_task_id() != -1) return;
  if (trace.first_pending() == nullptr) {
    if (Watch* watch = Watch::current()) watch->cut_without_program("a new trace");
    trace.clear();
  }
  if (trace.owner == std::thread::id() || runtime_options().eager) {
    trace.owner = here;
    return;
  }
  throw_error(
      Code::kFailedPrecondition,
      "a second thread uses the xla device while another one has operations pending; record on one thread, "
      "or end the other's graph first (session.step, sluice::sync)");
}

namespace {

// Records calls of one schema: the functional form of a row, or a variant of it.
class Recorder final : public c10::OperatorKernel {
 public:
  Recorder(std::shared_ptr<const Signature> signature, Variant variant, size_t outputs)
      : signature_(std::move(signature)),
        variant_(variant),
        random_(signature_->row->random),
        statistics_(signature_->row->statistics),
        outputs_(outputs) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
    TraceLock lock = lock_trace();
    Trace& trace = Trace::get();
    check_thread(trace);
    if (!random_ && run_with_host(op, stack)) return;
    if (trace.nodes.size() >= kMaxPendingNodes) forced_cut(trace);
    const size_t count = op.schema().arguments().size();
    const auto arguments = torch::jit::last(*stack, count);
    const std::vector<c10::IValue> completed = complete(arguments);
    const c10::ArrayRef<c10::IValue> inputs =
        variant_ == Variant::kFactoryOut ? completed : arguments.slice(0, count - outputs_);

    if (variant_ != Variant::kFunctional) check_overlap(arguments);
    Call call;
    const Instance* instance = nullptr;
    const bool shared = random_ && draws_shared(arguments);
    const bool synced = statistics_ && sync_batch_norm();
    const bool exact = records_exactly();
    try {
      read_arguments(*signature_, inputs, call);
      call.key.push_back((shared ? 1u : 0u) | (synced ? 2u : 0u) | (exact ? 4u : 0u));
      const auto fill = [&](Instance& made) {
        fill_instance(*signature_, inputs, made);
        made.shared_random = shared;
        made.over_replicas = synced;
        made.exact = exact;
      };
      instance = &find_instance(call.key, call.types, fill, trace.expected());
    } catch (const Error& error) {
      if (error.code() != Code::kUnimplemented) throw;
      return fall_back(op, stack, error.what());
    }
    if (!instance->unimplemented.empty()) return fall_back(op, stack, instance->unimplemented);

    c10::SmallVector<Number, 8> numbers;
    for (const Slot& slot : instance->slots) {
      numbers.push_back(slot.argument == Slot::kRandom ? random_key(arguments, *signature_)
                                                       : call.numbers[slot.argument]);
    }
    const uint32_t node = trace.add(*instance, call.operands, numbers);
    if (random_ && !shared && replicas_in_world() > 1) trace.set_sameness(node, Sameness::kDifferent);
    finish(op, stack, arguments, node, call.strided);
    if (runtime_options().eager) cut(signature_->row->name);
  }

 private:
  // Checks that the written tensor (of an in-place form, or the last of an out form) overlaps no tensor that
  // the call reads.
  void check_overlap(c10::ArrayRef<c10::IValue> arguments) const {
    const c10::IValue& target = variant_ == Variant::kInPlace ? arguments.front() : arguments.back();
    if (!target.isTensor() || !on_device(target.toTensor())) return;
    const size_t inputs = arguments.size() - outputs_;
    for (size_t i = 0; i < inputs; ++i) {
      if (arguments[i].isTensor() && on_device(arguments[i].toTensor()))
        check_partial_overlap(signature_->row->name, target.toTensor(), arguments[i].toTensor());
    }
  }

  // Returns whether a call draws the same numbers on all replicas: weights that are initialised on the device
  // must stay equal.
  bool draws_shared(c10::ArrayRef<c10::IValue> arguments) const {
    if (shared_random()) return true;
    if (variant_ != Variant::kInPlace || !arguments[0].isTensor() || !on_device(arguments[0].toTensor()))
      return false;
    return LazyStorage::of(arguments[0].toTensor())->keep_equal;
  }

  // Returns the functional form's arguments for kFactoryOut: the requested element type is the output's.
  std::vector<c10::IValue> complete(c10::ArrayRef<c10::IValue> arguments) const {
    if (variant_ != Variant::kFactoryOut) return {};
    std::vector<c10::IValue> all = arguments.slice(0, arguments.size() - 1).vec();
    all.emplace_back(arguments.back().toTensor().scalar_type());
    all.resize(all.size() + kFactoryOptions.size() - 1);
    return all;
  }

  // Puts the results where the variant puts them, and the side results into their arguments.
  void finish(const c10::OperatorHandle& op, torch::jit::Stack* stack, c10::ArrayRef<c10::IValue> arguments,
              uint32_t node, bool strided) {
    Trace& trace = Trace::get();
    const Instance& instance = *trace.nodes[node].instance;
    const size_t results = instance.results.size() - signature_->writes.size();
    for (size_t i = 0; i < signature_->writes.size(); ++i) {
      const c10::IValue& target = arguments[signature_->writes[i]];
      if (target.isNone() || !target.toTensor().defined() || !instance.results[results + i]) continue;
      write_result(*instance.row, target.toTensor(), trace.result(node, static_cast<uint16_t>(results + i)));
    }
    const auto* strides =
        strided && variant_ == Variant::kFunctional ? &result_strides(op, arguments, instance) : nullptr;
    c10::SmallVector<at::Tensor, 4> returned;
    for (size_t i = 0; i < results; ++i) {
      if (variant_ == Variant::kFunctional) {
        const auto given = strides ? c10::IntArrayRef((*strides)[i]) : c10::IntArrayRef();
        returned.push_back(instance.results[i]
                               ? make_tensor(trace.result(node, static_cast<uint16_t>(i)), given)
                               : at::Tensor());
        continue;
      }
      const at::Tensor target = variant_ == Variant::kInPlace
                                    ? arguments[0].toTensor()
                                    : arguments[arguments.size() - outputs_ + i].toTensor();
      if (!on_device(target)) {
        throw_error(Code::kInvalidArgument,
                    base::str(instance.row->name, ": expected the output on xla:0, found it on ",
                              target.device().str()));
      }
      if (instance.results[i]) {
        if (variant_ != Variant::kInPlace && !target.sizes().equals(instance.results[i]->type.dims)) {
          target.resize_(instance.results[i]->type.dims);
        }
        write_result(*instance.row, target, trace.result(node, static_cast<uint16_t>(i)));
      }
      returned.push_back(target);
    }
    torch::jit::drop(*stack, arguments.size());
    for (size_t i = 0; i < op.schema().returns().size() && i < returned.size(); ++i)
      stack->emplace_back(std::move(returned[i]));
  }

  std::shared_ptr<const Signature> signature_;
  const Variant variant_;
  const bool random_, statistics_;  // copies of the row's, which is further away in memory
  const size_t outputs_;
};

// A schema's arguments without its `out` arguments, and whether it writes self. An argument that the row
// names in `writes` counts like the others.
struct Form {
  std::vector<std::string> types;
  size_t outputs = 0;
  bool writes_self = false;
};
Form form_of(const ops::Row& row, const c10::FunctionSchema& schema) {
  const std::vector<std::string> kept = base::split(row.writes, ' ');
  Form form;
  for (const c10::Argument& argument : schema.arguments()) {
    const bool written = argument.alias_info() && argument.alias_info()->isWrite();
    if (argument.is_out()) {
      ++form.outputs;
      continue;
    }
    if (written && form.types.empty())
      form.writes_self = true;
    else if (written && std::find(kept.begin(), kept.end(), argument.name()) == kept.end())
      form.outputs = 1000;  // it writes something else: not a variant of ours
    form.types.push_back(argument.real_type()->str());
  }
  return form;
}

void add_row(torch::Library& library, const ops::Row& row,
             const std::multimap<std::string, c10::OperatorName>& names) {
  const size_t dot = row.name.find('.');
  const std::string base(row.name.substr(0, dot));
  const std::string overload(dot == std::string_view::npos ? "" : row.name.substr(dot + 1));
  auto& dispatcher = c10::Dispatcher::singleton();
  const auto functional = dispatcher.findSchema({base, overload});
  if (!functional)
    throw_error(Code::kInternal, base::str("row ", row.name, ": this LibTorch has no such operation"));
  const Form wanted = form_of(row, functional->schema());
  auto signature = std::make_shared<const Signature>(make_signature(row, functional->schema()));

  auto add = [&](const c10::OperatorName& name, Variant variant, size_t outputs) {
    const std::string full = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
    library.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunctor(
                                   std::make_unique<Recorder>(signature, variant, outputs)));
  };
  add({base, overload}, wanted.writes_self ? Variant::kInPlace : Variant::kFunctional, 0);
  // "normal_functional" is the functional form of "normal_".
  const std::string stem = base::ends_with(base, "_functional") ? base.substr(0, base.size() - 11) : base;
  // The in-place form of "__lshift__" is "__ilshift__".
  const std::string in_place =
      base::starts_with(base, "aten::__") ? "aten::__i" + base.substr(8) : stem + "_";
  for (const std::string& name : {base, in_place}) {
    auto [first, last] = names.equal_range(name);
    for (; first != last; ++first) {
      const auto other = dispatcher.findSchema(first->second);
      if (!other) continue;
      const Form form = form_of(row, other->schema());
      std::vector<std::string> factory = form.types;
      factory.insert(factory.end(), kFactoryOptions.begin(), kFactoryOptions.end());
      if (form.outputs == 1 && !form.writes_self && factory == wanted.types)
        add(first->second, Variant::kFactoryOut, 1);
      if (form.types != wanted.types || form.outputs >= 1000) continue;
      if (form.outputs > 0 && !form.writes_self)
        add(first->second, Variant::kOut, form.outputs);
      else if (form.outputs == 0 && form.writes_self && name != base)
        add(first->second, Variant::kInPlace, 0);
    }
  }
}

}  // namespace

void register_rows() {
  const auto library = [](const char* space) {
    return new torch::Library(torch::Library::IMPL, space, c10::DispatchKey::XLA, __FILE__, __LINE__);
  };
  static auto *aten = library("aten"), *own = library("sluice");
  std::multimap<std::string, c10::OperatorName> names;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames())
    names.emplace(name.name, name);
  for (const ops::Row& row : ops::rows()) {
    if (base::starts_with(row.name, "aten::"))
      add_row(*aten, row, names);
    else if (names.contains(std::string(row.name)))  // most of the device's own rows are recorded without a
                                                     // schema
      add_row(*own, row, names);
  }
}

void register_kernels() {
  throw_torch_errors();
  check_overrides();
  install_backward_engine();
  register_hooks();
  register_hand_written_kernels();
  register_recurrent();
  register_lbfgs();
  register_attention();
  register_rows();
  register_composites();
  register_linear_algebra();
  register_factor_statuses();
  register_value_shapes();
  register_host_shapes();
  register_fallback();
  register_autocast();
}

}  // namespace sluice::device
