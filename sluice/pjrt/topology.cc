#include "sluice/pjrt/topology.h"

#include <algorithm>
#include <charconv>

#include "sluice/base/clock.h"
#include "sluice/base/log.h"
#include "sluice/pjrt/compile_options.h"

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
  if (num_devices_ == 0) return {};
  auto kind = c::make<c::PJRT_DeviceDescription_Kind_Args>();
  kind.device_description = devices.descriptions[0];
  SLUICE_OK(plugin_->api().call(kind));
  device_kind_.assign(kind.device_kind, kind.device_kind_size);
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
    std::string serialized, format, optimized;
    SLUICE_OK(take(read_serialized(api_, raw_), serialized));
    program.serialized_bytes = static_cast<int64_t>(serialized.size());
    SLUICE_OK(take(read_optimized(api_, raw_, format), optimized));
    if (optimized.empty()) return {};
    if (format != "hlo_with_config") {
      return base::fail(Code::kUnimplemented, "expected the optimised program as hlo_with_config, found ",
                        format);
    }
    SLUICE_TRY(program.collectives, read_collectives(optimized));
    return {};
  }

 private:
  const Api& api_;
  c::PJRT_Executable* raw_;
};

}  // namespace

base::Result<AheadProgram> compile_ahead(const Topology& topology, std::string_view text, int num_replicas,
                                         const XlaFlags& flags) {
  // With more replicas some compilers end the process.
  if (num_replicas < 1 || num_replicas > topology.num_devices()) {
    return base::fail(Code::kInvalidArgument, "expected 1 to ", topology.num_devices(),
                      " replicas, one a device, found ", num_replicas);
  }
  const c::PJRT_Program source = mlir_program(text);
  XlaFlags all = topology.plugin_->flags();
  all.insert(flags.begin(), flags.end());
  const std::string options = serialize_compile_options(num_replicas, all);
  auto args = c::make<c::PJRT_Compile_Args>();
  args.topology = topology.raw_;
  args.program = &source;
  args.compile_options = options.data();
  args.compile_options_size = options.size();
  const double start = base::monotonic_seconds();
  if (auto status = topology.plugin_->api().call(args); !status)
    return tl::unexpected<Error>(topology.plugin_->explained(status.error()));
  AheadProgram program;
  program.seconds = base::monotonic_seconds() - start;
  const Compiled compiled(topology.plugin_->api(), args.executable);
  SLUICE_OK(compiled.read(program));
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

}  // namespace sluice::pjrt
