// The line of text that says where a stream stands: words of the form name=value.
#pragma once

#include <string>

#include "sluice/data/stream.h"

namespace sluice::data {

// The options with the epoch and the batches of a state. Throws for other text.
OpenOptions position_in(const std::string& state, OpenOptions options);

// Throws what differs in the state that a stream would have now: the samples would come in another order.
void expect_same_order(const std::string& before, const std::string& now);

}  // namespace sluice::data
