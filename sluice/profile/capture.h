// Captures a profile: the spans of this process and, if the plugin can, its devices' work.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/base/span.h"
#include "sluice/pjrt/plugin.h"
#include "sluice/pjrt/profiler.h"
#include "sluice/profile/kernel_calls.h"
#include "sluice/profile/words.h"

namespace sluice::profile {

// The contents of a profile, before anything is written.
struct Captured {
  base::SpanRecording recording;
  std::string device;  // the plugin's XSpace, or empty
  KernelCalls kernels;
};

// A process can capture one profile at a time. Threads: one.
class Capture {
 public:
  // `plugin` may be null. kUnavailable while another profile is captured.
  static base::Result<Capture> start(std::shared_ptr<const pjrt::Plugin> plugin);
  Capture(Capture&& other) noexcept
      : profiler_(std::move(other.profiler_)), running_(std::exchange(other.running_, false)) {}
  Capture& operator=(Capture&&) = delete;
  ~Capture();
  // Errors of the plugin's profiler are only a warning: the host's part is still returned.
  Captured stop();

 private:
  Capture() = default;
  std::optional<pjrt::Profiler> profiler_;
  bool running_ = true;
};

// Returns the name of a run's folder for a profile that begins now, in TensorBoard's form:
// "2026_11_25_10_40_59".
std::string run_name(double wall_seconds);

inline constexpr std::array kFileEndings = {"xplane.pb", "trace.json.gz", "layers.json", "txt"};

// One of the files of a profile.
struct ProfileFile {
  std::string ending;  // "xplane.pb", "trace.json.gz", "txt"; "layers.json" if single layers are known
  std::string bytes;
};
base::Result<std::vector<ProfileFile>> files_of(const Captured& captured, const About& about);

// Returns the beginning of a process's file names: the host's name, and with several processes "-PROCESS".
std::string file_name(const std::string& host, int process, int processes);

// Returns FOLDER/plugins/profile/RUN, where the tools look for a profile.
std::string run_folder(const std::string& folder, const std::string& run);

// Writes a file of this machine, or an object of a bucket (gs://bucket/logs/file), completely or not at all.
// Creates folders of this machine.
base::Status save(const std::string& bytes, const std::string& place);

// Writes files_of() to run_folder() as NAME.xplane.pb and so on, with save(). Returns the folder.
base::Result<std::string> write(const Captured& captured, const About& about, const std::string& folder,
                                const std::string& run);

}  // namespace sluice::profile
