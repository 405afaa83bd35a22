#include "sluice/provision/remote/workers.h"
#include "sluice/base/text/join.h"

#include <charconv>
#include <numeric>
#include <optional>
#include <set>

#include "sluice/base/text/strings.h"

namespace sluice::provision {
namespace {

std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [at, problem] = std::from_chars(text.data(), end, number);
  if (text.empty() || text.front() == '-' || problem != std::errc() || at != end) return std::nullopt;
  return number;
}

}  // namespace

base::Result<std::vector<int>> parse_workers(std::string_view text, int count) {
  std::vector<int> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  if (text == "all") return all;
  std::set<int> chosen;
  for (const std::string& part : base::split(text, ',')) {
    const std::string_view range = base::trim(part);
    const size_t dash = range.find('-');
    const auto first = number_of(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number_of(range.substr(dash + 1));
    if (!first || !last || *last < *first)
      return base::fail(Code::kInvalidArgument, "--worker ", text, ": \"", range,
                        "\" is neither a number nor a range; expected all, 0 or 0,2-5");
    if (*last >= count)
      return base::fail(Code::kInvalidArgument, "--worker ", text, ": there is no worker ", *last, "; ",
                        count == 1 ? std::string("the slice has worker 0 alone")
                                   : base::str("the slice has workers 0 to ", count - 1));
    for (int worker = *first; worker <= *last; ++worker) chosen.insert(worker);
  }
  return std::vector<int>(chosen.begin(), chosen.end());
}

}  // namespace sluice::provision
