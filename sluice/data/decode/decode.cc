#include "sluice/data/decode/decode.h"

#include <algorithm>
#include <cstring>

#include "sluice/base/random.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/decode/audio.h"
#include "sluice/data/decode/nested.h"
#include "sluice/data/decode/npy.h"
#include "sluice/data/decode/npz.h"
#include "sluice/data/memory.h"

namespace sluice::data {
namespace {

constexpr std::uint64_t kAugment = 2;  // separates these random numbers from the numbers of the order

// Returns the same random numbers for a sample in any folder and on any thread.
base::Random random_for(const RawSample& raw, const DecodePlan& plan) {
  const std::string_view shard = *raw.shard;
  const std::size_t slash = shard.rfind('/');
  const std::string_view file = slash == std::string_view::npos ? shard : shard.substr(slash + 1);
  return base::Random({plan.seed, static_cast<std::uint64_t>(raw.epoch.value_or(plan.epoch)), kAugment,
                       base::key(file), base::key(raw.key)});
}

// Converts HWC levels, each by its channel's table, into memory in the wanted order.
template <typename T, typename Convert>
void place(const Pixels& pixels, bool channels_first, T* out, const Convert& convert) {
  const std::int64_t area = pixels.height * pixels.width, channels = pixels.channels;
  const std::uint8_t* in = pixels.bytes.data();
  for (std::int64_t i = 0; i < area; ++i)
    for (std::int64_t c = 0; c < channels; ++c)
      out[channels_first ? c * area + i : i * channels + c] = convert(c, *in++);
}

base::Result<Value> finished(const Pixels& pixels, const DecodePlan& plan) {
  const ImageSpec& spec = *plan.spec;
  const bool normalized = !plan.levels.empty();
  if (normalized && plan.levels.size() != static_cast<std::size_t>(pixels.channels) * 256)
    return base::fail(Code::kInvalidArgument, "an image of ", pixels.channels, " channels: expected ",
                      plan.levels.size() / 256, ", the number of means of normalize_on_host()");
  std::vector<std::int64_t> shape{pixels.height, pixels.width, pixels.channels};
  if (spec.channels_first) shape = {pixels.channels, pixels.height, pixels.width};
  const ElementType type = spec.real || normalized ? ElementType::kFloat32 : ElementType::kUint8;
  SLUICE_OK(claim_memory(pixels.bytes.size() * size_of(type), "an image"));
  Array array(type, shape);
  if (normalized) {
    place(pixels, spec.channels_first, array.data<float>(), [&](std::int64_t c, std::uint8_t level) {
      return plan.levels[static_cast<std::size_t>(c * 256 + level)];
    });
  } else if (spec.real) {
    place(pixels, spec.channels_first, array.data<float>(),
          [](std::int64_t, std::uint8_t level) { return static_cast<float>(level) / 255.0F; });
  } else if (spec.channels_first) {
    place(pixels, true, array.data<std::uint8_t>(), [](std::int64_t, std::uint8_t level) { return level; });
  } else {
    std::memcpy(array.data<void>(), pixels.bytes.data(), pixels.bytes.size());
  }
  if (spec.channels_first) return Value(std::move(array));
  return Value(Image{std::move(array)});
}

base::Result<Value> decode_image_field(std::string_view bytes, const RawSample& raw, const DecodePlan& plan) {
  SLUICE_TRY(Pixels pixels, plan.transforms.empty() && !plan.exif_rotation
                                ? decode_image(bytes, plan.spec->model)
                                : decode_augmented(bytes, plan.spec->model, plan.transforms,
                                                   random_for(raw, plan), plan.exif_rotation));
  auto value = finished(pixels, plan);
  keep_pixel_memory(std::move(pixels.bytes));
  return value;
}

base::Result<Value> decode_by(const Decoder& decoder, std::string_view bytes) {
  try {
    return decoder(bytes);
  } catch (const Error& error) {
    return base::fail(error.code(), "in the decoder: ", error.what());
  } catch (const std::exception& error) {
    return base::fail(Code::kInvalidArgument, "in the decoder: ", error.what());
  }
}

// Returns the user's decoder for the whole extension, or for its last part.
const Decoder* decoder_for(std::string_view extension, const DecodePlan& plan) {
  if (plan.decoders.empty()) return nullptr;
  if (base::ends_with(extension, ".gz")) extension.remove_suffix(3);
  auto found = plan.decoders.find(extension);
  const std::size_t dot = extension.rfind('.');
  if (found == plan.decoders.end() && dot != std::string_view::npos)
    found = plan.decoders.find(extension.substr(dot + 1));
  return found == plan.decoders.end() ? nullptr : &found->second;
}

base::Result<Value> decode_bytes(std::string_view bytes, Format format, const RawSample& raw,
                                 const DecodePlan& plan) {
  switch (format) {
    case Format::kImage:
      return decode_image_field(bytes, raw, plan);
    case Format::kNumber: {
      SLUICE_TRY(const std::int64_t number, parse_whole_number(bytes));
      return Value(number);
    }
    case Format::kNpy: {
      SLUICE_TRY(Array array, parse_npy(bytes));
      return Value(std::move(array));
    }
    case Format::kNpz: {
      SLUICE_TRY(Arrays arrays, parse_npz(bytes));
      return Value(std::move(arrays));
    }
    case Format::kSound: {
      SLUICE_TRY(Sound sound, decode_sound(bytes));
      Array rate(ElementType::kInt64, {});
      *rate.data<std::int64_t>() = sound.rate;
      return Value(Arrays{{"samples", std::move(sound.samples)}, {"rate", std::move(rate)}});
    }
    case Format::kMsgpack:
    case Format::kCbor: {
      SLUICE_TRY(std::string text, json_of_packed(bytes, format));
      return Value(std::move(text));
    }
    case Format::kPython:
      return base::fail(
          Code::kUnimplemented,
          "only Python reads this format: store npy, json or msgpack instead (in C++, decoder() can ",
          "give the extension a function)");
    case Format::kText:
      if (!is_utf8(bytes)) return base::fail(Code::kDataLoss, "expected UTF-8 text, found other bytes");
      return Value(std::string(bytes));
    case Format::kJson:
      SLUICE_OK(check_json(bytes));
      return Value(std::string(bytes));
    case Format::kBytes:
      break;
  }
  return Value(std::string(bytes));
}

// Whether only decode() makes something of a member; without it such members stay bytes.
bool needs_spec(Format format) { return format == Format::kImage || format == Format::kPython; }

base::Result<Value> decode_field(const Field& field, const FieldPlan& field_plan, const RawSample& raw,
                                 const DecodePlan& plan) {
  Format format = format_of(field.extension);
  if (!plan.spec && needs_spec(format)) format = Format::kBytes;
  if (field_plan.kind == FieldKind::kLabel && (format == Format::kText || format == Format::kBytes))
    format = Format::kNumber;
  if (field_plan.kind == FieldKind::kImage) format = Format::kImage;
  const Decoder* own = decoder_for(field.extension, plan);
  const auto decode = [&](std::string_view bytes) {
    return own != nullptr ? decode_by(*own, bytes) : decode_bytes(bytes, format, raw, plan);
  };
  if (!base::ends_with(field.extension, ".gz")) return decode(field.bytes);
  SLUICE_TRY(const std::string unpacked, gunzip(field.member, field.bytes));
  return decode(unpacked);
}

// Decodes a field; a failed allocation is also an error of the member.
base::Result<Value> decode_within_memory(const Field& field, const FieldPlan& field_plan,
                                         const RawSample& raw, const DecodePlan& plan) {
  try {
    return decode_field(field, field_plan, raw, plan);
  } catch (const std::bad_alloc&) {
    return base::fail(Code::kResourceExhausted, "no memory to decode its ", field.bytes.size(), " bytes");
  }
}

base::Status check_label(const Value& value, const DecodePlan& plan) {
  const auto* label = std::get_if<std::int64_t>(&value);
  if (label == nullptr)
    return base::fail(Code::kInvalidArgument,
                      "expected a whole number for the label, found another kind of data: ",
                      "name the member with the class by --labels (in C++ labels())");
  if (plan.classes > 0 && (*label < 0 || *label >= plan.classes))
    return base::fail(Code::kOutOfRange, "class ", *label, " is out of range: expected 0 to ",
                      plan.classes - 1, " for ", plan.classes, " classes");
  return {};
}

// Returns a field that webdataset adds to each sample.
std::optional<Value> own_field(const RawSample& raw, const FieldPlan& plan) {
  if (plan.extensions.size() != 1) return std::nullopt;
  if (plan.extensions[0] == "__key__") return Value(raw.key);
  if (plan.extensions[0] == "__url__") return Value(*raw.shard);
  return std::nullopt;
}

tl::unexpected<Error> missing_field(const RawSample& raw, const FieldPlan& plan) {
  std::vector<std::string> present;
  for (const Field& field : raw.fields) present.push_back(field.extension);
  // "photo.v2.jpg" has the key "photo" and the extension "v2.jpg".
  const bool dotted = std::any_of(present.begin(), present.end(), [&](const std::string& found) {
    return std::any_of(plan.extensions.begin(), plan.extensions.end(),
                       [&](const std::string& wanted) { return base::ends_with(found, "." + wanted); });
  });
  return base::fail(Code::kDataLoss, raw.where(), ": expected a member with the extension ",
                    base::join(plan.extensions, " or "), ", found ", base::join(present, ", "),
                    dotted ? ". The key ends at the first dot of a member's name, and the rest is the "
                             "extension: rename the files so that keys have no dots"
                           : "");
}

}  // namespace

const Field* find_field(const RawSample& raw, const FieldPlan& plan) {
  for (const std::string& extension : plan.extensions)
    if (const Field* field = raw.find(extension)) return field;
  return nullptr;
}

base::Status check_decodes(std::string_view extension, std::string_view bytes) {
  const Format format = format_of(extension);
  if (format == Format::kBytes || format == Format::kPython) return {};
  const SampleMemory memory;
  Field field;
  field.extension = extension;
  field.bytes = bytes;
  field.member = base::str("a member ", extension);
  DecodePlan plan;
  plan.spec = ImageSpec{};
  const auto value = decode_within_memory(field, FieldPlan{}, RawSample{}, plan);
  if (!value) return tl::unexpected<Error>(value.error());
  return {};
}

std::vector<float> normalized_levels(const std::vector<float>& mean, const std::vector<float>& deviation) {
  std::vector<float> levels;
  for (std::size_t c = 0; c < mean.size(); ++c)
    for (int level = 0; level < 256; ++level)
      levels.push_back((static_cast<float>(level) / 255.0F - mean[c]) / deviation[c]);
  return levels;
}

bool stays_bytes(const DecodePlan& plan) {
  if (plan.spec || !plan.decoders.empty()) return false;
  return std::all_of(plan.fields.begin(), plan.fields.end(), [](const FieldPlan& field) {
    return std::all_of(field.extensions.begin(), field.extensions.end(), [](const std::string& extension) {
      const Format format = format_of(extension);
      return (format == Format::kBytes || needs_spec(format)) && !base::ends_with(extension, ".gz");
    });
  });
}

base::Result<Sample> decode_sample(const RawSample& raw, const DecodePlan& plan) {
  const SampleMemory memory;
  if (const auto status = claim_memory(raw.bytes(), "its members"); !status)
    return base::fail_at(status, raw.where());
  Sample sample{raw.key, *raw.shard, {}, raw.source};
  sample.fields.reserve(plan.fields.size());
  bool label_seen = false;
  for (const FieldPlan& field_plan : plan.fields) {
    if (auto own = own_field(raw, field_plan)) {
      sample.fields.push_back(std::move(*own));
      continue;
    }
    const Field* field = find_field(raw, field_plan);
    if (field == nullptr) return missing_field(raw, field_plan);
    auto value = decode_within_memory(*field, field_plan, raw, plan);
    const auto here = [&] {
      return base::str(*raw.shard, ": member ", field->member, " (header at byte ", field->offset, ")");
    };
    if (!value) return base::fail_at(value, here());
    const bool first_number = std::holds_alternative<std::int64_t>(*value) && !label_seen;
    if (field_plan.kind == FieldKind::kLabel || first_number) {
      label_seen = true;
      if (const auto status = check_label(*value, plan); !status) return base::fail_at(status, here());
    }
    sample.fields.push_back(std::move(*value));
  }
  return sample;
}

}  // namespace sluice::data
