// The texts of options that have a small language of their own (options/values.h), read once: where a flag or
// a key of a TOML file gives them.
#pragma once

#include <string>

#include "sluice/base/flag.h"
#include "sluice/base/result.h"
#include "sluice/metrics/metric_name.h"
#include "sluice/train/options/values.h"

namespace sluice::train {

// Returns the value that the text says; "" says none, except for MaxBad. Fails with kInvalidArgument; the
// message begins with `flag`. There is one for each type of options/values.h, for its shapes, and for the
// names of metrics.
template <typename Value>
base::Result<Value> parse_value(const std::string& flag, const std::string& text);

// Returns the value of a flag that parse_value() reads. `value` must outlive what this returns.
template <typename Value>
base::ParsedText parsed(const std::string& flag, Value& value) {
  return {
      .take = [flag, &value](
                  const std::string& text) { value = base::value_or_throw(parse_value<Value>(flag, text)); },
      .now = text_of(value)};
}

}  // namespace sluice::train
