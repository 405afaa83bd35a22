#include "tests/pjrt/pod/engine.h"

#include <dlfcn.h>

#include "sluice/base/environment.h"
#include "sluice/pjrt/cache/compile_cache.h"
#include "sluice/pjrt/machine/find_plugin.h"
#include "sluice/pjrt/program/compile_options.h"
#include "sluice/pjrt/program/executable_facts.h"

namespace emulated_pod {
namespace {

constexpr std::string_view kSerialized = "program of the emulated pod, form 1";

Result<std::string> cpu_plugin_path() {
  if (const auto path = sluice::base::environment("EMULATED_POD_CPU_PLUGIN")) return *path;
  SLUICE_TRY(const sluice::pjrt::PluginFile found,
             sluice::pjrt::find_plugin("cpu", sluice::pjrt::plugin_search_folders()));
  return found.path;
}

Result<Api> open_cpu_plugin() {
  SLUICE_TRY(const std::string path, cpu_plugin_path());
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr)
    return fail(Code::kNotFound, "the emulated pod cannot load ", path, ": ", ::dlerror());
  const auto get = reinterpret_cast<const c::PJRT_Api* (*)()>(::dlsym(library, "GetPjrtApi"));
  if (get == nullptr) return fail(Code::kInvalidArgument, path, " is not a PJRT plugin");
  const Api api(get());
  auto initialize = c::make<c::PJRT_Plugin_Initialize_Args>();
  SLUICE_OK(api.call(initialize));
  return api;
}

// The parts of what serialize() made.
struct Serialized {
  std::string key;
  Placement placement;
  std::string_view program;
};

Result<Serialized> split(std::string_view bytes) {
  Reader in(bytes);
  if (in.text() != kSerialized) {
    return fail(Code::kInvalidArgument, "expected a program that the emulated pod serialised, found ",
                bytes.size(), " bytes of something else");
  }
  Serialized parts;
  parts.key = in.text();
  parts.placement.replicas = static_cast<int>(in.number());
  parts.placement.partitions = static_cast<int>(in.number());
  parts.placement.devices = in.numbers<int>();
  parts.program = in.text();
  if (in.broken() || !in.rest().empty())
    return fail(Code::kDataLoss, "a program that the emulated pod serialised was cut short");
  return parts;
}

}  // namespace

Result<Api> cpu_plugin() {
  static const auto& opened = *new Result<Api>(open_cpu_plugin());
  return opened;
}

Result<std::unique_ptr<Engine>> Engine::open(int devices) {
  std::unique_ptr<Engine> engine(new Engine());
  SLUICE_TRY(engine->api_, cpu_plugin());
  SLUICE_OK(engine->open_client(devices));
  return engine;
}

Status Engine::open_client(int devices) {
  constexpr std::string_view kName = "cpu_device_count";
  auto count = c::make<c::PJRT_NamedValue>();
  count.name = kName.data();
  count.name_size = kName.size();
  count.type = c::kInt64;
  count.int64_value = devices;
  count.value_size = 1;
  auto create = c::make<c::PJRT_Client_Create_Args>();
  create.create_options = &count;
  create.num_options = 1;
  SLUICE_OK(api_.call(create));
  client_ = create.client;
  auto all = c::make<c::PJRT_Client_AddressableDevices_Args>();
  all.client = client_;
  SLUICE_OK(api_.call(all));
  devices_.assign(all.addressable_devices, all.addressable_devices + all.num_addressable_devices);
  if (devices_.size() == static_cast<size_t>(devices)) return {};
  return fail(Code::kInternal, "expected ", devices, " virtual devices, the CPU plugin made ",
              devices_.size());
}

Engine::~Engine() {
  if (client_ == nullptr) return;
  auto args = c::make<c::PJRT_Client_Destroy_Args>();
  args.client = client_;
  (void)api_.call(args);
}

std::string Engine::key(std::string_view text, std::string_view options) {
  return sluice::pjrt::CompileCache::key({"emulated pod", text, options});
}

Result<std::string> Engine::key_of(std::string_view serialized) {
  SLUICE_TRY(Serialized parts, split(serialized));
  return parts.key;
}

Result<std::shared_ptr<Program>> Engine::compile(std::string_view text, std::string_view options) const {
  SLUICE_TRY(Placement placement, read_placement(options, static_cast<int>(devices_.size())));
  const c::PJRT_Program program = sluice::pjrt::mlir_program(text);
  auto args = c::make<c::PJRT_Client_Compile_Args>();
  args.client = client_;
  args.program = &program;
  args.compile_options = options.data();
  args.compile_options_size = options.size();
  SLUICE_OK(api_.call(args));
  return adopt(args.executable, key(text, options), std::move(placement));
}

Result<std::shared_ptr<Program>> Engine::load(std::string_view serialized) const {
  SLUICE_TRY(Serialized parts, split(serialized));
  for (const int id : parts.placement.devices) {
    if (id >= 0 && id < static_cast<int>(devices_.size())) continue;
    return fail(Code::kInvalidArgument, "the program was compiled for device ", id,
                ", this pod has devices 0 to ", devices_.size() - 1);
  }
  auto args = c::make<c::PJRT_Executable_DeserializeAndLoad_Args>();
  args.client = client_;
  args.serialized_executable = parts.program.data();
  args.serialized_executable_size = parts.program.size();
  SLUICE_OK(api_.call(args));
  return adopt(args.loaded_executable, std::move(parts.key), std::move(parts.placement));
}

Result<std::shared_ptr<Program>> Engine::adopt(c::PJRT_LoadedExecutable* loaded, std::string key,
                                               Placement placement) const {
  std::shared_ptr<Program> program(new Program(*this, loaded));
  SLUICE_OK(program->read_facts(std::move(key), std::move(placement)));
  return program;
}

Program::~Program() {
  auto executable = c::make<c::PJRT_Executable_Destroy_Args>();
  executable.executable = executable_;
  if (executable_ != nullptr) (void)engine_.api_.call(executable);
  auto loaded = c::make<c::PJRT_LoadedExecutable_Destroy_Args>();
  loaded.executable = loaded_;
  (void)engine_.api_.call(loaded);
}

Status Program::read_facts(std::string key, Placement placement) {
  const Api& api = engine_.api_;
  auto get = c::make<c::PJRT_LoadedExecutable_GetExecutable_Args>();
  get.loaded_executable = loaded_;
  SLUICE_OK(api.call(get));
  executable_ = get.executable;
  facts_.key = std::move(key);
  facts_.placement = std::move(placement);
  SLUICE_TRY(const std::string module, optimized());
  SLUICE_OK(read_module(module, facts_));
  auto memory = c::make<c::PJRT_Executable_GetCompiledMemoryStats_Args>();
  memory.executable = executable_;
  SLUICE_OK(api.call(memory));
  const int64_t* fields = &memory.generated_code_size_in_bytes;
  std::copy(fields, fields + facts_.memory.size(), facts_.memory.begin());
  auto cost = c::make<c::PJRT_Executable_GetCostAnalysis_Args>();
  cost.executable = executable_;
  SLUICE_OK(api.call(cost));
  for (size_t i = 0; i < cost.num_properties; ++i) {
    const c::PJRT_NamedValue& value = cost.properties[i];
    if (value.type == c::kFloat)
      facts_.cost.emplace_back(std::string(value.name, value.name_size), value.float_value);
  }
  return {};
}

Result<std::string> Program::serialize() const {
  SLUICE_TRY(const std::string program, sluice::pjrt::read_serialized(engine_.api_, executable_));
  const Placement& placement = facts_.placement;
  Writer out;
  out.text(kSerialized).text(facts_.key).number(static_cast<uint64_t>(placement.replicas));
  out.number(static_cast<uint64_t>(placement.partitions)).numbers(placement.devices).text(program);
  return out.take();
}

Result<std::string> Program::optimized() const {
  std::string format;
  return sluice::pjrt::read_optimized(engine_.api_, executable_, format);
}

}  // namespace emulated_pod
