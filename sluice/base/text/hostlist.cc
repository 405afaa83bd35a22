#include "sluice/base/text/hostlist.h"

#include <arpa/inet.h>

#include <algorithm>
#include <optional>

#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/strings.h"

namespace sluice::base {
namespace {

constexpr size_t kMaxHosts = 100'000;

// Splits at commas outside brackets. Nothing when a bracket is left open or closed twice.
std::optional<std::vector<std::string>> split_outside_brackets(std::string_view list) {
  std::vector<std::string> parts(1);
  bool inside = false;
  for (const char c : list) {
    if (c == '[' || c == ']') {
      if (inside == (c == '[')) return std::nullopt;
      inside = !inside;
    }
    if (c == ',' && !inside) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  if (inside) return std::nullopt;
  return parts;
}

// Expands "01-03,7" to 01 02 03 7.
Result<std::vector<std::string>> expand_ranges(std::string_view ranges) {
  std::vector<std::string> numbers;
  for (const std::string& range : split(ranges, ',')) {
    const size_t dash = range.find('-');
    const std::string first_text = range.substr(0, dash);
    const auto first = number_of<size_t>(first_text);
    const auto last = dash == std::string::npos ? first : number_of<size_t>(range.substr(dash + 1));
    if (!first || !last || *last < *first || *last - *first >= kMaxHosts)
      return fail(Code::kInvalidArgument, "\"", range, "\" in [", ranges,
                  "] is not a range: expected numbers such as 01-03 or 7");
    for (size_t value = *first; value <= *last; ++value) {
      std::string text = std::to_string(value);
      if (text.size() < first_text.size()) text.insert(0, first_text.size() - text.size(), '0');
      numbers.push_back(std::move(text));
    }
  }
  return numbers;
}

// Accepts an address of the link with or without its interface: "fe80::1%eth0".
bool is_ipv6(std::string_view text) {
  in6_addr parsed{};
  return ::inet_pton(AF_INET6, std::string(text.substr(0, text.find('%'))).c_str(), &parsed) == 1;
}

// Expands one name, which may have brackets.
Result<std::vector<std::string>> expand_name(std::string_view name) {
  const size_t open = name.find('[');
  if (open == std::string_view::npos) return std::vector<std::string>{std::string(name)};
  const size_t close = name.find(']');
  if (const auto inside = name.substr(open + 1, close - open - 1); is_ipv6(inside)) {
    if (close + 1 == name.size()) return std::vector<std::string>{str(name.substr(0, open), inside)};
    return fail(Code::kInvalidArgument, "\"", name, "\" has something after the address ", inside,
                ": expected a host without a port");
  }
  SLUICE_TRY(const auto numbers, expand_ranges(name.substr(open + 1, close - open - 1)));
  SLUICE_TRY(const auto endings, expand_name(name.substr(close + 1)));
  if (numbers.size() * endings.size() > kMaxHosts)
    return fail(Code::kInvalidArgument, "more than ", kMaxHosts, " hosts in \"", name, "\"");
  std::vector<std::string> names;
  for (const std::string& number : numbers)
    for (const std::string& ending : endings) names.push_back(str(name.substr(0, open), number, ending));
  return names;
}

}  // namespace

Result<std::vector<std::string>> expand_hostlist(std::string_view list) {
  const auto parts = split_outside_brackets(list);
  if (!parts)
    return fail(Code::kInvalidArgument, "the brackets in \"", list,
                "\" do not match: expected a list such as node[01-03,7],login1");
  std::vector<std::string> hosts;
  for (const std::string& part : *parts) {
    const std::string_view name = trim(part);
    if (name.empty()) return fail(Code::kInvalidArgument, "an empty host name in \"", list, "\"");
    SLUICE_TRY(const auto names, expand_name(name));
    hosts.insert(hosts.end(), names.begin(), names.end());
    if (hosts.size() > kMaxHosts)
      return fail(Code::kInvalidArgument, "more than ", kMaxHosts, " hosts in the list");
  }
  return hosts;
}

std::string host_and_port(std::string_view host, int port) {
  const bool bare_ipv6 = host.find(':') != std::string_view::npos && !host.starts_with('[');
  return bare_ipv6 ? str('[', host, "]:", port) : str(host, ':', port);
}

Result<HostAndPort> split_host_and_port(std::string_view address) {
  constexpr auto kNone = std::string_view::npos;
  size_t end = address.find(':');  // of the host
  std::string_view host = address.substr(0, end);
  if (address.starts_with('[')) {
    end = address.find(']');
    host = address.substr(1, end == kNone ? kNone : end - 1);
    if (end != kNone) ++end;
  } else if (end != kNone && address.find(':', end + 1) != kNone) {
    host = address;
    end = kNone;
  }
  const bool needs_ipv6 = address.starts_with('[') || host.find(':') != kNone;
  const std::string_view rest = end == kNone ? "" : address.substr(end);
  const int port = rest.empty() ? 0 : number_of<int>(rest.substr(1)).value_or(0);
  const bool bad_port = !rest.empty() && (rest.front() != ':' || port < 1 || port > 65535);
  if (host.empty() || bad_port || (needs_ipv6 && !is_ipv6(host)) ||
      (address.starts_with('[') && end == kNone))
    return fail(
        Code::kInvalidArgument, "\"", printable_line(address),
        "\" is not a host: expected HOST or HOST:PORT with a port from 1 to 65535, and brackets around an "
        "IPv6 address that has a port, [fd00::2]:8476");
  return HostAndPort{std::string(host), port};
}

}  // namespace sluice::base
