// Captures one profile of all processes of a training.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "sluice/cli/monitor/profile_targets.h"
#include "sluice/profile/service/profiler_messages.h"

namespace sluice::cli {

struct ProfileWish {
  int64_t steps = 0;                        // the number of coming steps,
  std::optional<profile::StepRange> range;  // or these steps,
  int64_t duration_ms = 0;                  // or this time,
  int64_t start_ns = 0;                     // from this moment (since 1970); 0: soon
};

struct ProfileFiles {
  std::string what;                          // "the steps 1240 to 1242"
  std::map<std::string, std::string> files;  // "host-0.xplane.pb" and its bytes
};

// Asks all processes for the same steps or the same time, and waits for the files. `say` gets a line once it
// is known what is captured; `progress` gets a line to show until the next one. If one process fails, the
// others stop too, and there are no files. Threads: call it from one; it starts its own and joins them.
base::Result<ProfileFiles> capture_profile(ProfileTargets& targets, const ProfileWish& wish,
                                           const std::function<void(const std::string&)>& say,
                                           const std::function<void(const std::string&)>& progress);

// Convert files to lines of JSON, {"file": NAME, "base64": …}, and back, for a `sluice profile` that another
// one asks. A long file takes several lines. kDataLoss for any other line.
std::string lines_of(const std::map<std::string, std::string>& files);
base::Status add_line(std::map<std::string, std::string>& files, const std::string& line);

// The exit status of such a `sluice profile` if the steps have already begun.
inline constexpr int kBehind = 3;

}  // namespace sluice::cli
