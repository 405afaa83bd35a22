#include "sluice/device/open.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "sluice/base/environment.h"
#include "sluice/base/error.h"
#include "sluice/base/log.h"
#include "sluice/base/result.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"
#include "sluice/collectives/host_collectives.h"
#include "sluice/device/agree.h"
#include "sluice/kernels/install.h"
#include "sluice/mesh/rules.h"
#include "sluice/mesh/slices.h"
#include "sluice/patterns/patterns.h"
#include "sluice/pjrt/cache/cache_identity.h"
#include "sluice/pjrt/cache/compile_cache.h"
#include "sluice/pjrt/event.h"
#include "sluice/pjrt/machine/choose_plugin.h"

namespace sluice::device {
namespace {

Peers& peers() {
  static auto* peers = new Peers();
  return *peers;
}

PeerSlices& own_slice() {
  static PeerSlices slices;
  return slices;
}

stablehlo::Precision precision_of(const std::string& name) {
  if (name == "highest") return stablehlo::Precision::kHighest;
  return name == "high" ? stablehlo::Precision::kHigh : stablehlo::Precision::kDefault;
}

// Throws for a name that no kernel has.
void leave_out_kernels(const std::vector<std::string>& names) {
  std::vector<std::string> known = patterns::kernel_pattern_names();
  known.insert(known.end(), kernels::choices().begin(), kernels::choices().end());
  std::sort(known.begin(), known.end());
  for (const std::string& name : names)
    if (!std::binary_search(known.begin(), known.end(), name))
      throw_error(Code::kInvalidArgument,
                  base::str("SLUICE_WITHOUT_KERNELS: \"", name, "\" is not a kernel: expected names among ",
                            base::join(known, ", ")));
  kernels::leave_out(names);
}

// Returns this machine's CPU kernels. If no kernel library can be installed, warns and returns null.
const stablehlo::KernelLibrary* cpu_kernels(const pjrt::Plugin& plugin, int local_replicas,
                                            const std::vector<std::string>& without) {
  const auto installed = kernels::install(plugin, local_replicas);
  if (installed) {
    leave_out_kernels(without);
    return *installed;
  }
  base::warn("no library's CPU kernels, only XLA's own: ", installed.error().what());
  return nullptr;
}

// Gives each of several processes on one host the GPU of its local rank, unless a launcher has hidden the
// others already. Otherwise each process would take all GPUs of the host.
void share_gpus(pjrt::Options& options) {
  const std::string visible = base::environment("CUDA_VISIBLE_DEVICES").value_or("");
  const bool one_is_left = !visible.empty() && visible.find(',') == std::string::npos;
  const std::string count = base::environment("LOCAL_WORLD_SIZE").value_or("1");
  const auto place = base::environment("LOCAL_RANK");
  if (!place || count == "1" || one_is_left) return;
  options.emplace("visible_devices", std::vector<int64_t>{base::number_of<int64_t>(*place).value_or(0)});
}

pjrt::ClientOptions client_options(const Settings& options, const pjrt::Plugin& plugin) {
  pjrt::ClientOptions result;
  result.cpu_device_count = std::max(options.devices, 1);
  for (int id : options.device_ids) result.cpu_device_count = std::max(result.cpu_device_count, id + 1);
  if (!options.cache) result.cache_dir.clear();
  result.process_index = options.process_index;
  result.processes = options.processes;
  if (plugin.name() != "cuda") return result;
  if (options.processes > 1) {
    result.store = peers().store;
    share_gpus(result.plugin_options);
  }
  if (options.gpu_memory > 0)
    result.plugin_options.emplace("memory_fraction", static_cast<float>(options.gpu_memory));
  result.plugin_options.emplace("preallocate", options.gpu_preallocate);
  return result;
}

std::string versions(const pjrt::Client& client) {
  const pjrt::Plugin& plugin = *client.plugin();
  std::string text = base::str(plugin.name(), ", PJRT ", plugin.api_major(), '.', plugin.api_minor(),
                               ", platform ", client.platform_name(), ' ', client.platform_version());
  for (const auto& [name, value] : plugin.attributes()) text += base::str(", ", name, ' ', value);
  return text;
}

// Returns the number of the device's TPU slice; `unknown` if the plugin does not say it.
int slice_of(const pjrt::Device& device, int unknown) {
  const auto found = device.attributes().find("slice_index");
  return found == device.attributes().end() ? unknown : base::number_of<int>(found->second).value_or(unknown);
}

// Returns the devices of a program's replicas, and this process's place among them.
Agreement agree_with_others(const pjrt::Client& client, const Settings& options, std::vector<int> own,
                            bool spans) {
  if (options.processes == 1) {
    if (client.processes() > 1)
      throw_error(
          Code::kFailedPrecondition,
          base::str("this process was started alone, but the plugin (", versions(client), ") knows the ",
                    client.global_devices().size(), " devices of ", client.processes(),
                    " processes: start the program on all hosts of the slice, as with `sluice run --hosts "
                    "a,b,c,d -- COMMAND`"));
    return {0, std::move(own), {}, {}};
  }
  if (!peers().gather)
    throw_error(
        Code::kFailedPrecondition,
        "DeviceOptions::processes is above 1, but nothing connects this process with the others: start a "
        "session (sluice::start)");
  const pjrt::Device& first = *client.device(own.front());
  const Opened opened{versions(client),    client.process_index(), client.processes(), std::move(own), spans,
                      slice_of(first, -1), own_slice().slice,      own_slice().slices, first.kind()};
  std::vector<Opened> all;
  for (const std::string& text : base::value_or_throw(peers().gather("devices", to_text(opened))))
    all.push_back(base::value_or_throw(opened_from(text)));
  return base::value_or_throw(agree(all, options.process_index, peers().launcher));
}

// Ends the process 20 s after another one was lost. A device that waits for a lost process may wait forever,
// and so may the destructors that run later. Until then the program has the error and can end in its own way.
void end_with_the_lost(const Error& lost) {
  static std::once_flag once;
  std::call_once(once, [text = std::string(lost.what())] {
    std::thread([text] {
      std::this_thread::sleep_for(std::chrono::seconds(20));
      std::fprintf(stderr, "sluice: the device still waits, so this process ends now: %s\n", text.c_str());
      std::_Exit(1);
    }).detach();
  });
}

void watch_others() {
  pjrt::end_waits([status = peers().status]() -> base::Status {
    base::Status now = status();
    if (!now) end_with_the_lost(now.error());
    return now;
  });
}

void open_host_collectives(const pjrt::Plugin& plugin, const World& world, const std::vector<int>& devices) {
  collectives::HostCollectives& host = collectives::HostCollectives::get();
  base::value_or_throw(host.install(plugin));
  base::value_or_throw(
      host.configure({devices, world.process_index, world.processes,
                      world.processes > 1 && peers().transport ? peers().transport() : nullptr}));
}

}  // namespace

namespace {

// Returns the result of `measure` for this number of threads; 0: not known. A busy machine measures too
// little, so the best of all processes so far counts, and each process checks whether it measures more.
double best_measured(const char* what, double (*measure)(int threads, int rounds), int threads, bool cached) {
  constexpr int kFirstRounds = 8, kLaterRounds = 2;
  const std::string folder = cached ? pjrt::default_cache_directory() : "";
  const pjrt::CompileCache cache(folder, pjrt::kDefaultCacheLimit);
  const std::string key =
      pjrt::CompileCache::key({what, pjrt::processor_identity(), std::to_string(threads)});
  const auto text = folder.empty() ? std::nullopt : cache.find(key);
  const double known = text ? base::number_of<double>(*text).value_or(0) : 0;
  const double measured = measure(threads, known > 0 ? kLaterRounds : kFirstRounds);
  // If the folder cannot be written, the next process measures again.
  if (!folder.empty() && measured > 1.02 * known)
    (void)cache.store(key, std::to_string(static_cast<int64_t>(measured)));
  return std::max(known, measured);
}

}  // namespace

ProcessorPeak processor_peak(const Runtime& rt) {
  const int threads = kernels::threads_of_replicas(rt.world.local_replicas);
  // A process measures only once, even if nothing is kept on disk.
  static const double best =
      best_measured("peak of f32 products, version 1", kernels::measure_f32_peak, threads, rt.options.cache);
  return {best, threads};
}

CallPeak call_peak(const Runtime& rt) {
  const ProcessorPeak all = processor_peak(rt);
  const int threads = kernels::threads_of_replicas(1);
  static const double bandwidth =
      best_measured("memory's bandwidth, version 1", kernels::measure_bandwidth, threads, rt.options.cache);
  return {all.flops_per_second * threads / all.threads, bandwidth, threads};
}

bool compiler_makes_all() { return runtime().world.kernels == nullptr; }

void set_peers(Peers others) { peers() = std::move(others); }

void set_peer_slices(const PeerSlices& slices) { own_slice() = slices; }

std::vector<std::string> gather_from_peers(const std::string& name, const std::string& bytes) {
  return base::value_or_throw(peers().gather(name, bytes));
}

// A v5e and a v6e keep the scores of a group in the memory next to a core (a v4: on the chip). It has room
// for 32 MiB of them, but the tensors that the loop reads and writes should stay there, too: with 16 MiB on a
// v6e, each round moved one of them. A tpu7x has less of that memory. A v2, v3 or v5p keeps no scores there:
// groups only save memory, and cost up to a third more traffic, so they are large. A GPU, for which XLA makes
// no fused attention of these operations, saves memory in the same way.
int64_t attention_bytes(std::string_view device_kind) {
  if (const auto text = base::environment("SLUICE_ATTENTION_BYTES")) {
    const int64_t bytes = base::number_of<int64_t>(*text).value_or(-1);
    if (bytes < 0)
      throw_error(Code::kInvalidArgument,
                  base::str("SLUICE_ATTENTION_BYTES is \"", *text,
                            "\": expected a number of bytes, or 0 for all scores at once"));
    return bytes;
  }
  constexpr int64_t kMiB = int64_t{1} << 20;
  for (const char* large : {"TPU v4", "TPU v5 lite", "TPU v5e"})
    if (device_kind == large) return 16 * kMiB;
  for (const char* flat : {"TPU v2", "TPU v3", "TPU v5", "TPU v5p"})
    if (device_kind == flat) return 512 * kMiB;
  if (base::starts_with(device_kind, "TPU")) return 8 * kMiB;
  return device_kind.empty() ? 0 : 512 * kMiB;
}

bool layer_loops(const Settings& settings, bool cpu) {
  return settings.layer_loops.value_or(!cpu) && !settings.detect_anomaly;
}

int64_t gather_bytes() {
  constexpr int64_t kDefault = int64_t{256} << 20;
  const auto text = base::environment("SLUICE_GATHER_BYTES");
  if (!text) return kDefault;
  const int64_t bytes = base::number_of<int64_t>(*text).value_or(-1);
  if (bytes < 0)
    throw_error(Code::kInvalidArgument,
                base::str("SLUICE_GATHER_BYTES is \"", *text,
                          "\": expected a number of bytes, or 0 for a ring in any case"));
  return bytes;
}

void lay_over(World& world, const Mesh& mesh, int processes) {
  const Mesh whole = mesh.over(int64_t{world.local_replicas} * processes);
  if (whole.devices() == 1) return;
  world.mesh = std::make_shared<const Mesh>(whole);
  world.mesh_devices = std::exchange(world.local_replicas, 1);
}

namespace {

// Throws unless each process has whole rows of the batch, or processes share one part of its rows.
void check_rows_of_processes(const Mesh& mesh, int64_t local) {
  const int64_t beside = mesh.size("sequence") * mesh.size("tensor");
  if (local % beside == 0 || beside % local == 0) return;
  throw_error(Code::kInvalidArgument,
              base::str("the mesh ", mesh.str(), " puts ", beside,
                        " devices (sequence × tensor) to a row of ", "the batch, and a process has ", local,
                        ": expected that one of the two numbers divides the other"));
}

// Makes the devices a mesh, if there is one. XLA's partitioner would run a kernel of the CPU for the whole
// tensor on every device.
void set_mesh(World& world, const Settings& options) {
  if (options.mesh.empty()) return;
  if (options.processes > 1 && !world.spans_processes)
    throw_error(Code::kUnimplemented,
                base::str("XLA's CPU plugin has no programs over several processes: the mesh ",
                          options.mesh.str(), " needs one process there, found ", options.processes));
  const int local = world.local_replicas;
  lay_over(world, options.mesh, options.processes);
  if (world.mesh != nullptr) check_rows_of_processes(*world.mesh, local);
}

// Warns if axes other than `data` exchange data over the slow links between slices, or `tensor` over those
// between hosts.
void warn_of_spread(const Mesh& mesh, const Agreement& agreement, const std::vector<pjrt::Device*>& own) {
  std::vector<int64_t> slices = agreement.slice_of;
  if (slices.empty())
    for (const pjrt::Device* device : own) slices.push_back(slice_of(*device, 0));
  std::string warning = axes_between_slices(mesh, slices);
  if (warning.empty() && !agreement.process_of.empty())
    warning = tensor_apart(mesh, agreement.process_of, "hosts");
  if (!warning.empty()) base::warn(warning);
}

}  // namespace

std::unique_ptr<Runtime> open(const Settings& settings) {
  static std::atomic<uint64_t> openings = 0;
  auto rt = std::make_unique<Runtime>();
  rt->opening = ++openings;
  rt->options = settings;
  const Settings& options = rt->options;
  if (options.devices < 0) {
    throw_error(Code::kInvalidArgument,
                base::str("expected one device or more, or 0 for the default, found ", options.devices));
  }
  auto plugin = base::value_or_throw(pjrt::open_plugin(options.plugin, options.processes));
  rt->client = base::value_or_throw(pjrt::Client::create(plugin, client_options(options, *plugin)));

  World& world = rt->world;
  const bool cpu = rt->client->platform_name() == "cpu";
  world.processes = options.processes;
  world.explicit_nan = cpu;
  world.precision = precision_of(options.matmul_precision);
  world.check_values = options.check;
  world.detect_anomaly = options.detect_anomaly;
  world.loops = options.loops;
  world.layer_loops = layer_loops(options, cpu);
  world.spans_processes = !cpu && options.processes > 1;

  std::vector<int> local;
  for (const pjrt::Device* device : rt->client->devices()) local.push_back(device->id());
  // The default is all devices, but only one on a CPU, whose devices are virtual.
  const int count = options.devices > 0 ? options.devices : cpu ? 1 : static_cast<int>(local.size());
  const std::vector<int> own =
      base::value_or_throw(choose_devices(local, options.device_ids, count, world.spans_processes));
  for (int id : own) rt->devices.push_back(rt->client->device(id));
  world.attention_bytes = attention_bytes(cpu ? "" : rt->devices.front()->kind());
  world.local_replicas = static_cast<int>(own.size());
  set_mesh(world, options);
  Agreement agreement = agree_with_others(*rt->client, options, own, world.spans_processes);
  if (world.mesh != nullptr && agreement.process_index == 0)
    warn_of_spread(*world.mesh, agreement, rt->devices);
  world.process_index = agreement.process_index;
  rt->device_ids = std::move(agreement.devices);

  world.kernels = cpu && options.cpu_kernels && world.mesh == nullptr
                      ? cpu_kernels(*plugin, world.local_replicas, options.without_kernels)
                      : nullptr;
  world.host_collectives = cpu && world.replicas() > 1;
  if (world.host_collectives) open_host_collectives(*plugin, world, own);
  if (world.spans_processes && peers().status)
    watch_others();
  else
    pjrt::end_waits({});
  return rt;
}

}  // namespace sluice::device
