// Decoders, which turn tokens back into a text.
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
  // Changes the tokens; the resulting strings, joined, are the text.
  virtual base::Status apply(std::vector<std::string>& tokens) const = 0;
};

// Reads a decoder; for null it does nothing. kUnimplemented for an unknown one.
base::Result<std::unique_ptr<const Decoder>> read_decoder(const Json& json, const std::string& where,
                                                          int depth = 0);

}  // namespace sluice::text
