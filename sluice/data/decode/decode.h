// From a sample's members to its decoded fields.
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

// How images are handed on, by WebDataset's names: l8, rgb8, rgba8, l, rgb, rgba, and those after "torch".
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
  FieldKind kind = FieldKind::kAny;     // an error when it decodes to something else
};

// A user's decoder: a member's bytes → a field. What it throws becomes the sample's error.
using Decoder = std::function<Value(std::string_view)>;

struct DecodePlan {
  std::vector<FieldPlan> fields;
  std::optional<ImageSpec> spec;  // nothing: images, and what only Python reads, stay bytes
  bool exif_rotation = false;     // images are rotated upright first
  std::vector<Transform> transforms;
  std::vector<float> levels;  // not empty: what each level of each channel becomes, [channels, 256]
  MixPlan mix;
  std::map<std::string, Decoder, std::less<>> decoders;  // of the user, by extension in lower case
  std::int64_t classes = 0;                              // 0: any label
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
};

// Decodes and augments. The random numbers depend on seed, epoch, the shard's file name and the sample's key
// alone; all images of a sample get the same ones. Errors name shard, member and offset. Threads: any.
base::Result<Sample> decode_sample(const RawSample& raw, const DecodePlan& plan);

// Whether decode_sample() hands on the bytes of every member that the plan names.
bool stays_bytes(const DecodePlan& plan);

// One member by the last part of its extension: images, cls cls2 index inx id (whole numbers), txt text
// transcript (UTF-8), json jsn (checked, handed on as text), npy, npz, mp msg msgpack and cbor (handed on as
// JSON text), flac and wav (the arrays "samples", float32 [channels, frames], and "rate", int64 [], frames a
// second); a `gz` after it is unpacked first. kPython, an error: pkl pickle pyd pth hold Python objects,
// ten tb a format of webdataset's own. All else stays bytes.
enum class Format { kBytes, kText, kNumber, kJson, kNpy, kNpz, kMsgpack, kCbor, kPython, kImage, kSound };
Format format_of(std::string_view extension);

// Whether the readers can decode a member with this extension (in lower case). kBytes and kPython are not
// looked at.
base::Status check_decodes(std::string_view extension, std::string_view bytes);

// (level / 255 − mean) / deviation for DecodePlan::levels.
std::vector<float> normalized_levels(const std::vector<float>& mean, const std::vector<float>& deviation);

base::Result<std::int64_t> parse_whole_number(std::string_view text);
bool is_utf8(std::string_view text);

}  // namespace sluice::data
