// Post-processors: what is put around the tokens of one or two texts.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "sluice/text/encoding.h"
#include "sluice/text/json_object.h"

namespace sluice::text {

// Tokens of a text, or of a template.
struct EncodedPart {
  Encoding tokens;
  std::string_view text;  // that the offsets are of
};

// The parts one behind the other.
Encoding join_parts(std::vector<EncodedPart> parts);

struct PostProcessing {
  bool special_tokens = true;
  bool offsets = false;  // those that are put in have offsets and names too
};

// Threads: any number of them.
class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  // Of one text or two.
  virtual std::vector<EncodedPart> apply(std::vector<EncodedPart> parts,
                                         const PostProcessing& wanted) const = 0;
  // How many special tokens it adds to one text, or to two.
  virtual std::size_t added(bool pair) const = 0;
};

// One that does nothing for null. An unknown one is kUnimplemented.
base::Result<std::unique_ptr<const PostProcessor>> read_post_processor(const Json& json,
                                                                       const std::string& where,
                                                                       int depth = 0);

}  // namespace sluice::text
