// Which code points Oniguruma's properties and POSIX brackets have, in the version that Hugging Face's
// `tokenizers` 0.23 brings (Unicode 16); and which characters are alike when case does not count.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/text/characters/code_points.h"

namespace sluice::text {

// A set in property_table.cc.
struct Property {
  const char* names;   // with blanks between them; [:alpha:] is a POSIX bracket
  int base;            // −1, or the set of which this one is told
  const char* places;  // where it begins and ends, or begins to differ from its base and ends to
};
extern const Property kProperties[];
extern const std::size_t kPropertyCount;

// A name as in \p{…}, of any case and with blanks, _ and -; or [:alpha:]. Nothing where no property has it.
std::optional<CodePoints> find_property(std::string_view name);
// Of a name that is there.
const CodePoints& property(std::string_view name);

// With all characters that differ from one of them in case.
CodePoints close_over_case(const CodePoints& set);
// What stands for this character when case does not count, which may be several: ss for ß.
std::u32string fold_case(char32_t code);
struct LongFold {
  char32_t code;
  std::u32string folded;
};
// The characters whose folded form has more than one.
const std::vector<LongFold>& long_folds();

}  // namespace sluice::text
