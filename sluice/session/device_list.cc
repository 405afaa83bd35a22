#include "sluice/session/device_list.h"

#include <algorithm>
#include <charconv>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"

namespace sluice::sessions {
namespace {

int whole_number(const std::string& what, std::string_view text, int least) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least)
    throw_error(Code::kInvalidArgument,
                base::str(what, ": expected ",
                          least > 0 ? "a number of devices above 0, all, or a list of them"
                                    : "the numbers of devices",
                          ", such as ", least > 0 ? "8 or [5]" : "5 or 0,1,4", ", found \"", text, "\""));
  return value;
}

}  // namespace

std::vector<int> parse_device_ids(const std::string& what, const std::string& text) {
  std::string_view list = base::trim(text);
  if (base::starts_with(list, "[") && base::ends_with(list, "]")) list = list.substr(1, list.size() - 2);
  std::vector<int> ids;
  for (const std::string& part : base::split(list, ',')) {
    const std::string_view number = base::trim(part);
    if (number.empty()) continue;
    ids.push_back(whole_number(what, number, 0));
    if (std::count(ids.begin(), ids.end(), ids.back()) > 1)
      throw_error(Code::kInvalidArgument, base::str(what, " names device ", ids.back(), " twice"));
  }
  return ids;
}

DeviceList parse_devices(const std::string& what, const std::string& text) {
  const std::string_view wanted = base::trim(text);
  if (wanted.empty() || wanted == "all") return {};
  DeviceList list;
  if (wanted.find_first_of("[,") == std::string_view::npos) {
    list.count = whole_number(what, wanted, 1);
    return list;
  }
  list.ids = parse_device_ids(what, text);
  list.count = static_cast<int>(list.ids.size());
  if (list.ids.empty())
    throw_error(Code::kInvalidArgument, base::str(what, ": the list of devices is empty"));
  return list;
}

}  // namespace sluice::sessions
