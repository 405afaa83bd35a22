#include "sluice/pjrt/program/topology.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/pjrt/cache/cache_identity.h"
#include "sluice/pjrt/cache/compile_cache.h"
#include "sluice/pjrt/program/compile_options.h"

namespace sluice::pjrt {

base::Result<std::shared_ptr<Topology>> Topology::create(std::shared_ptr<Plugin> plugin,
                                                         const std::string& name, const Options& options) {
  std::shared_ptr<Topology> made(new Topology(std::move(plugin)));
  const std::vector<c::PJRT_NamedValue> values = to_named_values(options);
  auto args = c::make<c::PJRT_TopologyDescription_Create_Args>();
  args.topology_name = name.data();
  args.topology_name_size = name.size();
  args.create_options = values.data();
  args.num_options = values.size();
  if (auto status = made->plugin_->api().call(args); !status)
    return base::fail_at(status, "the plugin ", made->plugin_->name(), " has no topology '", name, "'");
  made->raw_ = args.topology;
  SLUICE_OK(made->read_devices());
  SLUICE_OK(made->read_attributes());
  return made;
}

Topology::~Topology() {
  if (raw_ == nullptr) return;
  auto args = c::make<c::PJRT_TopologyDescription_Destroy_Args>();
  args.topology = raw_;
  if (auto status = plugin_->api().call(args); !status)
    base::warn("destroying a topology: ", status.error().what());
}

base::Status Topology::read_devices() {
  auto devices = c::make<c::PJRT_TopologyDescription_GetDeviceDescriptions_Args>();
  devices.topology = raw_;
  SLUICE_OK(plugin_->api().call(devices));
  num_devices_ = static_cast<int>(devices.num_descriptions);
  std::vector<std::pair<int, int>> numbered;  // process and device
  for (size_t i = 0; i < devices.num_descriptions; ++i) {
    auto id = c::make<c::PJRT_DeviceDescription_Id_Args>();
    auto process = c::make<c::PJRT_DeviceDescription_ProcessIndex_Args>();
    auto kind = c::make<c::PJRT_DeviceDescription_Kind_Args>();
    auto attributes = c::make<c::PJRT_DeviceDescription_Attributes_Args>();
    id.device_description = process.device_description = kind.device_description =
        attributes.device_description = devices.descriptions[i];
    SLUICE_OK(plugin_->api().call(id));
    SLUICE_OK(plugin_->api().call(process));
    SLUICE_OK(plugin_->api().call(kind));
    SLUICE_OK(plugin_->api().call(attributes));
    if (i == 0) device_kind_.assign(kind.device_kind, kind.device_kind_size);
    numbered.emplace_back(process.process_index, id.id);
    places_.push_back(device_place(id.id, std::string(kind.device_kind, kind.device_kind_size),
                                   to_texts(attributes.attributes, attributes.num_attributes)));
  }
  std::stable_sort(numbered.begin(), numbered.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [process, id] : numbered) device_ids_.push_back(id);
  return {};
}

base::Status Topology::read_attributes() {
  auto args = c::make<c::PJRT_TopologyDescription_Attributes_Args>();
  args.topology = raw_;
  SLUICE_OK(plugin_->api().call(args));
  for (size_t i = 0; i < args.num_attributes; ++i) {
    const c::PJRT_NamedValue& value = args.attributes[i];
    if (std::string_view(value.name, value.name_size) == "device_memory_bytes_limit" &&
        value.type == c::kInt64)
      memory_limit_ = value.int64_value;
  }
  return {};
}

namespace {

// Stores the result in `figure`, which stays unchanged if the plugin does not give it.
template <typename T>
base::Status take(base::Result<T> found, T& figure) {
  if (found)
    figure = std::move(*found);
  else if (found.error().code() != Code::kUnimplemented)
    return tl::unexpected<Error>(found.error());
  return {};
}

// An executable that no client has loaded; destroyed with this object.
class Compiled {
 public:
  Compiled(const Api& api, c::PJRT_Executable* raw) : api_(api), raw_(raw) {}
  ~Compiled() {
    auto args = c::make<c::PJRT_Executable_Destroy_Args>();
    args.executable = raw_;
    if (auto status = api_.call(args); !status) base::warn("destroying a program: ", status.error().what());
  }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  base::Status read(AheadProgram& program) const {
    SLUICE_OK(take(read_memory(api_, raw_), program.memory));
    SLUICE_OK(take(read_total_memory(api_, raw_), program.total_memory));
    // For a GPU's program that no client has loaded, these two are unknown.
    SLUICE_OK(take(read_cost(api_, raw_), program.cost));
    std::string format, optimized;
    SLUICE_OK(take(read_serialized(api_, raw_), program.serialized));
    program.serialized_bytes = static_cast<int64_t>(program.serialized.size());
    SLUICE_OK(take(read_optimized(api_, raw_, format), optimized));
    if (optimized.empty()) return {};
    if (format != "hlo_with_config") {
      return base::fail(Code::kUnimplemented, "expected the optimised program as hlo_with_config, found ",
                        format);
    }
    SLUICE_TRY(program.collectives, read_collectives(optimized));
    return {};
  }
  base::Result<std::vector<std::string>> output_types() const { return read_output_types(api_, raw_); }

 private:
  const Api& api_;
  c::PJRT_Executable* raw_;
};

}  // namespace

namespace {

std::string options_for(const Topology& topology, AheadCount count, bool whole_slice, const XlaFlags& flags) {
  if (count.partitions) return serialize_partitioned_options(topology.device_ids(), flags);
  return whole_slice ? serialize_compile_options(topology.device_ids(), flags)
                     : serialize_compile_options(count.devices, flags);
}

}  // namespace

base::Result<AheadProgram> compile_ahead(const Topology& topology, std::string_view text, AheadCount count,
                                         const XlaFlags& flags) {
  // With more replicas some compilers end the process.
  if (count.devices < 1 || count.devices > topology.num_devices()) {
    return base::fail(Code::kInvalidArgument, "expected 1 to ", topology.num_devices(),
                      " replicas, one a device, found ", count.devices);
  }
  const c::PJRT_Program source = mlir_program(text);
  XlaFlags all = topology.plugin_->flags();
  all.insert(flags.begin(), flags.end());
  // A program of a whole slice has the devices that it has in a run. A GPU's compiler takes no others than
  // its own numbers.
  const bool whole_slice =
      topology.plugin_->name() == "tpu" && count.devices == static_cast<int>(topology.device_ids().size());
  if (count.partitions && !whole_slice)
    return base::fail(Code::kInvalidArgument, "a program over a mesh needs all ", topology.num_devices(),
                      " devices of a TPU slice, found ", count.devices, " partitions");
  const std::string options = options_for(topology, count, whole_slice, all);
  auto args = c::make<c::PJRT_Compile_Args>();
  args.topology = topology.raw_;
  args.program = &source;
  args.compile_options = options.data();
  args.compile_options_size = options.size();
  const double start = base::monotonic_seconds();
  if (auto status = topology.plugin_->api().call(args); !status)
    return tl::unexpected<Error>(with_operation(topology.plugin_->explained(status.error()), text));
  AheadProgram program;
  program.seconds = base::monotonic_seconds() - start;
  const Compiled compiled(topology.plugin_->api(), args.executable);
  SLUICE_OK(compiled.read(program));
  if (count.partitions) SLUICE_OK(take(compiled.output_types(), program.output_types));
  if (whole_slice)
    program.cache_key =
        CompileCache::key({tpu_identity(*topology.plugin_, topology.places()), options, text});
  else
    program.serialized.clear();
  return program;
}

namespace {

// Returns the number in "… (18.58G) …" that follows `before`, in bytes.
std::optional<double> amount_after(std::string_view text, std::string_view before) {
  const size_t at = text.find(before);
  if (at == std::string_view::npos) return std::nullopt;
  const char* first = text.data() + at + before.size();
  const char* last = text.data() + text.size();
  double number = 0;
  const auto [end, error] = std::from_chars(first, last, number);
  if (error != std::errc() || end == last) return std::nullopt;
  constexpr std::string_view kUnits = "BKMGT";
  const size_t unit = kUnits.find(*end);
  if (unit == std::string_view::npos) return number;
  for (size_t i = 0; i < unit; ++i) number *= 1024;
  return number;
}

}  // namespace

std::optional<MemoryShortage> memory_shortage(std::string_view message) {
  const auto needed = amount_after(message, "HLO temporaries (");
  const auto available = amount_after(message, "exceeds available HBM (");
  if (!needed || !available) return std::nullopt;
  return MemoryShortage{*needed, *available};
}

namespace {

// An operation that libtpu refuses: two parts of its error, the operation and its type in the program's text,
// and the error for people.
struct Refusal {
  std::string_view error, more, operation, type, words;
};
constexpr Refusal kRefusals[] = {
    {"Unexpected operand type", " for FFT: ", "\"stablehlo.fft\"", "f64",
     "a TPU has no Fourier transforms of f64 and complex128; transform f32 or complex64"},
    {"X{64|128}", " dot(", "\"stablehlo.dot_general\"", "xi64",
     "a TPU has no products of matrices of 64-bit integers; multiply int32 or floats"},
};

// Returns the location of the text's first such operation, "fc.weight/aten::mm", which may be empty; nullopt
// without such an operation.
std::optional<std::string> refused_operation(std::string_view text, const Refusal& refusal) {
  for (size_t at = text.find(refusal.operation); at != text.npos; at = text.find(refusal.operation, at + 1)) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    if (line.find(refusal.type) == line.npos) continue;
    constexpr std::string_view kLocation = " loc(\"";
    const size_t name = line.rfind(kLocation);
    if (name == line.npos) return "";
    const std::string_view rest = line.substr(name + kLocation.size());
    return std::string(rest.substr(0, rest.find('"')));
  }
  return std::nullopt;
}

}  // namespace

Error with_operation(const Error& refused, std::string_view text) {
  const std::string_view message = refused.what();
  for (const Refusal& refusal : kRefusals) {
    if (message.find(refusal.error) == message.npos || message.find(refusal.more) == message.npos) continue;
    const auto name = refused_operation(text, refusal);
    if (!name) continue;
    return Error(refused.code(), base::str(*name, name->empty() ? "" : ": ", refusal.words,
                                           ". The compiler says: ", message));
  }
  return refused;
}

}  // namespace sluice::pjrt
