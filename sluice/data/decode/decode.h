// Decoding of a sample's members into fields.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sluice/data/augment/augment.h"
#include "sluice/data/augment/mix.h"
#include "sluice/data/batch.h"
#include "sluice/data/images/image.h"
#include "sluice/data/shards/group.h"

namespace sluice::data {

// The form of decoded images, by WebDataset's names: l8 rgb8 rgba8 l rgb rgba, and the same after "torch".
struct ImageSpec {
  ColorModel model = ColorModel::kRgb;
  bool real = false;            // float32 in 0 … 1 instead of uint8
  bool channels_first = false;  // a plain array [C, H, W] instead of an Image
};
base::Result<ImageSpec> parse_image_spec(const std::string& spec);

enum class FieldKind { kAny, kImage, kLabel };

// One field of the tuple: the first of these extensions that a sample has.
struct FieldPlan {
  std::vector<std::string> extensions;  // in lower case
  FieldKind kind = FieldKind::kAny;     // a field that decodes to another kind is an error
};

// A user's decoder: a member's bytes → a field. An exception becomes the sample's error.
using Decoder = std::function<Value(std::string_view)>;

struct DecodePlan {
  std::vector<FieldPlan> fields;
  std::optional<ImageSpec> spec;  // nothing: images, and formats that only Python reads, stay bytes
  bool exif_rotation = false;     // images are rotated upright first
  std::vector<Transform> transforms;
  std::vector<float> levels;  // the value for each level of each channel, [channels, 256]; empty: none
  MixPlan mix;
  std::map<std::string, Decoder, std::less<>> decoders;  // by extension in lower case
  std::int64_t classes = 0;                              // 0: any label
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
};

// Decodes and augments. The random numbers depend only on seed, epoch, the shard's file name and the sample's
// key; all images of a sample get the same ones. Errors name shard, member and offset. Threads: any.
base::Result<Sample> decode_sample(const RawSample& raw, const DecodePlan& plan);

// Returns the member that a field is read from; nullptr if no member has one of the extensions.
const Field* find_field(const RawSample& raw, const FieldPlan& plan);

// Returns whether decode_sample() hands on the bytes of every member that the plan names.
bool stays_bytes(const DecodePlan& plan);

// The format of a member by the last part of its extension: images, cls cls2 index inx id (whole numbers),
// txt text transcript (UTF-8), json jsn (checked, handed on as text), npy, npz, mp msg msgpack and cbor
// (handed on as JSON text), flac and wav (the arrays "samples", float32 [channels, frames], and "rate", int64
// [], frames a second); a `gz` after it is unpacked first. kPython is an error: pkl pickle pyd pth hold
// Python objects, ten tb are a format of webdataset's own. All other members stay bytes.
enum class Format { kBytes, kText, kNumber, kJson, kNpy, kNpz, kMsgpack, kCbor, kPython, kImage, kSound };
Format format_of(std::string_view extension);

// Checks that the readers can decode a member with this extension (in lower case), except kBytes and kPython.
base::Status check_decodes(std::string_view extension, std::string_view bytes);

// Returns (level / 255 − mean) / deviation for DecodePlan::levels.
std::vector<float> normalized_levels(const std::vector<float>& mean, const std::vector<float>& deviation);

base::Result<std::int64_t> parse_whole_number(std::string_view text);
bool is_utf8(std::string_view text);

}  // namespace sluice::data
