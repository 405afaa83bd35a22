#include "sluice/profile/service/profiler_messages.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "sluice/base/formats/proto_writer.h"
#include "sluice/pjrt/proto_reader.h"

namespace sluice::profile {
namespace {

using base::ProtoWriter;
using pjrt::ProtoReader;

constexpr std::string_view kFirstStep = "sluice_first_step", kEndStep = "sluice_end_step";

int64_t number_of(const ProtoReader& field) {
  return static_cast<int64_t>(
      std::min(field.number(), static_cast<uint64_t>(std::numeric_limits<int64_t>::max())));
}

tl::unexpected<Error> no_message(const char* name) {
  return base::fail(Code::kInvalidArgument, "the request is not a valid ", name);
}

// Returns an entry of the map advanced_configuration = 12: key = 1, value = 2 {int64_value = 3}.
std::string setting(std::string_view key, int64_t value) {
  return ProtoWriter().bytes(1, key).bytes(2, ProtoWriter().number(3, value).bytes()).bytes();
}

struct Setting {
  std::string_view key;
  int64_t value = 0;
};
std::optional<Setting> parse_setting(std::string_view bytes) {
  Setting setting;
  ProtoReader entry(bytes);
  while (entry.next()) {
    if (entry.field() == 1) setting.key = entry.bytes();
    if (entry.field() != 2) continue;
    ProtoReader value(entry.bytes());
    while (value.next())
      if (value.field() == 3) setting.value = number_of(value);
    if (value.broken()) return std::nullopt;
  }
  return entry.broken() ? std::nullopt : std::optional(setting);
}

// Parses ProfileOptions: start_timestamp_ns = 8, duration_ms = 9, advanced_configuration = 12.
bool parse_options(std::string_view bytes, ProfileRequest& request) {
  ProtoReader options(bytes);
  StepRange steps;
  while (options.next()) {
    if (options.field() == 8) request.start_ns = number_of(options);
    if (options.field() == 9 && options.number() > 0) request.duration_ms = number_of(options);
    if (options.field() != 12) continue;
    const auto setting = parse_setting(options.bytes());
    if (!setting) return false;
    if (setting->key == kFirstStep) steps.first = setting->value;
    if (setting->key == kEndStep) steps.end = setting->value;
  }
  if (steps.first != 0 || steps.end != 0) request.steps = steps;
  return !options.broken();
}

}  // namespace

std::string text_of(const ProfileRequest& request) {
  ProtoWriter options;
  if (request.start_ns > 0) options.number(8, request.start_ns);
  if (request.duration_ms > 0) options.number(9, request.duration_ms);
  if (request.steps)
    options.bytes(12, setting(kFirstStep, request.steps->first))
        .bytes(12, setting(kEndStep, request.steps->end));
  ProtoWriter out;
  if (request.duration_ms > 0) out.number(1, request.duration_ms);
  out.bytes(4, options.bytes()).bytes(6, request.session);
  if (request.emit_xspace) out.number(9, 1);
  return out.bytes();
}

int64_t wall_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

base::Result<ProfileRequest> parse_profile_request(std::string_view message) {
  // duration_ms = 1, opts = 4, repository_root = 5, session_id = 6, host_name = 7, emit_xspace = 9
  ProfileRequest request;
  ProtoReader fields(message);
  std::string_view options;
  while (fields.next()) {
    if (fields.field() == 1) request.duration_ms = number_of(fields);
    if (fields.field() == 4) options = fields.bytes();
    if (fields.field() == 6) request.session = fields.bytes();
    if (fields.field() == 9) request.emit_xspace = fields.number() != 0;
  }
  if (fields.broken() || !parse_options(options, request)) return no_message("ProfileRequest");
  return request;
}

std::string text_of(const ProfileResponse& response) {
  // tool_data = 6 {name = 1, data = 2}, empty_trace = 7, xspace = 8
  ProtoWriter out;
  for (const ProfileFile& file : response.files)
    out.bytes(6, ProtoWriter().bytes(1, file.ending).bytes(2, file.bytes).bytes());
  if (response.empty) out.number(7, 1);
  if (!response.xspace.empty()) out.bytes(8, response.xspace);
  return out.bytes();
}

base::Result<ProfileResponse> parse_profile_response(std::string_view message) {
  ProfileResponse response;
  ProtoReader fields(message);
  while (fields.next()) {
    if (fields.field() == 7) response.empty = fields.number() != 0;
    if (fields.field() == 8) response.xspace = fields.bytes();
    if (fields.field() != 6) continue;
    ProtoReader tool(fields.bytes());
    ProfileFile& file = response.files.emplace_back();
    while (tool.next()) {
      if (tool.field() == 1) file.ending = tool.bytes();
      if (tool.field() == 2) file.bytes = tool.bytes();
    }
    if (tool.broken()) return base::fail(Code::kDataLoss, "the answer is not a ProfileResponse");
  }
  if (fields.broken()) return base::fail(Code::kDataLoss, "the answer is not a ProfileResponse");
  return response;
}

base::Result<MonitorRequest> parse_monitor_request(std::string_view message) {
  MonitorRequest request;
  ProtoReader fields(message);
  while (fields.next()) {
    if (fields.field() == 1) request.duration_ms = number_of(fields);
    if (fields.field() == 3) request.timestamp = fields.number() != 0;
  }
  if (fields.broken()) return no_message("MonitorRequest");
  return request;
}

std::string monitor_response(const std::string& text, const Figures& figures) {
  // ProfilerServiceMonitorResult: device_idle_time_percent = 2, step_time_ms_avg = 4, infeed_percent_avg = 7
  ProtoWriter result;
  if (figures.device) result.real(2, 100 * (1 - *figures.device));
  if (figures.step_ms > 0) result.real(4, figures.step_ms);
  if (figures.input) result.real(7, 100 * *figures.input);
  return ProtoWriter().bytes(1, text).bytes(10, result.bytes()).bytes();
}

base::Result<std::string> parse_terminate_request(std::string_view message) {
  std::string session;
  ProtoReader fields(message);
  while (fields.next())
    if (fields.field() == 1) session = fields.bytes();
  if (fields.broken()) return no_message("TerminateRequest");
  return session;
}

}  // namespace sluice::profile
