#include "sluice/stablehlo/location.h"

#include <algorithm>
#include <iterator>

#include "sluice/base/text/join.h"

namespace sluice::stablehlo {
namespace {

constexpr Pass kNamed[] = {Pass::kBackward, Pass::kUpdate};

std::string_view first_part(std::string_view path) { return path.substr(0, path.find('/')); }
// Returns the path after its first part.
std::string_view behind(std::string_view path) {
  const size_t slash = path.find('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
}

bool is_pass(std::string_view part) {
  return std::any_of(std::begin(kNamed), std::end(kNamed),
                     [&](Pass pass) { return part == pass_name(pass); });
}

// Returns whether the first part is a parameter's name. If it is the only part, its dots decide.
bool begins_with_parameter(std::string_view text) {
  const std::string_view part = first_part(text);
  if (is_pass(part) || part.find("::") != std::string_view::npos) return false;
  return part.size() < text.size() ||
         (part.find('.') != std::string_view::npos && part.find(' ') == std::string_view::npos);
}

}  // namespace

std::string_view pass_name(Pass pass) {
  return pass == Pass::kForward ? "forward" : pass == Pass::kBackward ? "backward" : "update";
}

std::string location_text(std::string_view parameter, Pass pass, std::string_view operation) {
  std::string text;
  for (const std::string_view part :
       {parameter, pass == Pass::kForward ? std::string_view() : pass_name(pass), operation}) {
    if (part.empty()) continue;
    if (!text.empty()) text += '/';
    text += part;
  }
  return text;
}

Location parse_location(std::string_view text) {
  Location found;
  if (begins_with_parameter(text)) {
    const std::string_view parameter = first_part(text);
    found.layer = parameter.substr(0, parameter.rfind('.'));
    text = behind(text);
  }
  for (const Pass pass : kNamed) {
    if (first_part(text) != pass_name(pass)) continue;
    found.pass = pass;
    text = behind(text);
    break;
  }
  found.operation = text;
  return found;
}

std::string layer_text(std::string_view location) {
  const Location parts = parse_location(location);
  std::string text = parts.layer;
  if (!text.empty() && !parts.operation.empty()) text += ", ";
  text += parts.operation;
  const std::string_view pass = pass_name(parts.pass);
  // Many operations of a backward pass name the pass themselves.
  if (parts.pass != Pass::kForward && parts.operation.find(pass) == std::string::npos)
    text += base::str(" (", pass, ")");
  return text;
}

}  // namespace sluice::stablehlo
