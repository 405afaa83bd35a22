// The messages of TensorFlow's ProfilerService (tsl/profiler/protobuf/profiler_service.proto), as far as a
// training and its clients need them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/profile/capture.h"

namespace sluice::profile {

inline constexpr char kProfileMethod[] = "/tensorflow.ProfilerService/Profile",
                      kTerminateMethod[] = "/tensorflow.ProfilerService/Terminate",
                      kMonitorMethod[] = "/tensorflow.ProfilerService/Monitor";
// Sluice's own method: an empty request; the answer is the process's status as JSON
// (monitor/process_status.h).
inline constexpr char kStatusMethod[] = "/sluice.Training/Status";

// Steps [first, end), counted from 1.
struct StepRange {
  int64_t first = 0, end = 0;
};

struct ProfileRequest {
  int64_t duration_ms = 0;
  int64_t start_ns = 0;            // since 1970; 0: now
  std::optional<StepRange> steps;  // instead of the duration
  std::string session;
  bool emit_xspace = false;  // the answer has the XSpace in a separate field
};
// The steps are entries of the options' advanced_configuration, "sluice_first_step" and "sluice_end_step".
std::string text_of(const ProfileRequest& request);
base::Result<ProfileRequest> parse_profile_request(std::string_view message);
// Returns the present moment on the clock of ProfileRequest::start_ns.
int64_t wall_nanoseconds();

struct ProfileResponse {
  std::vector<ProfileFile> files;  // tool_data: the client writes each one as HOST.ENDING
  bool empty = false;
  std::string xspace;  // "": no XSpace
};
std::string text_of(const ProfileResponse& response);
base::Result<ProfileResponse> parse_profile_response(std::string_view message);

struct MonitorRequest {
  int64_t duration_ms = 0;
  bool timestamp = false;
};
base::Result<MonitorRequest> parse_monitor_request(std::string_view message);

// The figures of a training for a monitoring client.
struct Figures {
  int64_t step = 0, epoch = 0;
  double step_ms = 0, rate = 0;                // examples per second; 0: unknown
  std::optional<double> input, trace, device;  // shares of the time, 0 to 1
};
// `text` is for people; the figures are also fields.
std::string monitor_response(const std::string& text, const Figures& figures);

// Returns the session that a TerminateRequest names.
base::Result<std::string> parse_terminate_request(std::string_view message);

}  // namespace sluice::profile
