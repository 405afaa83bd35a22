#include "sluice/pjrt/client.h"

#include <algorithm>
#include <set>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/environment.h"
#include "sluice/base/log.h"
#include "sluice/pjrt/cache/cache_identity.h"
#include "sluice/pjrt/machine/chip_use.h"
#include "sluice/pjrt/program/compile_options.h"
#include "sluice/pjrt/program/topology.h"
#include "sluice/pjrt/types.h"

namespace sluice::pjrt {
namespace {

// XLA's compiler for CPUs of November 2025 gives some products to XNNPACK. With them, a training whose
// weights are updated in place was wrong by 1e-5 from its second update on. This was seen on CPUs with AVX2
// and without AVX-512, and not with XLA's own products or with the XLA of this version.
constexpr int kFirstMinorWithRightProducts = 115;

}  // namespace

base::Result<std::shared_ptr<Client>> Client::create(std::shared_ptr<Plugin> plugin,
                                                     const ClientOptions& options) {
  std::shared_ptr<Client> client(new Client(std::move(plugin)));
  SLUICE_OK(client->open(options));
  SLUICE_OK(client->read_platform());
  SLUICE_OK(client->read_devices());
  if (!options.cache_dir.empty()) {
    client->cache_ = std::make_unique<CompileCache>(options.cache_dir, options.cache_limit);
    std::vector<std::string> places;
    for (const GlobalDevice& device : client->global_devices()) {
      if (!device.place.empty()) places.push_back(device.place);
    }
    client->cache_identity_ = cache_identity(*client, places);
  }
  return client;
}

Client::~Client() {
  if (raw_ == nullptr) return;
  auto args = c::make<c::PJRT_Client_Destroy_Args>();
  args.client = raw_;
  if (auto status = api().call(args); !status) base::warn("closing the client: ", status.error().what());
}

base::Status Client::open(const ClientOptions& options) {
  Options given = options.plugin_options;
  // Only the CPU plugin gets this option: other plugins refuse options that they do not know.
  if (plugin_->name() == "cpu") {
    if (options.cpu_device_count < 1) {
      return base::fail(Code::kInvalidArgument, "expected at least 1 CPU device, found ",
                        options.cpu_device_count);
    }
    given.emplace("cpu_device_count", int64_t{options.cpu_device_count});
  }
  if (plugin_->name() == "cuda") given.emplace("platform_name", std::string("cuda"));  // as JAX does
  if (plugin_->name() == "cuda" && options.processes > 1) {
    given.emplace("node_id", int64_t{options.process_index});
    given.emplace("num_nodes", int64_t{options.processes});
  }
  const std::vector<c::PJRT_NamedValue> values = to_named_values(given);
  auto args = c::make<c::PJRT_Client_Create_Args>();
  args.create_options = values.data();
  args.num_options = values.size();
  store_ = options.store;
  if (store_) offer_store(*store_, args);
  if (auto status = api().call(args); !status) {
    return base::fail(status.error().code(), "cannot open the devices of the ", plugin_->name(), " plugin (",
                      plugin_->path(), "): ", status.error().what(),
                      plugin_->name() == "tpu" ? chips_finding(find_machine()) : "");
  }
  raw_ = args.client;
  return {};
}

base::Status Client::read_platform() {
  auto name = c::make<c::PJRT_Client_PlatformName_Args>();
  auto version = c::make<c::PJRT_Client_PlatformVersion_Args>();
  auto process = c::make<c::PJRT_Client_ProcessIndex_Args>();
  name.client = version.client = process.client = raw_;
  SLUICE_OK(api().call(name));
  SLUICE_OK(api().call(version));
  SLUICE_OK(api().call(process));
  platform_name_.assign(name.platform_name, name.platform_name_size);
  platform_version_.assign(version.platform_version, version.platform_version_size);
  process_index_ = process.process_index;
  return {};
}

base::Status Client::read_devices() {
  auto local = c::make<c::PJRT_Client_AddressableDevices_Args>();
  auto all = c::make<c::PJRT_Client_Devices_Args>();
  local.client = all.client = raw_;
  SLUICE_OK(api().call(local));
  SLUICE_OK(api().call(all));
  for (size_t i = 0; i < all.num_devices; ++i) {
    SLUICE_TRY(const Device described, Device::describe(api(), all.devices[i]));
    GlobalDevice device = {described.id(), described.process_index(), {}};
    if (platform_name_ == "tpu") {  // only its programs depend on places
      device.place = device_place(described.id(), described.kind(), described.attributes());
    }
    global_devices_.push_back(std::move(device));
  }
  for (size_t i = 0; i < local.num_addressable_devices; ++i) {
    SLUICE_TRY(Device described, Device::describe(api(), local.addressable_devices[i]));
    owned_devices_.push_back(std::make_unique<Device>(std::move(described)));
    devices_.push_back(owned_devices_.back().get());
  }
  if (devices_.empty()) {
    return base::fail(Code::kNotFound, "the ", plugin_->name(), " plugin (", plugin_->path(),
                      ") found no device in this machine");
  }
  return {};
}

int Client::processes() const {
  std::set<int> seen;
  for (const GlobalDevice& device : global_devices_) seen.insert(device.process_index);
  return static_cast<int>(seen.size());
}

Device* Client::device(int id) const {
  for (Device* device : devices_) {
    if (device->id() == id) return device;
  }
  return nullptr;
}

base::Result<Buffer> Client::put(const void* host, const stablehlo::Type& type, Device& device, HostCopy mode,
                                 std::function<void()> done) {
  const stablehlo::Type* kept = interned(type);
  auto args = c::make<c::PJRT_Client_BufferFromHostBuffer_Args>();
  args.client = raw_;
  // A value without elements may have no address, but plugins require one.
  static const char nothing = 0;
  args.data = host == nullptr && type.numel() == 0 ? &nothing : host;
  if (args.data == nullptr) {
    return base::fail(Code::kInvalidArgument, "cannot put a ", type.str(), " on device ", device.id(),
                      ": the host address is null");
  }
  args.type = to_buffer_type(type.dtype);
  args.dims = kept->dims.data();
  args.num_dims = kept->dims.size();
  args.host_buffer_semantics = static_cast<c::PJRT_HostBufferSemantics>(mode);
  args.device = device.raw();
  SLUICE_OK(api().call(args));
  Buffer buffer(shared_from_this(), &device, kept, args.buffer);
  const Event released(api(), args.done_with_host_buffer);
  // A transfer's error stays with the buffer; the host memory is free in any case.
  if (done) released.on_ready([done = std::move(done)](const base::Status&) { done(); });
  return buffer;
}

base::Result<std::string> Client::serialized_options(const CompileOptions& options) const {
  const bool partitioned = options.num_partitions > 1;
  const int count = partitioned ? options.num_partitions : options.num_replicas;
  const char* const parts = partitioned ? "partitions" : "replicas";
  if (partitioned && options.num_replicas != 1) {
    return base::fail(Code::kUnimplemented, "cannot compile ", options.name, " for ", options.num_replicas,
                      " replicas of ", options.num_partitions, " partitions: one of the numbers must be 1");
  }
  std::vector<int> ids = options.device_ids;
  if (ids.empty()) {
    for (Device* device : devices_) {
      if (ids.size() < static_cast<size_t>(std::max(count, 0))) ids.push_back(device->id());
    }
  }
  if (options.num_partitions < 1 || count < 1 || ids.size() != static_cast<size_t>(count)) {
    return base::fail(Code::kInvalidArgument, "cannot compile ", options.name, " for ", count, ' ', parts,
                      ": expected one device for each, found ", ids.size());
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      // XLA would compile such a program, which would then wait for itself.
      if (ids[i] == ids[j]) {
        return base::fail(Code::kInvalidArgument, "cannot compile ", options.name, ": device ", ids[i],
                          " is given to ", parts, ' ', j, " and ", i);
      }
    }
  }
  XlaFlags flags = plugin_->flags();
  flags.insert(options.flags.begin(), options.flags.end());
  if (platform_name_ == "cpu" && plugin_->api_minor() < kFirstMinorWithRightProducts)
    flags.try_emplace("xla_cpu_use_xnnpack", "False");
  return partitioned ? serialize_partitioned_options(ids, flags) : serialize_compile_options(ids, flags);
}

base::Result<std::shared_ptr<Executable>> Client::compile(std::string_view text,
                                                          const CompileOptions& options) {
  const base::Stopwatch watch;
  SLUICE_TRY(const std::string serialized, serialized_options(options));
  std::shared_ptr<Executable> made;
  if (cache_) {
    SLUICE_TRY(made, compile_once(text, serialized, options));
  } else {
    SLUICE_TRY(made, compile_now(text, serialized, options));
  }
  made->seconds_ = watch.seconds();
  return made;
}

base::Result<std::shared_ptr<Executable>> Client::compile_once(std::string_view text,
                                                               const std::string& serialized,
                                                               const CompileOptions& options) {
  const std::string key = CompileCache::key({cache_identity_, serialized, text});
  if (auto found = from_cache(cache_->find(key), key, options)) return found;
  const CompileClaim claim = claim_program(key, options);
  if (auto found = from_cache(cache_->find_after(claim, key), key, options)) return found;
  if (claim.waited() && claim.state() != LockState::kHeld && !impatient_.exchange(true))
    base::info(
        "another process was to compile the program for '", options.name,
        "' and has stored none: it failed, or needs longer than SLUICE_CACHE_WAIT. This process compiles "
        "the program itself and waits for no other one");
  SLUICE_TRY(std::shared_ptr<Executable> compiled, compile_now(text, serialized, options));
  to_cache(key, *compiled);
  return compiled;
}

// The processes of a GPU's client compile the same program at the same time: XLA divides the timing of
// candidates among them, so one of them alone would wait for the others.
CompileClaim Client::claim_program(const std::string& key, const CompileOptions& options) {
  WaitTimes times;
  times.longest = base::environment_seconds("SLUICE_CACHE_WAIT", times.longest, 0);
  if (store_ != nullptr || times.longest == 0) return {};
  if (impatient_) times.longest = 0;
  return cache_->claim(key, options.name, times);
}

base::Result<std::shared_ptr<Executable>> Client::compile_now(std::string_view text,
                                                              const std::string& serialized,
                                                              const CompileOptions& options) {
  const c::PJRT_Program program = mlir_program(text);
  auto args = c::make<c::PJRT_Client_Compile_Args>();
  args.client = raw_;
  args.program = &program;
  args.compile_options = serialized.data();
  args.compile_options_size = serialized.size();
  if (auto status = api().call(args); !status)
    return base::fail_at(
        base::Status(tl::unexpected<Error>(with_operation(plugin_->explained(status.error()), text))),
        "cannot compile ", options.name);
  return Executable::adopt(shared_from_this(), args.executable, options);
}

base::Result<std::shared_ptr<Executable>> Client::load(std::string_view bytes,
                                                       const CompileOptions& options) {
  auto args = c::make<c::PJRT_Executable_DeserializeAndLoad_Args>();
  args.client = raw_;
  args.serialized_executable = bytes.data();
  args.serialized_executable_size = bytes.size();
  const base::Stopwatch watch;
  if (auto status = api().call(args); !status) return base::fail_at(status, "cannot load ", options.name);
  auto loaded = Executable::adopt(shared_from_this(), args.loaded_executable, options);
  if (loaded) (*loaded)->seconds_ = watch.seconds();
  return loaded;
}

base::Result<std::shared_ptr<Executable>> Client::from_cache(const std::optional<std::string>& payload,
                                                             const std::string& key,
                                                             const CompileOptions& options) {
  if (!payload) return base::fail(Code::kNotFound, "not in the cache");
  auto loaded = load(*payload, options);
  if (!loaded) {
    base::warn("the compile cache entry ", cache_->path(key),
               " does not load and is removed: ", loaded.error().what());
    cache_->remove(key);
    return loaded;
  }
  (*loaded)->from_cache_ = true;
  return loaded;
}

// A program that cannot be stored is still usable.
void Client::to_cache(const std::string& key, const Executable& executable) {
  const auto bytes = executable.serialize();
  if (!bytes) {
    base::debug("compile cache: ", executable.name(), " cannot be serialised: ", bytes.error().what());
    return;
  }
  if (auto status = cache_->store(key, *bytes); !status && !cache_failed_.exchange(true)) {
    base::warn("programs are not kept for the next start: ", status.error().what(),
               "; SLUICE_CACHE_DIR chooses another folder, or off");
  }
}

}  // namespace sluice::pjrt
