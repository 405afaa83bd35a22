// The messages of TensorFlow's ProfilerService (tsl/profiler/protobuf/profiler_service.proto), as far as a
// training and those who ask it need them.
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
// Not TensorFlow's: an empty request, and what the process says of itself in JSON (monitor/process_status.h).
inline constexpr char kStatusMethod[] = "/sluice.Training/Status";

// Steps [first, end), counted from 1.
struct StepRange {
  int64_t first = 0, end = 0;
};

struct ProfileRequest {
  int64_t duration_ms = 0;
  int64_t start_ns = 0;            // since 1970; 0: now
  std::optional<StepRange> steps;  // in place of the duration
  std::string session;
  bool emit_xspace = false;  // the answer has the XSpace as a field of its own
};
// The steps are entries of the options' advanced_configuration, "sluice_first_step" and "sluice_end_step".
std::string text_of(const ProfileRequest& request);
base::Result<ProfileRequest> parse_profile_request(std::string_view message);

struct ProfileResponse {
  std::vector<ProfileFile> files;  // tool_data: each is written as HOST.ENDING by whoever asked
  bool empty = false;
  std::string xspace;  // "": none
};
std::string text_of(const ProfileResponse& response);
base::Result<ProfileResponse> parse_profile_response(std::string_view message);

struct MonitorRequest {
  int64_t duration_ms = 0;
  bool timestamp = false;
};
base::Result<MonitorRequest> parse_monitor_request(std::string_view message);

// Of a training, for whoever monitors it.
struct Figures {
  int64_t step = 0, epoch = 0;
  double step_ms = 0, rate = 0;                // examples a second; 0: not known
  std::optional<double> input, trace, device;  // where the time went, parts of 1
};
// `text` for people, the figures as fields.
std::string monitor_response(const std::string& text, const Figures& figures);

// The session that a TerminateRequest names.
base::Result<std::string> parse_terminate_request(std::string_view message);

}  // namespace sluice::profile
