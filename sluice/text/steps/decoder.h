// Decoders: from tokens back to a text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sluice/text/json_object.h"

namespace sluice::text {

// Threads: any number of them.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // What the tokens become; the text is what is left, joined.
  virtual base::Status apply(std::vector<std::string>& tokens) const = 0;
};

// One that does nothing for null. An unknown one is kUnimplemented.
base::Result<std::unique_ptr<const Decoder>> read_decoder(const Json& json, const std::string& where,
                                                          int depth = 0);

}  // namespace sluice::text
