// One profile of all processes of a training.
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
  int64_t steps = 0;                        // so many of the steps to come
  std::optional<profile::StepRange> range;  // or these
  int64_t duration_ms = 0;                  // or so long,
  int64_t start_ns = 0;                     // from this moment (since 1970); 0: soon
};

struct ProfileFiles {
  std::string what;                          // "the steps 1240 to 1242"
  std::map<std::string, std::string> files;  // "host-0.xplane.pb" and its bytes
};

// Asks all of them for the same steps or the same time, and waits for the files. `say` gets a line when it is
// known what is taken, `progress` what is to be shown until the next one. Where one process fails, the others
// stop too, and there are no files. Threads: one; it makes others and joins them.
base::Result<ProfileFiles> capture_profile(ProfileTargets& targets, const ProfileWish& wish,
                                           const std::function<void(const std::string&)>& say,
                                           const std::function<void(const std::string&)>& progress);

// For one `sluice profile` that is asked by another: the files as lines of JSON, {"file": NAME, "base64": …},
// a file in several lines if it is long; and back. kDataLoss for a line that is none.
std::string lines_of(const std::map<std::string, std::string>& files);
base::Status add_line(std::map<std::string, std::string>& files, const std::string& line);

// Its exit status for steps that have begun already.
inline constexpr int kBehind = 3;

}  // namespace sluice::cli
