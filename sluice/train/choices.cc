#include "sluice/train/choices.h"

#include <algorithm>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"

namespace sluice::train {

std::size_t find_choice(const std::string& what, const std::string& text,
                        const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const std::vector<std::string> first(names.begin(), names.end() - 1);
  const std::string near = base::nearest(text, names);
  throw_error(Code::kInvalidArgument,
              base::str(what, " is ", base::join(first, ", "), " or ", names.back(), ", not \"", text, "\"",
                        near.empty() ? std::string() : base::str("; did you mean \"", near, "\"?")));
}

}  // namespace sluice::train
