// The lists of windows' arguments: strides, paddings, dilations, sizes.
#pragma once

#include <string_view>

#include "sluice/base/text/join.h"
#include "sluice/ops/common.h"

namespace sluice::ops {

// Returns a list argument with `spatial` numbers; a single number is used for all dimensions.
inline Dims expand_list(Emit& e, std::string_view name, int64_t spatial) {
  Dims list = e.ints(name);
  if (list.size() == 1) list.assign(static_cast<size_t>(spatial), list[0]);
  e.check(static_cast<int64_t>(list.size()) == spatial,
          base::str("expected ", spatial, " numbers for '", name, "', found ", list.size()));
  return list;
}

}  // namespace sluice::ops
