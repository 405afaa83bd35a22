// sluice compile, sluice estimate, and the worker process of both
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <tuple>

#include "sluice/base/files/file.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/strings.h"
#include "sluice/bench/cases.h"
#include "sluice/cli/compile/step_program.h"
#include "sluice/cli/flags/flag.h"
#include "sluice/cli/verbs.h"
#include "sluice/estimate/peak.h"
#include "sluice/estimate/slice_report.h"
#include "sluice/mesh/mesh.h"
#include "sluice/mesh/slices.h"
#include "sluice/pjrt/cache/remote_cache.h"
#include "sluice/session/ahead/remote_programs.h"
#include "sluice/train/recipe/choice.h"

namespace sluice::cli {
namespace {

struct Flags {
  std::vector<std::string> slices;
  StepRecipe recipe;
  train::Precision precision = train::Precision::kF32;
  std::string program, dump;
  std::string cache;                 // a folder or a bucket's, for the compiled programs of `command`
  std::vector<std::string> command;  // the user's own program
  estimate::SliceOptions options;
  std::string mesh;  // "": as the command says, or none; "auto": the first that fits (estimate)
  bool json = false;
  bool only_dump = false;
  std::string prices;
  int64_t samples = 1281167;
  const CLI::App* given = nullptr;  // the parsed line, to see which flags it has
};

// The number of steps that is priced when the samples of a step are not known.
constexpr int64_t kStepsOfCommand = 1000;
// One slice of each generation, each with one host.
const std::vector<std::string> kOneHost = {"v2-8",  "v3-8",  "v4-8",   "v5litepod-8",
                                           "v5p-8", "v6e-8", "tpu7x-8"};

std::vector<estimate::TpuSlice> slices_of(const Flags& flags) {
  std::vector<std::string> names;
  for (const std::string& name : flags.slices) {
    if (name == "all")
      names.insert(names.end(), kOneHost.begin(), kOneHost.end());
    else
      names.push_back(name);
  }
  std::vector<estimate::TpuSlice> slices;
  for (const std::string& name : names) slices.push_back(value_or_usage(estimate::find_slice(name)));
  return slices;
}

bool mesh_is_searched(const Flags& flags) { return flags.mesh == "auto"; }

// Returns the mesh of --mesh over a slice; empty without one. Throws Usage for one that does not fit it.
Mesh mesh_over(const Flags& flags, const estimate::TpuSlice& slice) {
  if (flags.mesh.empty() || mesh_is_searched(flags)) return {};
  try {
    return Mesh::parse(flags.mesh).over(slice.devices);
  } catch (const Error& error) {
    throw Usage(base::str("--mesh over ", slice.name, ", which has ", base::counted(slice.devices, "device"),
                          ": ", error.what()));
  }
}

void warn_of_axes_between(const Mesh& mesh, const estimate::TpuSlice& slice) {
  std::vector<int64_t> slice_of;
  for (int64_t i = 0; i < slice.devices; ++i) slice_of.push_back(i / (slice.devices / slice.slices));
  if (const std::string apart = axes_between_slices(mesh, slice_of); !apart.empty()) base::warn(apart);
}

// Throws Usage for a mesh that cannot lie over the slices, before the first is compiled for.
void check_mesh(const Flags& flags) {
  for (const estimate::TpuSlice& slice : slices_of(flags))
    if (slice.slices > 1 && !flags.cache.empty())
      throw Usage(base::str("--cache keeps the programs of one slice, and ", slice.name,
                            " has several: leave out --cache"));
  if (flags.mesh.empty()) return;
  if (!flags.program.empty())
    throw Usage("--mesh is for models and commands: the text of --program has its mesh, or none");
  for (const estimate::TpuSlice& slice : slices_of(flags)) {
    if (slice.plugin != "tpu")
      throw Usage(base::str("--mesh is for TPU slices, and ", slice.name,
                            " is not a TPU slice: leave out --mesh, or name a slice such as v3-8"));
    warn_of_axes_between(mesh_over(flags, slice), slice);
  }
}

// Throws Usage for two programs, for an unknown model, and for a cache without a command.
void check_program(const Flags& flags) {
  if (!flags.program.empty() && !flags.command.empty())
    throw Usage("--program and a command after -- are two programs: give one");
  if (!flags.cache.empty() && flags.command.empty())
    throw Usage(
        "--cache keeps the programs of a run, so it needs the run's command: sluice compile --topology v3-32 "
        "--cache FOLDER -- sluice train …");
  const char* other = !flags.program.empty()   ? "--program"
                      : !flags.command.empty() ? "a command after --"
                                               : nullptr;
  if (other == nullptr) {
    const auto names = bench::case_names();
    if (std::find(names.begin(), names.end(), flags.recipe.model) == names.end()) {
      const std::string near = base::nearest(flags.recipe.model, names);
      throw Usage(base::str("there is no model '", flags.recipe.model, "'",
                            near.empty() ? "." : base::str("; did you mean ", near, "?"),
                            " Known: ", base::join(names, ", ")));
    }
    return;
  }
  for (const char* flag : {"--model", "--image-size", "--length", "--precision", "--recompute"})
    if (const auto* option = flags.given->get_option_no_throw(flag); option != nullptr && option->count() > 0)
      throw Usage(base::str(flag, " is for the models that sluice has; ", other,
                            " is a program of its own: give one"));
}

// Reads a file of StableHLO, as text or as MLIR's bytecode.
std::string read_program(const std::string& path) {
  std::string text = base::value_or_throw(base::read_file(path));
  if (text.find("@main") == std::string::npos && !base::starts_with(text, "ML\xefR"))
    throw Usage(base::str(path, " is not a StableHLO program",
                          text.empty() ? ": it is empty" : ": it has no function @main",
                          "; SLUICE_DUMP=FOLDER writes such files"));
  return text;
}

// Returns the program: a file, or the model's training step, recorded once for each batch, replica count and
// kind of device. `mesh`: in place of --mesh.
estimate::StepSource source_of(const Flags& flags, const Mesh& mesh = {}) {
  if (!flags.program.empty()) {
    if (flags.options.max_batch) throw Usage("--program has one batch size: leave out --max-batch");
    const estimate::StepText file{read_program(flags.program), true};
    return [file](int64_t, const estimate::TpuSlice&) { return file; };
  }
  using Key = std::tuple<int64_t, int, std::string>;
  auto texts = std::make_shared<std::map<Key, estimate::StepText>>();
  return [texts, flags, mesh](int64_t batch, const estimate::TpuSlice& slice) {
    const Recorded devices{slice.devices, std::string(estimate::device_kind_of(*slice.generation)),
                           mesh.empty() ? mesh_over(flags, slice) : mesh};
    const Key key{batch, devices.replicas, devices.kind};
    const auto found = texts->find(key);
    if (found != texts->end()) return found->second;
    estimate::StepText step = flags.command.empty()
                                  ? step_program(flags.recipe, batch, devices)
                                  : step_of_command(flags.command, devices, flags.options.deadline_seconds);
    if (!flags.dump.empty()) base::value_or_throw(base::write_file_atomically(flags.dump, step.text));
    return (*texts)[key] = std::move(step);
  };
}

std::string what_of(const Flags& flags) {
  if (!flags.program.empty()) return flags.program;
  if (!flags.command.empty()) return base::join(flags.command, " ");
  const int64_t side = image_size_of(flags.recipe);
  const bench::Case bench = bench::find_case(flags.recipe.model, sizes_of(flags.recipe));
  const std::string size = bench.images      ? base::str(" at ", side, "×", side)
                           : bench.of_tokens ? base::str(" at ", flags.recipe.length, " tokens")
                                             : std::string();
  return base::str(flags.recipe.model, size, ", batch ", flags.options.batch, " a device, ",
                   train::name_of(flags.precision), flags.recipe.recompute ? ", recomputed" : "",
                   flags.mesh.empty() ? "" : base::str(", over ", flags.mesh));
}

// The user's own program has its own batch size, which is not known here.
void leave_batch_to_command(Flags& flags) {
  if (flags.command.empty()) return;
  flags.options.max_batch = false;
  flags.options.batch = 0;
}

// Completes the flags, and returns the program that they name.
estimate::StepSource chosen_program(Flags& flags) {
  check_program(flags);
  check_mesh(flags);
  leave_batch_to_command(flags);
  flags.recipe.bf16 = flags.precision == train::Precision::kBf16;
  if (mesh_is_searched(flags)) flags.options.max_batch = false;
  return source_of(flags);
}

std::vector<estimate::SliceResult> compile_all(Flags& flags) {
  const estimate::StepSource source = chosen_program(flags);
  flags.options.worker = {std::filesystem::read_symlink("/proc/self/exe").string(), "compile-worker"};
  const auto over = [&](const Mesh& mesh) { return source_of(flags, mesh); };
  std::vector<estimate::SliceResult> results;
  for (const estimate::TpuSlice& slice : slices_of(flags))
    results.push_back(base::value_or_throw(mesh_is_searched(flags)
                                               ? estimate::compile_over_a_mesh(slice, over, flags.options)
                                               : estimate::compile_for_slice(slice, source, flags.options)));
  return results;
}

// Prints the errors of the slices that failed, and returns the exit status; other slices keep their results.
int status_of(const std::vector<estimate::SliceResult>& results) {
  int status = 0;
  for (const estimate::SliceResult& result : results) {
    if (result.error.empty()) continue;
    std::fprintf(stderr, "sluice: %s\n", result.error.c_str());
    status = 1;
  }
  return status;
}

constexpr const char* kMeshHelp =
    "The devices of a slice share one model: fsdp=8, or data=2,fsdp=-1; in place of the mesh of a command";
constexpr const char* kMeshOrAutoHelp =
    "The devices of a slice share one model: fsdp=8, or data=2,fsdp=-1; in place of the mesh of a command; "
    "auto: the smallest fsdp that fits, with the rest as data";

void add_common_flags(CLI::App& app, Flags& flags, const char* slices, const char* mesh_help,
                      const char* others = "") {
  flags.given = &app;
  app.add_option(slices, flags.slices,
                 base::str("TPU slices by their names, with commas: v3-32, v4-8, v5litepod-16, v6e-8, "
                           "tpu7x-8, …; all: one host of each generation; 2*v5p-32: one program for two",
                           others))
      ->delimiter(',')
      ->required();
  app.add_option("--mesh", flags.mesh, mesh_help);
  app.add_option("--model", flags.recipe.model, "A model of `sluice bench step` or `sluice train`");
  app.add_option("--batch-size", flags.options.batch, "Samples on each device")->check(kAboveZero);
  app.add_option("--image-size", flags.recipe.image_size,
                 "Side of the images in pixels; 0: 224 for ResNets, 32 for models of small images");
  app.add_option("--length", flags.recipe.length, "Tokens in a row, of language models")->check(kAboveZero);
  add_flags(app, {{"Options", "--precision", train::choice("--precision", flags.precision), "",
                   "Compute the forward pass in this type"}});
  app.add_flag(
      "--recompute", flags.recipe.recompute,
      "Compute the layers of a transformer again in the backward pass instead of keeping their values");
  app.add_option("--batch-multiple", flags.options.multiple, "The largest batch is a multiple of this")
      ->check(kAboveZero);
  app.add_option("--deadline", flags.options.deadline_seconds, "Seconds after which one compile is given up")
      ->check(kAboveZero);
  app.add_option("--largest", flags.options.largest, "How many tensors to list when a program does not fit");
  app.add_flag("--json", flags.json, "As one JSON object");
}

// Compiles with `--cache`: into the folder, or into one of this machine whose entries are uploaded.
std::vector<estimate::SliceResult> compile_into_cache(Flags& flags) {
  for (const estimate::TpuSlice& slice : slices_of(flags))
    if (slice.plugin != "tpu")
      throw Usage(base::str("--cache is for TPU slices, and ", slice.name,
                            " is not a TPU slice: a GPU's programs depend on the machine that runs them"));
  if (!pjrt::is_remote_cache(flags.cache)) {
    flags.options.cache = base::expand_home(flags.cache);
    return compile_all(flags);
  }
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  flags.options.cache = folder.path("programs");
  auto results = compile_all(flags);
  for (const estimate::SliceResult& result : results)
    for (const std::string& name : result.cached)
      base::value_or_throw(sessions::store_program(base::join_path(flags.options.cache, name),
                                                   base::join_path(flags.cache, name), /*replace=*/true));
  return results;
}

void print_cached(const Flags& flags, const std::vector<estimate::SliceResult>& results) {
  for (const estimate::SliceResult& result : results)
    if (!result.cached.empty())
      std::printf("\n%s: %zu programs are in %s. On such a slice, set SLUICE_CACHE_DIR=%s.\n",
                  result.slice.name.c_str(), result.cached.size(), flags.cache.c_str(), flags.cache.c_str());
}

// Writes the program that the slice's devices would run to --dump. This needs no compiler.
int only_dump(Flags& flags) {
  const auto slices = slices_of(flags);
  if (flags.dump.empty() || slices.size() != 1)
    throw Usage("--no-compile only writes the program of one slice: name one, and a file with --dump");
  chosen_program(flags)(flags.options.batch, slices.front());
  return 0;
}

int compile(Flags& flags) {
  if (mesh_is_searched(flags))
    throw Usage("--mesh auto is for `sluice estimate`, which compares meshes: give a mesh, such as fsdp=8");
  if (flags.only_dump) return only_dump(flags);
  if (flags.options.max_batch && !flags.command.empty())
    throw Usage("--max-batch is for the models that sluice has: a command has its own batch size");
  const auto results = flags.cache.empty() ? compile_all(flags) : compile_into_cache(flags);
  if (!flags.json) {
    estimate::print_compiled(what_of(flags), results);
    print_cached(flags, results);
    return status_of(results);
  }
  nlohmann::json list = nlohmann::json::array();
  for (const estimate::SliceResult& result : results) list.push_back(estimate::compiled_json(result));
  std::printf("%s\n",
              nlohmann::json{{"program", what_of(flags)}, {"slices", std::move(list)}}.dump(2).c_str());
  return status_of(results);
}

int estimate(Flags& flags) {
  for (const estimate::TpuSlice& slice : slices_of(flags))
    if (slice.plugin != "tpu")
      throw Usage(base::str("an estimate needs a TPU slice, and ", slice.name,
                            " is a GPU: its compiler reports no FLOPs and bytes, and it has no list price; "
                            "`sluice compile --topology ",
                            slice.name, "` shows what fits"));
  estimate::EstimateOptions options{estimate::list_prices(), flags.samples, 0};
  if (!flags.command.empty()) options.steps = kStepsOfCommand;
  if (!flags.prices.empty()) options.prices = base::value_or_throw(estimate::read_prices(flags.prices));
  const auto results = compile_all(flags);
  if (!flags.json) {
    estimate::print_estimate(what_of(flags), results, options);
    return status_of(results);
  }
  nlohmann::json list = nlohmann::json::array();
  for (const estimate::SliceResult& result : results)
    list.push_back(estimate::estimate_json(result, options));
  std::printf("%s\n", nlohmann::json{{"program", what_of(flags)},
                                     {"samples", options.samples},
                                     {"prices", options.prices.date},
                                     {"slices", std::move(list)}}
                          .dump(2)
                          .c_str());
  return status_of(results);
}

}  // namespace

Verb compile_verb(std::vector<std::string> command) {
  auto flags = std::make_shared<Flags>();
  flags->command = std::move(command);
  return {
      .name = "compile",
      .help = "Compile a training step for TPU slices that are not here",
      .footer =
          "\n"
          "A program of your own: sluice compile --topology v3-32 -- PROGRAM ARGUMENTS… compiles its "
          "second step. With --cache gs://bucket/programs the slice compiles none of its training steps "
          "if SLUICE_CACHE_DIR=gs://bucket/programs is set there.",
      .add_flags =
          [flags](CLI::App& app) {
            add_common_flags(app, *flags, "--topology", kMeshHelp,
                             "; also GPUs of one host: a100, h100, h200-8, …");
            app.add_flag("--max-batch", flags->options.max_batch, "Also find the largest batch that fits");
            app.add_option("--program", flags->program,
                           "A file of StableHLO (SLUICE_DUMP writes them) instead of a model")
                ->check(CLI::ExistingFile);
            app.add_option("--dump", flags->dump, "Write the program's StableHLO to this file");
            app.add_flag("--no-compile", flags->only_dump,
                         "Only write the file of --dump, which needs no libtpu");
            app.add_option("--cache", flags->cache,
                           "Keep the compiled programs of a command in this folder or gs://bucket/folder");
          },
      .run = [flags] { return compile(*flags); }};
}

Verb estimate_verb(std::vector<std::string> command) {
  auto flags = std::make_shared<Flags>();
  flags->options.max_batch = true;
  flags->command = std::move(command);
  return {.name = "estimate",
          .help = "Estimate what fits on TPU slices, how fast a step can be at most, and what it costs",
          .footer =
              "\n"
              "A program of your own: sluice estimate --slices v3-32 -- PROGRAM ARGUMENTS… records its "
              "second step; SLUICE_ESTIMATE=v3-32 PROGRAM ARGUMENTS… does the same. Nothing runs.",
          .add_flags =
              [flags](CLI::App& app) {
                add_common_flags(app, *flags, "--slices", kMeshOrAutoHelp);
                app.add_flag("--max-batch,!--no-max-batch", flags->options.max_batch,
                             "Find the largest batch that fits");
                app.add_option("--samples", flags->samples, "Samples of an epoch (ImageNet's)")
                    ->check(kAboveZero);
                app.add_option("--prices", flags->prices,
                               "A TOML file of prices instead of the list: docs/compile.md")
                    ->check(CLI::ExistingFile);
              },
          .run = [flags] { return estimate(*flags); }};
}

Verb compile_worker_verb() {
  auto paths = std::make_shared<std::pair<std::string, std::string>>();
  return {.name = "compile-worker",
          .help = "",
          .add_flags =
              [paths](CLI::App& app) {
                app.add_option("REQUEST", paths->first)->required();
                app.add_option("REPORT", paths->second)->required();
              },
          .run = [paths] { return estimate::run_ahead_worker(paths->first, paths->second); },
          .hidden = true};
}

}  // namespace sluice::cli
