#include "sluice/profile/xspace.h"

#include <cstring>
#include <map>
#include <vector>

#include "sluice/base/formats/proto_writer.h"
#include "sluice/profile/host_lines.h"

namespace sluice::profile {
namespace {

using base::ProtoWriter;

enum Stat : int64_t { kRoot = 1, kStepNum, kBatch, kBytes };

// Writes an XStat: metadata_id = 1, int64_value = 4.
std::string stat(Stat which, int64_t value) {
  return ProtoWriter().number(1, which).number(4, value).bytes();
}

// Writes a map's entry: key = 1, value = 2; XEventMetadata and XStatMetadata: id = 1, name = 2.
std::string metadata(int64_t id, std::string_view name) {
  return ProtoWriter().number(1, id).bytes(2, ProtoWriter().number(1, id).bytes(2, name).bytes()).bytes();
}

// Writes an XEvent: metadata_id = 1, offset_ps = 2, duration_ps = 3, stats = 4.
std::string event(const base::SpanRecord& span, int64_t metadata_id, int64_t origin) {
  constexpr int64_t kPicoseconds = 1000;  // in a nanosecond
  ProtoWriter out;
  out.number(1, metadata_id);
  out.number(2, (span.begin - origin) * kPicoseconds);
  out.number(3, (span.end - span.begin) * kPicoseconds);
  if (std::strcmp(span.name, kStepSpan) == 0) out.bytes(4, stat(kRoot, 1));
  if (span.numbers.step >= 0) out.bytes(4, stat(kStepNum, span.numbers.step));
  if (span.numbers.batch >= 0) out.bytes(4, stat(kBatch, span.numbers.batch));
  if (span.numbers.bytes >= 0) out.bytes(4, stat(kBytes, span.numbers.bytes));
  return out.bytes();
}

}  // namespace

std::string xspace_of(const base::SpanRecording& recording, const std::string& host) {
  // XPlane: id = 1, name = 2, lines = 3, event_metadata = 4, stat_metadata = 5.
  ProtoWriter plane;
  plane.number(1, 1).bytes(2, "/host:CPU");
  std::map<std::string, int64_t> names;
  for (const base::SpanLine& line : recording.lines) {
    std::vector<base::SpanRecord> spans = line.spans;
    sort_spans(spans);
    // XLine: id = 1, name = 2, timestamp_ns = 3, events = 4, display_name = 11.
    ProtoWriter out;
    out.number(1, line.is_thread ? line.id : -line.id);
    out.bytes(2, line.name);
    out.number(3, recording.begin + recording.epoch);
    for (const base::SpanRecord& span : spans) {
      const int64_t id = names.emplace(span.name, static_cast<int64_t>(names.size()) + 1).first->second;
      out.bytes(4, event(span, id, recording.begin));
    }
    plane.bytes(3, out.bytes());
  }
  for (const auto& [name, id] : names) plane.bytes(4, metadata(id, name));
  plane.bytes(5, metadata(kRoot, "_r")).bytes(5, metadata(kStepNum, "step_num"));
  plane.bytes(5, metadata(kBatch, "batch")).bytes(5, metadata(kBytes, "bytes"));
  return ProtoWriter().bytes(1, plane.bytes()).bytes(4, host).bytes();  // XSpace: planes = 1, hostnames = 4
}

}  // namespace sluice::profile
