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
  int code;  // in arrays that say their type themselves
};

// What an encoding says.
struct MdsEncoding {
  enum class Kind { kBytes, kText, kDigits, kJson, kNumber, kArray, kJpeg, kPng, kPil, kJpegs, kPngs, kPils };
  Kind kind = Kind::kBytes;
  const MdsType* type = nullptr;  // of a number; of an array: nothing where each says its own
  std::optional<std::vector<std::int64_t>> shape;  // of an array; likewise
  bool has_placeholder = false;                    // of several images: four bytes come first

  std::optional<std::uint64_t> size() const;  // bytes of each value; nothing: they differ
};
// kInvalidArgument names the encodings that are known; pickles are none of them.
base::Result<MdsEncoding> parse_mds_encoding(const std::string& text);

struct MdsArray {
  const MdsType* type = nullptr;
  std::vector<std::int64_t> shape;  // of a number: no extents
  std::string_view elements;
};
// Of a number or an array. kDataLoss for bytes that are none.
base::Result<MdsArray> mds_array(const MdsEncoding& encoding, std::string_view value);

// What a value becomes in a WebDataset sample.
struct MdsMember {
  std::string part;  // of several images "0.", "1.", …
  std::string extension, payload;
};
// Texts: txt. Bytes: bin. Whole numbers: cls. Real numbers and arrays: npy, with elements of uint16, uint32
// and uint64 as int32 and int64, which hold the same numbers. JSON: json. JPEG and PNG as they are, Pillow's
// raw images as PNG.
base::Result<std::vector<MdsMember>> mds_members(const MdsEncoding& encoding, std::string_view value);
const char* mds_extension(const MdsEncoding& encoding);  // of these members

// Numbers that are tokens: an array's, or those in bytes, whose type is `type` ("int64"). kInvalidArgument
// for an encoding of other things, and for bytes without a type; kOutOfRange for an id below 0 or above
// 2^32 − 1.
base::Result<std::vector<std::uint32_t>> mds_ids(const MdsEncoding& encoding, const std::string& type,
                                                 std::string_view value);

}  // namespace sluice::data
