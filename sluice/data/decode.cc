#include "sluice/data/decode.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "sluice/base/random.h"
#include "sluice/data/npy.h"

namespace sluice::data {
namespace {

constexpr std::uint64_t kAugment = 2;  // sets these numbers apart from those of the order

// The same draws for a sample wherever its shard lies and whichever thread decodes it.
base::Random random_for(const RawSample& raw, const DecodePlan& plan) {
  const std::string_view shard = *raw.shard;
  const std::size_t slash = shard.rfind('/');
  const std::string_view file = slash == std::string_view::npos ? shard : shard.substr(slash + 1);
  return base::Random(
      {plan.seed, static_cast<std::uint64_t>(plan.epoch), kAugment, base::key(file), base::key(raw.key)});
}

base::Result<Pixels> apply(Pixels pixels, const Transform& transform, base::Random& random) {
  const std::int64_t size = transform.size;
  switch (transform.kind) {
    case Transform::Kind::kResize: {
      const std::int64_t shorter = std::min(pixels.height, pixels.width);
      return resize_bilinear(pixels, std::max<std::int64_t>(1, pixels.height * size / shorter),
                             std::max<std::int64_t>(1, pixels.width * size / shorter));
    }
    case Transform::Kind::kCenterCrop: {
      // Halves are rounded to even, as torchvision's Python rounds them; a small picture gets a border of
      // zeros.
      const auto offset = [size](std::int64_t extent) {
        const std::int64_t room = extent - size;
        const std::int64_t half = room >= 0 ? room / 2 : -((-room) / 2);
        return room > 0 && room % 2 != 0 && half % 2 != 0 ? half + 1 : half;
      };
      return crop_pixels(pixels, offset(pixels.height), offset(pixels.width), size, size);
    }
    case Transform::Kind::kRandomCrop: {
      const std::int64_t rows = pixels.height + 2 * transform.padding - size;
      const std::int64_t columns = pixels.width + 2 * transform.padding - size;
      if (rows < 0 || columns < 0)
        return base::fail(Code::kInvalidArgument, "a crop of ", size, "×", size,
                          " does not fit into a picture of ", pixels.height, "×", pixels.width,
                          " with a border of ", transform.padding, ": resize() first, or crop less");
      const auto top = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(rows) + 1));
      const auto left = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(columns) + 1));
      if (rows == 0 && columns == 0) return pixels;
      return crop_pixels(pixels, top - transform.padding, left - transform.padding, size, size);
    }
    case Transform::Kind::kFlip:
      if ((random() >> 63) == 0) return pixels;
      return crop_pixels(pixels, 0, 0, pixels.height, pixels.width, true);
  }
  return pixels;
}

// HWC bytes into memory of the wanted type and order.
template <typename T>
void place(const Pixels& pixels, bool channels_first, T* out) {
  const std::int64_t area = pixels.height * pixels.width, channels = pixels.channels;
  for (std::int64_t i = 0; i < area; ++i) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::uint8_t value = pixels.bytes[static_cast<std::size_t>(i * channels + c)];
      T& place = channels_first ? out[c * area + i] : out[i * channels + c];
      if constexpr (std::is_same_v<T, float>) {
        place = static_cast<float>(value) / 255.0F;
      } else {
        place = value;
      }
    }
  }
}

Value finished(const Pixels& pixels, const ImageSpec& spec) {
  std::vector<std::int64_t> shape{pixels.height, pixels.width, pixels.channels};
  if (spec.channels_first) shape = {pixels.channels, pixels.height, pixels.width};
  Array array(spec.real ? ElementType::kFloat32 : ElementType::kUint8, shape);
  if (spec.real) {
    place(pixels, spec.channels_first, array.data<float>());
  } else if (spec.channels_first) {
    place(pixels, true, array.data<std::uint8_t>());
  } else {
    std::memcpy(array.data<void>(), pixels.bytes.data(), pixels.bytes.size());
  }
  if (spec.channels_first) return array;
  return Image{std::move(array)};
}

base::Result<Value> decode_picture(std::string_view bytes, const RawSample& raw, const DecodePlan& plan) {
  SLUICE_TRY(Pixels pixels, decode_image(bytes, plan.spec->model));
  if (!plan.transforms.empty()) {
    base::Random random = random_for(raw, plan);
    for (const Transform& transform : plan.transforms) {
      SLUICE_TRY(pixels, apply(std::move(pixels), transform, random));
    }
  }
  return finished(pixels, *plan.spec);
}

base::Result<Value> decode_json(std::string_view bytes) {
  try {
    const auto parsed = nlohmann::json::parse(bytes);
    static_cast<void>(parsed);
  } catch (const nlohmann::json::exception& error) {
    return base::fail(Code::kDataLoss, "not valid JSON: ", error.what());
  }
  return Value(std::string(bytes));
}

base::Result<Value> decode_bytes(std::string_view bytes, Format format, const RawSample& raw,
                                 const DecodePlan& plan) {
  switch (format) {
    case Format::kImage:
      return decode_picture(bytes, raw, plan);
    case Format::kNumber: {
      SLUICE_TRY(const std::int64_t number, parse_whole_number(bytes));
      return Value(number);
    }
    case Format::kNpy: {
      SLUICE_TRY(Array array, parse_npy(bytes));
      return Value(std::move(array));
    }
    case Format::kText:
      if (!is_utf8(bytes)) return base::fail(Code::kDataLoss, "expected UTF-8 text, found other bytes");
      return Value(std::string(bytes));
    case Format::kJson:
      return decode_json(bytes);
    case Format::kBytes:
      break;
  }
  return Value(std::string(bytes));
}

base::Result<Value> decode_field(const Field& field, const FieldPlan& field_plan, const RawSample& raw,
                                 const DecodePlan& plan) {
  if (!plan.spec) return Value(field.bytes);
  Format format = format_of(field.extension);
  if (field_plan.kind == FieldKind::kLabel && (format == Format::kText || format == Format::kBytes))
    format = Format::kNumber;
  if (field_plan.kind == FieldKind::kImage) format = Format::kImage;
  if (!base::ends_with(field.extension, ".gz")) return decode_bytes(field.bytes, format, raw, plan);
  SLUICE_TRY(const std::string unpacked, gunzip(field.member, field.bytes));
  return decode_bytes(unpacked, format, raw, plan);
}

base::Status check_label(const Value& value, const DecodePlan& plan) {
  const auto* label = std::get_if<std::int64_t>(&value);
  if (label == nullptr)
    return base::fail(Code::kInvalidArgument,
                      "expected a whole number for the label, found another kind of data: ",
                      "name the member with the class in labels()");
  if (plan.classes > 0 && (*label < 0 || *label >= plan.classes))
    return base::fail(Code::kOutOfRange, "class ", *label, " is out of range: expected 0 to ",
                      plan.classes - 1, " for ", plan.classes, " classes");
  return {};
}

const Field* find_field(const RawSample& raw, const FieldPlan& plan) {
  for (const std::string& extension : plan.extensions)
    if (const Field* field = raw.find(extension)) return field;
  return nullptr;
}

tl::unexpected<Error> missing_field(const RawSample& raw, const FieldPlan& plan) {
  std::vector<std::string> present;
  for (const Field& field : raw.fields) present.push_back(field.extension);
  return base::fail(Code::kDataLoss, raw.where(), ": expected a member with the extension ",
                    base::join(plan.extensions, " or "), ", found ", base::join(present, ", "));
}

}  // namespace

base::Result<Sample> decode_sample(const RawSample& raw, const DecodePlan& plan) {
  Sample sample{raw.key, *raw.shard, {}};
  bool label_seen = false;
  for (const FieldPlan& field_plan : plan.fields) {
    const Field* field = find_field(raw, field_plan);
    if (field == nullptr) return missing_field(raw, field_plan);
    auto value = decode_field(*field, field_plan, raw, plan);
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
