#include "sluice/train/log/event_points.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "sluice/base/files/file.h"
#include "sluice/base/text/strings.h"
#include "sluice/pjrt/proto_reader.h"
#include "sluice/train/log/event_writer.h"

namespace sluice::train {
namespace event_points_detail {

using pjrt::ProtoReader;

// A record of a file: its step, the curves that get a point, and whether a start of the run begins with it.
struct Event {
  int64_t step = 0;
  bool starts = false;
  std::set<std::string> curves;
};

// Reads a tensorflow.Event: step = 2, summary = 5 (value = 1: tag = 1), session_log = 7 (status = 1, START =
// 1).
Event read_event(std::string_view bytes) {
  Event event;
  for (ProtoReader message(bytes); message.next();) {
    if (message.field() == 2) event.step = static_cast<int64_t>(message.number());
    if (message.field() == 5)
      for (ProtoReader summary(message.bytes()); summary.next();)
        for (ProtoReader value(summary.bytes()); value.next();)
          if (value.field() == 1) event.curves.emplace(value.bytes());
    if (message.field() == 7)
      for (ProtoReader log(message.bytes()); log.next();)
        event.starts = event.starts || (log.field() == 1 && log.number() == 1);
  }
  return event;
}

// Calls `act` with each record of a file, and holds one of them at a time.
template <typename Act>
base::Status each_event(const std::string& path, const Act& act) {
  // A record: the length and its checksum, 12 bytes, the event, and its checksum, 4 bytes.
  constexpr uint64_t kHead = 12, kTail = 4;
  SLUICE_TRY(uint64_t left, base::file_size(path));
  std::ifstream in(path, std::ios::binary);
  std::string bytes;
  while (left >= kHead + kTail) {
    char head[kHead];
    uint64_t length = 0;
    if (!in.read(head, sizeof head)) break;
    std::memcpy(&length, head, sizeof length);
    if (length > left - kHead - kTail) break;  // cut off
    bytes.resize(length + kTail);
    if (!in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) break;
    act(read_event(std::string_view(bytes).substr(0, length)));
    left -= kHead + length + kTail;
  }
  // A file that got shorter since its size was asked for ends here, as one that was cut off does.
  if (!in && !in.eof()) return base::fail_errno(errno, "read", path);
  return {};
}

}  // namespace event_points_detail

base::Result<std::set<std::string>> curves_with_point(const std::string& folder, int64_t step) {
  namespace detail = event_points_detail;
  SLUICE_TRY(auto names, base::list_directory(folder));
  std::sort(names.begin(), names.end());
  std::set<std::string> found;
  for (const std::string& name : names) {
    if (!base::starts_with(name, kEventFile)) continue;
    SLUICE_OK(detail::each_event(base::join_path(folder, name), [&](const detail::Event& event) {
      if (event.starts && event.step <= step) found.clear();
      if (event.step == step) found.insert(event.curves.begin(), event.curves.end());
    }));
  }
  return found;
}

}  // namespace sluice::train
