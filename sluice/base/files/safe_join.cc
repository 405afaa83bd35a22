#include "sluice/base/files/safe_join.h"

#include <algorithm>

#include "sluice/base/files/file.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/strings.h"

namespace sluice::base {
namespace {

bool is_name(std::string_view part) {
  return !part.empty() && part != "." && part != ".." &&
         std::none_of(part.begin(), part.end(), [](char c) { return static_cast<unsigned char>(c) < 32; });
}

}  // namespace

Result<std::string> safe_join(std::string_view folder, std::string_view name) {
  const auto parts = split(name, '/');
  if (name.empty() ||
      !std::all_of(parts.begin(), parts.end(), [](const std::string& part) { return is_name(part); }))
    return fail(Code::kInvalidArgument, "the name '", printable(name.substr(0, 200)), "' does not lie below ",
                folder, ": expected parts between slashes, none of them empty, '.' or '..'");
  return join_path(folder, name);
}

}  // namespace sluice::base
