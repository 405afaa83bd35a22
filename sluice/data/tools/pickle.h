// Just enough of Python's pickle to read the published CIFAR-10 batches, and nothing that could run code.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::data {

// A value in a pickle. Python 2 strings, bytes and text are all `text`. A NumPy array is `array`, with its
// raw elements in `text`.
struct PickleValue {
  enum class Kind {
    kNone,
    kInteger,
    kText,
    kSequence,
    kDictionary,
    kGlobal,
    kObject,
    kArray,
    kMark
  } kind = Kind::kNone;
  std::int64_t integer = 0;
  std::string text;  // of kText and kGlobal ("module name"); elements of kArray
  std::vector<std::shared_ptr<PickleValue>> items;              // of kSequence and kObject
  std::map<std::string, std::shared_ptr<PickleValue>> entries;  // of kDictionary, by text
  std::vector<std::int64_t> shape;                              // of kArray
  std::string element;                                          // of kArray: "u1" and so on
};
using PicklePointer = std::shared_ptr<PickleValue>;

// Protocols 2 to 5 as far as dictionaries, lists, tuples, whole numbers, strings, None, booleans and
// contiguous NumPy arrays go. Everything else is refused by name: no class is looked up and no function is
// called.
base::Result<PicklePointer> parse_pickle(std::string_view bytes);

}  // namespace sluice::data
