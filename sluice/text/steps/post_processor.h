// Post-processors, which put tokens around the tokens of one or two texts.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "sluice/text/encoding.h"
#include "sluice/text/json_object.h"

namespace sluice::text {

// The tokens of a text, or of a template.
struct EncodedPart {
  Encoding tokens;
  std::string_view text;  // the text that the offsets refer to
};

// Returns the parts, joined in order.
Encoding join_parts(std::vector<EncodedPart> parts);

struct PostProcessing {
  bool special_tokens = true;
  bool offsets = false;  // added tokens have offsets and names too
};

// Threads: any number of them.
class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  // Processes one text or two.
  virtual std::vector<EncodedPart> apply(std::vector<EncodedPart> parts,
                                         const PostProcessing& wanted) const = 0;
  // Returns the number of special tokens that it adds to one text, or to two.
  virtual std::size_t added(bool pair) const = 0;
};

// Reads a post-processor; for null it does nothing. kUnimplemented for an unknown one.
base::Result<std::unique_ptr<const PostProcessor>> read_post_processor(const Json& json,
                                                                       const std::string& where,
                                                                       int depth = 0);

}  // namespace sluice::text
