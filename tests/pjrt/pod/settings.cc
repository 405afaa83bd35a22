#include "tests/pjrt/pod/settings.h"

#include <charconv>
#include <cstdlib>

#include "sluice/base/environment.h"

namespace emulated_pod {
namespace {

using sluice::base::environment;

Status read_number(const char* name, int64_t least, int64_t most, auto& value) {
  SLUICE_TRY(const auto found, environment_number(name, least, most));
  if (found) value = static_cast<std::remove_reference_t<decltype(value)>>(*found);
  return {};
}

Status read_common(Settings& settings) {
  if (const auto platform = environment("EMULATED_POD_PLATFORM")) settings.platform = *platform;
  if (settings.platform != "tpu" && settings.platform != "cuda") {
    return fail(Code::kInvalidArgument, "EMULATED_POD_PLATFORM: expected tpu or cuda, found '",
                settings.platform, "'");
  }
  settings.directory = environment("EMULATED_POD_DIR").value_or("");
  SLUICE_OK(read_number("EMULATED_POD_DEVICES", 1, 1024, settings.devices));
  SLUICE_OK(read_number("EMULATED_POD_MEMORY", 0, int64_t{1} << 50, settings.memory));
  return read_number("EMULATED_POD_TIMEOUT", 1, 86400, settings.timeout);
}

// Makes the launcher and the plugin disagree, for tests of that.
Status read_overrides(Settings& settings) {
  SLUICE_OK(read_number("EMULATED_POD_PROCESSES", 1, 1024, settings.workers));
  return read_number("EMULATED_POD_PROCESS_INDEX", 0, 1023, settings.worker);
}

Status check_place(const Settings& settings) {
  if (settings.worker >= settings.workers) {
    return fail(Code::kInvalidArgument, "the emulated pod has ", settings.workers,
                " processes, this one has index ", settings.worker, ": expected 0 to ", settings.workers - 1);
  }
  if (settings.workers > 1 && settings.directory.empty()) {
    return fail(Code::kFailedPrecondition, "an emulated pod of ", settings.workers,
                " processes needs a folder where they meet: set EMULATED_POD_DIR, the same in all of them");
  }
  return {};
}

}  // namespace

Result<std::optional<int64_t>> environment_number(const char* name, int64_t least, int64_t most) {
  const auto text = environment(name);
  if (!text) return std::optional<int64_t>();
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < least || value > most) {
    return fail(Code::kInvalidArgument, name, ": expected a whole number from ", least, " to ", most,
                ", found '", *text, "'");
  }
  return std::optional<int64_t>(value);
}

Result<Settings> read_settings(const c::PJRT_Client_Create_Args& args) {
  Settings settings;
  SLUICE_OK(read_common(settings));
  if (settings.platform == "tpu") {
    SLUICE_OK(check_tpu_options(args));
    SLUICE_OK(read_tpu(settings));
    SLUICE_OK(read_overrides(settings));
  } else {
    SLUICE_OK(read_cuda(args, settings));
    SLUICE_OK(read_overrides(settings));
    SLUICE_OK(meet_over_store(args, settings));
  }
  SLUICE_OK(check_place(settings));
  return settings;
}

}  // namespace emulated_pod
