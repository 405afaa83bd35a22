#include "tests/train/event_points.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>

#include "sluice/base/files/file.h"
#include "sluice/base/text/strings.h"

namespace sluice::train::test {
namespace {

std::uint64_t varint(std::string_view bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (int shift = 0; at < bytes.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    value |= static_cast<std::uint64_t>(byte & 127) << shift;
    if ((byte & 128) == 0) break;
  }
  return value;
}

// Calls with each field's number, its bytes (of lengths and fixed sizes) and its number (of varints).
void fields(
    std::string_view message,
    const std::function<void(std::uint64_t field, std::string_view bytes, std::uint64_t number)>& visit) {
  for (std::size_t at = 0; at < message.size();) {
    const std::uint64_t key = varint(message, at);
    std::uint64_t number = 0;
    std::size_t length = 0;
    switch (key & 7) {
      case 0:
        number = varint(message, at);
        break;
      case 1:
        length = 8;
        break;
      case 2:
        length = static_cast<std::size_t>(varint(message, at));
        break;
      default:
        length = 4;
        break;
    }
    visit(key >> 3, message.substr(at, length), number);
    at += length;
  }
}

struct Event {
  std::int64_t step = 0;
  bool starts = false;
  std::vector<std::pair<std::string, float>> values;
};

Event event_of(std::string_view bytes) {
  Event event;
  fields(bytes, [&](std::uint64_t field, std::string_view part, std::uint64_t number) {
    if (field == 2) event.step = static_cast<std::int64_t>(number);
    if (field == 7) {  // session_log: status = 1, START = 1
      fields(part, [&](std::uint64_t of_log, std::string_view, std::uint64_t status) {
        event.starts = event.starts || (of_log == 1 && status == 1);
      });
    }
    if (field != 5) return;
    fields(part, [&](std::uint64_t, std::string_view value, std::uint64_t) {
      std::string tag;
      float number_of_value = 0;
      bool is_scalar = false;
      fields(value, [&](std::uint64_t of_value, std::string_view inner, std::uint64_t) {
        if (of_value == 1) tag = inner;
        if (of_value != 2) return;
        is_scalar = true;
        std::memcpy(&number_of_value, inner.data(), sizeof number_of_value);
      });
      if (is_scalar) event.values.emplace_back(tag, number_of_value);
    });
  });
  return event;
}

}  // namespace

std::map<std::string, Points> curves_in(const std::string& folder) {
  std::map<std::string, Points> curves;
  auto names = base::value_or_throw(base::list_directory(folder));
  std::sort(names.begin(), names.end());
  bool seen_start = false;
  for (const std::string& name : names) {
    if (!base::starts_with(name, "events.out.tfevents.")) continue;
    const std::string bytes = base::value_or_throw(base::read_file(base::join_path(folder, name)));
    std::uint64_t length = 0;
    for (std::size_t at = 0; at + 16 <= bytes.size(); at += 16 + length) {
      std::memcpy(&length, &bytes[at], sizeof length);
      if (at + 16 + length > bytes.size()) break;  // cut off
      const Event event = event_of(std::string_view(bytes).substr(at + 12, length));
      if (event.starts && seen_start)
        for (auto& [tag, points] : curves)
          std::erase_if(points, [&](const auto& point) { return point.first >= event.step; });
      seen_start = seen_start || event.starts;
      for (const auto& [tag, value] : event.values) curves[tag].emplace_back(event.step, value);
    }
  }
  return curves;
}

}  // namespace sluice::train::test
