#include "sluice/estimate/ahead_worker.h"

#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/json_bytes.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/process.h"
#include "sluice/pjrt/cache/compile_cache.h"
#include "sluice/pjrt/machine/find_plugin.h"

namespace sluice::estimate {
namespace {

using Json = nlohmann::json;

Json to_json(const pjrt::AheadProgram& program) {
  Json collectives = Json::array();
  for (const pjrt::Collective& c : program.collectives)
    collectives.push_back({{"kind", c.kind},
                           {"count", c.count},
                           {"bytes", c.bytes},
                           {"group", c.group},
                           {"between_slices", c.between_slices}});
  const pjrt::ProgramMemory& memory = program.memory;
  return {{"seconds", program.seconds},
          {"arguments", memory.arguments},
          {"outputs", memory.outputs},
          {"aliased", memory.aliased},
          {"temporary", memory.temporary},
          {"code", memory.code},
          {"total_memory", program.total_memory},
          {"flops", program.cost.flops},
          {"bytes_accessed", program.cost.bytes_accessed},
          {"serialized_bytes", program.serialized_bytes},
          {"output_types", program.output_types},
          {"collectives", std::move(collectives)}};
}

pjrt::AheadProgram program_of(const Json& json) {
  pjrt::AheadProgram program;
  program.seconds = json.at("seconds");
  program.memory = {json.at("arguments"), json.at("outputs"), json.at("aliased"), json.at("temporary"),
                    json.at("code")};
  program.total_memory = json.at("total_memory");
  program.cost = {json.at("flops"), json.at("bytes_accessed")};
  program.serialized_bytes = json.at("serialized_bytes");
  for (const Json& c : json.at("collectives"))
    program.collectives.push_back({c.at("kind"), c.at("count"), c.at("bytes"),
                                   c.value("group", std::vector<int64_t>()),
                                   c.value("between_slices", false)});
  program.output_types = json.value("output_types", std::vector<std::string>());
  return program;
}

// Whether a program does not fit: a GPU's compiler refuses no program for its memory, so this compares them.
bool exceeds(const pjrt::AheadProgram& program, const TpuSlice& slice, int64_t memory_limit) {
  return slice.plugin == "cuda" && program.total_memory > memory_limit;
}

// Returns flags for the compiler. A GPU's compiler times its candidates on the GPU; without one it must take
// the first, and Triton's products have no first.
pjrt::XlaFlags flags_of(const TpuSlice& slice) {
  if (slice.plugin == "cuda")
    return {{"xla_gpu_autotune_level", "0"}, {"xla_gpu_enable_triton_gemm", "False"}};
  return {};
}

base::Result<Json> compile_request(const Json& request) {
  SLUICE_TRY(const TpuSlice slice, find_slice(request.at("slice").get<std::string>()));
  SLUICE_TRY(const std::string text, base::read_file(request.at("program").get<std::string>()));
  SLUICE_TRY(const std::shared_ptr<pjrt::Plugin> plugin,
             pjrt::Plugin::load(request.at("plugin").get<std::string>()));
  SLUICE_TRY(const std::shared_ptr<pjrt::Topology> topology,
             pjrt::Topology::create(plugin, slice.topology, slice.options));
  const int replicas = request.at("replicas").get<int>();
  const int64_t memory_limit = slice.plugin == "cuda"
                                   ? static_cast<int64_t>(slice.generation->memory_gib * (1 << 30))
                                   : topology->memory_limit().value_or(0);
  Json report = {{"device_kind", topology->device_kind()}, {"memory_limit", memory_limit}};
  const pjrt::AheadCount count{replicas > 0 ? replicas : topology->num_devices(),
                               request.value("partitions", false)};
  const auto program = pjrt::compile_ahead(*topology, text, count, flags_of(slice));
  if (program && exceeds(*program, slice, memory_limit)) {
    report["does_not_fit"] = base::str(slice.name, " has less memory");
    report["shortage"] = {{"needed", program->total_memory}, {"available", memory_limit}};
    return report;
  }
  if (program) {
    report["program"] = to_json(*program);
    const std::string cache = request.at("cache").get<std::string>();
    if (!cache.empty() && !program->cache_key.empty()) {
      const pjrt::CompileCache programs(cache, std::numeric_limits<uint64_t>::max());
      SLUICE_OK(programs.store(program->cache_key, program->serialized));
      report["cached"] = std::filesystem::path(programs.path(program->cache_key)).filename().string();
    }
    return report;
  }
  if (program.error().code() != Code::kResourceExhausted) return tl::unexpected<Error>(program.error());
  const auto shortage = pjrt::memory_shortage(program.error().what());
  report["does_not_fit"] = program.error().what();
  if (shortage) report["shortage"] = {{"needed", shortage->needed}, {"available", shortage->available}};
  return report;
}

// libtpu asks a metadata server that is not there, locks a file in /tmp, warns, and ends the process for
// flags that it does not know. These settings prevent all of it (only the topology of the call matters).
// `dump`: a folder for the compiler's texts; "": none.
base::EnvironmentChanges worker_environment(const std::string& dump) {
  const auto flags = dump.empty() ? std::nullopt : std::optional(base::str("--xla_dump_to=", dump));
  return {{"TPU_SKIP_MDS_QUERY", "1"},           {"ALLOW_MULTIPLE_LIBTPU_LOAD", "1"},
          {"TPU_WORKER_HOSTNAMES", "localhost"}, {"TPU_ACCELERATOR_TYPE", "v3-8"},
          {"TPU_LOG_DIR", "disabled"},           {"XLA_FLAGS", flags},
          {"LIBTPU_INIT_ARGS", std::nullopt}};
}

constexpr size_t kListedBuffers = 5;

AheadReport report_of(const Json& json, const std::string& plugin_path) {
  AheadReport report;
  report.plugin_path = plugin_path;
  report.device_kind = json.at("device_kind");
  report.memory_limit = json.at("memory_limit");
  report.fits = json.contains("program");
  if (report.fits) report.program = program_of(json.at("program"));
  report.cached = json.value("cached", "");
  if (json.contains("shortage")) {
    report.shortage =
        pjrt::MemoryShortage{json.at("shortage").at("needed"), json.at("shortage").at("available")};
  }
  return report;
}

}  // namespace

base::Result<AheadReport> compile_in_worker(const std::vector<std::string>& worker,
                                            const AheadRequest& request) {
  const std::vector<std::string> folders = pjrt::plugin_search_folders();
  const auto plugin = pjrt::find_plugin(request.slice.plugin, folders);
  if (!plugin && request.slice.plugin == "tpu") {
    return base::fail(Code::kNotFound, "compiling for ", request.slice.name,
                      " needs libtpu, which is not installed: ", kInstallLibtpu);
  }
  // The plugin of this machine, which SLUICE_PLUGIN chooses, plays no part here.
  if (!plugin && plugin.error().code() == Code::kNotFound) {
    return base::fail(Code::kNotFound, "compiling for ", request.slice.name,
                      " needs XLA's CUDA plugin, which is not installed: ", kInstallCudaCompiler,
                      ". Looked in ", base::join(folders, ", "));
  }
  if (!plugin) return base::fail_at(plugin, "compiling for ", request.slice.name);
  SLUICE_TRY(const auto folder, base::TemporaryDirectory::create());
  const std::string program = folder.path("program.mlir"), order = folder.path("request.json"),
                    answer = folder.path("report.json");
  // A program's key in a folder of programs depends on the compiler's flags.
  const bool lists_buffers = request.partitions && request.cache.empty();
  const std::string dump = lists_buffers ? folder.path("dump") : "";
  SLUICE_OK(base::write_file_atomically(program, request.text));
  const Json json = {{"slice", request.slice.name}, {"program", program},
                     {"plugin", plugin->path},      {"replicas", request.replicas},
                     {"cache", request.cache},      {"partitions", request.partitions}};
  SLUICE_OK(base::write_file_atomically(order, base::with_json_texts(json).dump()));
  std::vector<std::string> command = worker;
  command.insert(command.end(), {order, answer});
  SLUICE_TRY(const base::Finished end,
             base::run_process(command, worker_environment(dump), request.deadline_seconds));
  if (end.timed_out) {
    return base::fail(Code::kDeadlineExceeded, "compiling for ", request.slice.name, " took more than ",
                      request.deadline_seconds, " s and was stopped");
  }
  const auto written = base::read_file(answer);
  if (!written) {
    return base::fail(Code::kInternal, request.slice.plugin == "tpu" ? "libtpu" : "the plugin",
                      " ended the compiler's process for ", request.slice.name, " (", end.status.text(),
                      "): ", end.last_words());
  }
  const Json report = base::parse_json(*written);
  if (report.is_discarded())
    return base::fail(Code::kInternal, "the compiler's report is not JSON: ", *written);
  if (report.contains("error")) {
    return base::fail(static_cast<Code>(report.at("code").get<int>()), "compiling for ", request.slice.name,
                      ": ", report.at("error").get<std::string>());
  }
  AheadReport found = report_of(report, plugin->path);
  if (found.fits && lists_buffers) found.largest = dumped_buffers(dump, kListedBuffers);
  return found;
}

int run_ahead_worker(const std::string& request_path, const std::string& report_path) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody waits for the report when the parent is gone
  const auto bytes = base::read_file(request_path);
  if (!bytes) {
    std::fprintf(stderr, "%s\n", bytes.error().what());
    return 2;
  }
  Json report;
  try {
    auto compiled = compile_request(base::with_bytes(base::parse_json(*bytes)));
    if (compiled)
      report = std::move(*compiled);
    else
      report = {{"error", compiled.error().what()}, {"code", static_cast<int>(compiled.error().code())}};
  } catch (const Json::exception& error) {
    report = {{"error", base::str("the request cannot be read: ", error.what())},
              {"code", static_cast<int>(Code::kInvalidArgument)}};
  }
  const std::string text = report.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (auto status = base::write_file_atomically(report_path, text); !status) {
    std::fprintf(stderr, "%s\n", status.error().what());
    return 2;
  }
  // Exit without waiting for libtpu's threads.
  std::fflush(nullptr);
  std::_Exit(0);
}

}  // namespace sluice::estimate
