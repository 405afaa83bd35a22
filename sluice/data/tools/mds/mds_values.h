// The values of MDS columns, by their encodings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::data {

// An element type of arrays and numbers.
struct MdsType {
  const char* name;   // "uint16"
  const char* numpy;  // "<u2"
  std::uint32_t size;
  int code;  // in arrays that state their type themselves
};

// The meaning of an encoding's name.
struct MdsEncoding {
  enum class Kind { kBytes, kText, kDigits, kJson, kNumber, kArray, kJpeg, kPng, kPil, kJpegs, kPngs, kPils };
  Kind kind = Kind::kBytes;
  const MdsType* type = nullptr;                   // of a number, or of an array unless each states its own
  std::optional<std::vector<std::int64_t>> shape;  // of an array, with the same exception
  bool has_placeholder = false;                    // several images begin with four bytes

  std::optional<std::uint64_t> size() const;  // bytes of each value; nothing: they differ
};
// Parses an encoding's name. kInvalidArgument names the known encodings; pickles are not supported.
base::Result<MdsEncoding> parse_mds_encoding(const std::string& text);

struct MdsArray {
  const MdsType* type = nullptr;
  std::vector<std::int64_t> shape;  // empty for a number
  std::string_view elements;
};
// Reads a number or an array. kDataLoss for bytes that are not a valid one.
base::Result<MdsArray> mds_array(const MdsEncoding& encoding, std::string_view value);

// A member of a WebDataset sample, made from a value.
struct MdsMember {
  std::string part;  // "0.", "1.", … for several images
  std::string extension, payload;
};
// Converts a value. Texts: txt. Bytes: bin. Whole numbers: cls. Real numbers and arrays: npy, with elements
// of uint16, uint32 and uint64 as int32 and int64, which hold the same numbers. JSON: json. JPEG and PNG stay
// as they are, Pillow's raw images become PNG.
base::Result<std::vector<MdsMember>> mds_members(const MdsEncoding& encoding, std::string_view value);
const char* mds_extension(const MdsEncoding& encoding);  // for these members

// Reads numbers that are tokens, from an array or from bytes of the type `type` ("int64"). kInvalidArgument
// for an encoding of other things, and for bytes without a type; kOutOfRange for an id outside 0 … 2^32 − 1.
base::Result<std::vector<std::uint32_t>> mds_ids(const MdsEncoding& encoding, const std::string& type,
                                                 std::string_view value);

}  // namespace sluice::data
