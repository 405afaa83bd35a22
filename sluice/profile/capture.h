// Taking a profile: the spans of this process and, where the plugin can, what its devices did.
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

// What was captured, before anything is written.
struct Captured {
  base::SpanRecording recording;
  std::string device;  // the plugin's XSpace; empty: none
  KernelCalls kernels;
};

// One profile a process at a time. Threads: one.
class Capture {
 public:
  // `plugin` may be null. kUnavailable while another one is taken.
  static base::Result<Capture> start(std::shared_ptr<const pjrt::Plugin> plugin);
  Capture(Capture&& other) noexcept
      : profiler_(std::move(other.profiler_)), running_(std::exchange(other.running_, false)) {}
  Capture& operator=(Capture&&) = delete;
  ~Capture();
  // What goes wrong with the plugin's profiler is said in a warning; the host's part is there.
  Captured stop();

 private:
  Capture() = default;
  std::optional<pjrt::Profiler> profiler_;
  bool running_ = true;
};

// The name of a run's folder for a profile that begins now: "2026_11_25_10_40_59", as TensorBoard shows it.
std::string run_name(double wall_seconds);

inline constexpr std::array kFileEndings = {"xplane.pb", "trace.json.gz", "layers.json", "txt"};

// One of the files of a profile.
struct ProfileFile {
  std::string
      ending;  // "xplane.pb", "trace.json.gz", "txt"; "layers.json" where something is known of single layers
  std::string bytes;
};
base::Result<std::vector<ProfileFile>> files_of(const Captured& captured, const About& about);

// What the names of a process's files begin with: the host's name, and for several processes "-PROCESS".
std::string file_name(const std::string& host, int process, int processes);

// FOLDER/plugins/profile/RUN, where the tools look for a profile.
std::string run_folder(const std::string& folder, const std::string& run);

// A file of this machine, or an object of a bucket (gs://bucket/logs/file): complete or not at all. Folders
// of this machine are made.
base::Status save(const std::string& bytes, const std::string& place);

// Writes files_of() as NAME.xplane.pb and so on to run_folder(), by save(). Returns the folder.
base::Result<std::string> write(const Captured& captured, const About& about, const std::string& folder,
                                const std::string& run);

}  // namespace sluice::profile
