// Filters: conditions that decide which samples of a set are taken.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/data/sample_view.h"
#include "sluice/data/shards/group.h"

namespace sluice::data {

struct Filter {
  std::set<std::string, std::less<>> members;  // those whose bytes `take` reads: extensions in lower case
  std::function<bool(const SampleView&)> take;
  std::string text;           // as a condition is written; for messages
  bool is_condition = false;  // the text says all that `take` does
};

// Parses a condition: NAME OPERATOR VALUE, such as `cls in 0,3`, `cls not in 7`, `json:split = train`,
// `json:size.width >= 224`, `__key__ like n0144*`.
// - NAME: a member's extension; `:` and a field of its JSON, with dots for fields of fields; `__key__`.
// - OPERATOR: = != < <= > >=, `in` and `not in` with values between commas, `like` and `not like` with a
//   pattern of * and ?. Numbers are compared as numbers: 3 = 3.0.
// A sample without the member or the field is not taken under any operator; nor is one whose text is not a
// number if the operator is < <= > or >=.
base::Result<Filter> parse_condition(std::string_view text);

// Whether all filters take a sample whose wanted members were read. An exception of a filter is the error.
base::Result<bool> is_taken(const std::vector<Filter>& filters, const RawSample& sample);

}  // namespace sluice::data
