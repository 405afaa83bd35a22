#include "sluice/base/text/shown_url.h"

#include <algorithm>

#include "sluice/base/text/lower_case.h"

namespace sluice::base {
namespace {

constexpr std::string_view kEnds = " \t\r\n\"'`<>\\";

bool same_letters(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return lower_case(a) == b; });
}

// Returns where the scheme of the address with "://" at `colon` begins; npos for other schemes.
std::size_t scheme_begin(std::string_view text, std::size_t colon) {
  for (const std::string_view scheme : {"https", "http"})
    if (colon >= scheme.size() && same_letters(text.substr(colon - scheme.size(), scheme.size()), scheme))
      return colon - scheme.size();
  return std::string_view::npos;
}

}  // namespace

std::string shown_urls(std::string_view text) {
  std::string shown;
  std::size_t done = 0;
  for (std::size_t colon = text.find("://"); colon != std::string_view::npos;
       colon = text.find("://", colon + 3)) {
    if (colon < done || scheme_begin(text, colon) == std::string_view::npos) continue;
    const std::size_t host = colon + 3, end = std::min(text.find_first_of(kEnds, host), text.size());
    const std::string_view rest = text.substr(host, end - host);
    const std::size_t path = std::min(rest.find_first_of("/?#"), rest.size());
    const std::size_t at = rest.substr(0, path).rfind('@');
    const std::size_t from = at == std::string_view::npos ? 0 : at + 1;
    const std::size_t query = std::min(rest.find('?'), rest.size());
    shown += text.substr(done, host - done);
    shown += rest.substr(from, query - from);
    done = end;
  }
  return shown += text.substr(std::min(done, text.size()));
}

}  // namespace sluice::base
