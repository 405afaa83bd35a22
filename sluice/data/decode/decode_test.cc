#include "sluice/data/decode/decode.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <stdexcept>

#include "sluice/data/dataset.h"
#include "sluice/data/decode/collate.h"
#include "sluice/data/decode/fit_length.h"
#include "sluice/data/decode/planes.h"
#include "sluice/data/test_files.h"
#include "sluice/data/test_support.h"

namespace sluice::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RawSample raw_sample(const test::Members& members, const std::string& key = "k") {
  RawSample raw;
  raw.key = key;
  raw.shard = std::make_shared<const std::string>("dir/s.tar");
  for (const auto& [extension, bytes] : members)
    raw.fields.push_back(
        {extension, bytes, key + "." + extension, 512 * (raw.fields.size() + 1), bytes.size()});
  return raw;
}

base::Result<Value> decoded(const std::string& extension, const std::string& bytes,
                            const std::string& spec = "rgb8") {
  DecodePlan plan;
  plan.spec = *parse_image_spec(spec);
  plan.fields = {{{extension}, FieldKind::kAny}};
  SLUICE_TRY(Sample sample, decode_sample(raw_sample({{extension, bytes}}), plan));
  return std::move(sample.fields[0]);
}

std::string error_of(const std::string& extension, const std::string& bytes) {
  const auto value = decoded(extension, bytes);
  return value ? "no error" : value.error().what();
}

TEST(Decode, ByTheLastPartOfTheExtension) {
  EXPECT_EQ(std::get<std::int64_t>(*decoded("cls", " 7\n")), 7);
  EXPECT_EQ(std::get<std::int64_t>(*decoded("a.index", "-3")), -3);
  EXPECT_EQ(std::get<std::string>(*decoded("txt", "h\xc3\xa9")), "h\xc3\xa9");
  EXPECT_EQ(std::get<std::string>(*decoded("bin", std::string("\xff\0", 2))), std::string("\xff\0", 2));
  EXPECT_EQ(std::get<std::string>(*decoded("json", "{\"a\": [1]}")), "{\"a\": [1]}");
  EXPECT_EQ(std::get<Array>(*decoded("x.npy", test::from_base64(test::kNpyFloat))).describe(),
            "float32 [2, 3]");
  EXPECT_EQ(std::get<Image>(*decoded("1.png", test::from_base64(test::kPngColor))).pixels.describe(),
            "uint8 [6, 5, 3]");
}

TEST(Decode, PackedFormats) {
  const std::string msgpack("\x82\xa1\x61\x93\x01\xcb\x40\x04\0\0\0\0\0\0\xc0\xa1\x74\xa3\x68\xc3\xa9", 21);
  const std::string cbor("\xa2\x61\x61\x83\x01\xfb\x40\x04\0\0\0\0\0\0\xf6\x61\x74\x63\x68\xc3\xa9", 21);
  const std::string json = "{\"a\":[1,2.5,null],\"t\":\"h\xc3\xa9\"}";
  for (const char* extension : {"mp", "msg", "x.msgpack"})
    EXPECT_EQ(std::get<std::string>(*decoded(extension, msgpack)), json);
  EXPECT_EQ(std::get<std::string>(*decoded("cbor", cbor)), json);
  EXPECT_THAT(error_of("mp", msgpack.substr(1)), HasSubstr("not valid MessagePack"));
  EXPECT_THAT(error_of("cbor", "\xff"), HasSubstr("not valid CBOR"));
  EXPECT_EQ(std::get<Arrays>(*decoded("npz", test::from_base64(test::kNpzStored))).size(), 2u);
  for (const char* extension : {"pkl", "pickle", "pyd", "pth", "ten", "tb"})
    EXPECT_THAT(error_of(extension, "x"), HasSubstr("only Python reads this format"));
}

std::string little_endian(std::uint32_t value) {
  return {static_cast<char>(value), static_cast<char>(value >> 8), static_cast<char>(value >> 16),
          static_cast<char>(value >> 24)};
}

// 16 bits, one channel, 8000 frames a second. `said`: how many bytes of samples the file says that it has.
std::string wav(const std::string& samples, std::uint32_t said) {
  const std::string format("\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0", 16);
  const std::string rest = "WAVEfmt " + little_endian(16) + format + "data" + little_endian(said) + samples;
  return "RIFF" + little_endian(static_cast<std::uint32_t>(rest.size())) + rest;
}

// libsndfile would read the frames that are there, and say nothing.
TEST(Decode, AWavThatIsCutOffIsAnError) {
  const std::string samples(200, '\x11'), whole = wav(samples, 200);
  EXPECT_EQ(std::get<Arrays>(*decoded("wav", whole)).at("samples").describe(), "float32 [1, 100]");
  for (std::size_t lost = 1; lost <= 200; ++lost)
    EXPECT_THAT(error_of("wav", whole.substr(0, whole.size() - lost)),
                HasSubstr(base::str("its samples have 200 bytes, and ", 200 - lost, " are there")));
  // A program that wrote to a pipe did not know how many there would be.
  EXPECT_EQ(std::get<Arrays>(*decoded("wav", wav(samples, 0xFFFFFFFF))).at("samples").describe(),
            "float32 [1, 100]");
}

TEST(Decode, TheUsersDecoders) {
  DecodePlan plan;
  plan.spec = ImageSpec{};
  plan.fields = {{{"a.pth"}, FieldKind::kAny}, {{"n"}, FieldKind::kAny}};
  plan.decoders["pth"] = [](std::string_view bytes) {
    return Value(static_cast<std::int64_t>(bytes.size()));
  };
  plan.decoders["n"] = [](std::string_view bytes) -> Value {
    if (bytes.empty()) throw std::runtime_error("nothing here");
    return Value(2.5);
  };
  const auto sample = decode_sample(raw_sample({{"a.pth", "12345"}, {"n", "x"}}), plan);
  ASSERT_TRUE(sample) << sample.error().what();
  EXPECT_EQ(std::get<std::int64_t>(sample->fields[0]), 5);
  EXPECT_EQ(std::get<double>(sample->fields[1]), 2.5);
  EXPECT_THAT(decode_sample(raw_sample({{"a.pth", ""}, {"n", ""}}), plan).error().what(),
              HasSubstr("member k.n (header at byte 1024): in the decoder: nothing here"));
}

TEST(Decode, TheDecoderOfThePage) {
  // [decoder]
  auto dataset = sluice::data::WebDataset("clips-{00..15}.tar")
                     .decoder("f32",
                              [](std::string_view bytes) -> sluice::data::Value {
                                sluice::data::Array samples(sluice::data::ElementType::kFloat32, {16'000});
                                if (bytes.size() != samples.bytes())
                                  throw std::runtime_error("expected a second of sound");
                                std::memcpy(samples.data<void>(), bytes.data(), bytes.size());
                                return samples;
                              })
                     .to_tuple("f32", "cls")
                     .batch(64);
  // [end]
  EXPECT_EQ(dataset.batch_size(), 64);
}

TEST(Decode, ImageSpecsAsWebdatasets) {
  const std::string png = test::from_base64(test::kPngColor);
  EXPECT_EQ(std::get<Image>(*decoded("png", png, "l8")).pixels.describe(), "uint8 [6, 5, 1]");
  EXPECT_EQ(std::get<Image>(*decoded("png", png, "rgba8")).pixels.describe(), "uint8 [6, 5, 4]");
  EXPECT_EQ(std::get<Array>(*decoded("png", png, "torchrgb8")).describe(), "uint8 [3, 6, 5]");
  EXPECT_EQ(std::get<Array>(*decoded("png", png, "torch")).describe(), "float32 [3, 6, 5]");
  const auto real = decoded("png", png, "rgb");
  // Pillow: pixel (row 1, column 2) is (31, 60, 89).
  const float* pixel = std::get<Image>(*real).pixels.data<float>() + (1 * 5 + 2) * 3;
  EXPECT_FLOAT_EQ(pixel[0], 31 / 255.0F);
  EXPECT_FLOAT_EQ(pixel[2], 89 / 255.0F);
  const auto planes = decoded("png", png, "torchrgb8");
  EXPECT_EQ(std::get<Array>(*planes).data<std::uint8_t>()[1 * 30 + 1 * 5 + 2], 60);
  EXPECT_FALSE(parse_image_spec("bgr8"));
  EXPECT_FALSE(parse_image_spec(""));
}

TEST(Decode, ErrorsNameShardMemberAndOffset) {
  EXPECT_THAT(error_of("jpg", "no image"),
              HasSubstr("dir/s.tar: member k.jpg (header at byte 512): not an image"));
  EXPECT_THAT(error_of("cls", "seven"), HasSubstr("expected a whole number, found 'seven'"));
  EXPECT_THAT(error_of("cls", ""), HasSubstr("expected a whole number"));
  EXPECT_THAT(error_of("cls", "1.5"), HasSubstr("expected a whole number"));
  EXPECT_THAT(error_of("txt", "\xff"), HasSubstr("UTF-8"));
  EXPECT_THAT(error_of("json", "{"), HasSubstr("JSON"));
  EXPECT_THAT(error_of("txt.gz", "zip?"), HasSubstr("gzip"));
  DecodePlan plan;
  plan.spec = ImageSpec{};
  plan.fields = {{{"jpg", "png"}, FieldKind::kImage}};
  EXPECT_THAT(decode_sample(raw_sample({{"cls", "1"}, {"txt", ""}}), plan).error().what(),
              HasSubstr("dir/s.tar: sample k (at byte 512): expected a member with the extension jpg or png, "
                        "found cls, txt"));
}

TEST(Decode, LabelsMustBeInRange) {
  DecodePlan plan;
  plan.spec = ImageSpec{};
  plan.classes = 10;
  plan.fields = {{{"cls"}, FieldKind::kLabel}};
  EXPECT_TRUE(decode_sample(raw_sample({{"cls", "9"}}), plan));
  for (const char* label : {"10", "-1"}) {
    const auto result = decode_sample(raw_sample({{"cls", label}}), plan);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), Code::kOutOfRange);
    EXPECT_THAT(result.error().what(), HasSubstr("dir/s.tar: member k.cls"));
    EXPECT_THAT(result.error().what(), HasSubstr("out of range"));
  }
  plan.fields = {{{"txt"}, FieldKind::kLabel}};
  EXPECT_EQ(std::get<std::int64_t>(decode_sample(raw_sample({{"txt", "4"}}), plan)->fields[0]), 4);
}

TEST(Decode, Utf8) {
  EXPECT_TRUE(is_utf8("plain, \xc3\xa9, \xe2\x82\xac, \xf0\x9f\x98\x80"));
  for (const char* bad :
       {"\x80", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82"})
    EXPECT_FALSE(is_utf8(bad));
}

std::vector<std::uint8_t> augmented(const std::string& key, std::uint64_t seed, std::int64_t epoch,
                                    std::vector<Transform> transforms,
                                    const std::string& shard = "dir/s.tar") {
  DecodePlan plan;
  plan.spec = ImageSpec{};
  plan.fields = {{{"png"}, FieldKind::kImage}};
  plan.transforms = std::move(transforms);
  plan.seed = seed;
  plan.epoch = epoch;
  RawSample raw = raw_sample({{"png", test::from_base64(test::kPngColor)}}, key);
  raw.shard = std::make_shared<const std::string>(shard);
  const auto sample = decode_sample(raw, plan);
  EXPECT_TRUE(sample) << sample.error().what();
  const Array& pixels = std::get<Image>(sample->fields[0]).pixels;
  return {pixels.data<std::uint8_t>(), pixels.data<std::uint8_t>() + pixels.bytes()};
}

constexpr Transform kCrop{Transform::Kind::kRandomCrop, 5, 2};
constexpr Transform kMirror{Transform::Kind::kFlip, 0, 0};

TEST(Augment, DependsOnSeedEpochShardAndKeyAlone) {
  const auto first = augmented("a", 1, 2, {kCrop, kMirror});
  EXPECT_EQ(first.size(), 75u);
  EXPECT_EQ(augmented("a", 1, 2, {kCrop, kMirror}), first);
  EXPECT_EQ(augmented("a", 1, 2, {kCrop, kMirror}, "elsewhere/s.tar"), first);
  int different = 0;
  for (int i = 0; i < 20; ++i) {
    different += augmented("a", 10 + static_cast<std::uint64_t>(i), 2, {kCrop, kMirror}) != first;
    different += augmented("a", 1, 10 + i, {kCrop, kMirror}) != first;
    different += augmented("b" + std::to_string(i), 1, 2, {kCrop, kMirror}) != first;
  }
  EXPECT_GT(different, 50);  // 6 × 5 places × 2 sides: few of 60 fall together
}

TEST(Augment, FlipsHalfAndReachesEveryPlace) {
  const auto plain = augmented("a", 0, 0, {});
  int mirrored = 0;
  std::set<std::vector<std::uint8_t>> places;
  for (int i = 0; i < 1000; ++i) {
    mirrored += augmented(std::to_string(i), 0, 0, {kMirror}) != plain;
    places.insert(augmented(std::to_string(i), 0, 0, {kCrop}));
  }
  EXPECT_NEAR(mirrored, 500, 60);  // 3.8 standard deviations
  EXPECT_EQ(places.size(), 30u);   // (6 + 4 − 5 + 1) × (5 + 4 − 5 + 1)
}

TEST(Augment, ResizeCropAndWhatDoesNotFit) {
  EXPECT_EQ(augmented("a", 0, 0, {{Transform::Kind::kResize, 10, 0}}).size(), 12u * 10 * 3);
  EXPECT_EQ(augmented("a", 0, 0, {{Transform::Kind::kCenterCrop, 3, 0}}).size(), 27u);
  DecodePlan plan;
  plan.spec = ImageSpec{};
  plan.fields = {{{"png"}, FieldKind::kImage}};
  plan.transforms = {{Transform::Kind::kRandomCrop, 32, 4}};
  EXPECT_THAT(decode_sample(raw_sample({{"png", test::from_base64(test::kPngColor)}}), plan).error().what(),
              HasSubstr("a crop of 32×32 does not fit into an image of 6×5"));
}

TEST(Augment, RandomResizedCropDrawsAsTorchvision) {
  const Transform crop{Transform::Kind::kRandomResizedCrop, 224};
  base::Random random({9});
  double areas = 0, ratios = 0;
  int tall = 0;
  constexpr int kDraws = 20'000;
  for (int i = 0; i < kDraws; ++i) {
    const Region part = random_resized_region(375, 500, crop, random);
    ASSERT_GE(part.top, 0);
    ASSERT_GE(part.left, 0);
    ASSERT_LE(part.top + part.height, 375);
    ASSERT_LE(part.left + part.width, 500);
    const double ratio = static_cast<double>(part.width) / static_cast<double>(part.height);
    EXPECT_NEAR(ratio, 1, 0.36);
    areas += static_cast<double>(part.height * part.width) / (375.0 * 500);
    ratios += std::log(ratio);
    tall += part.height > part.width;
  }
  // Means over 200,000 draws of torchvision's procedure in Python.
  EXPECT_NEAR(areas / kDraws, 0.4328, 0.008);
  EXPECT_NEAR(ratios / kDraws, 0.0309, 0.006);
  EXPECT_NEAR(static_cast<double>(tall) / kDraws, 0.4157, 0.015);
  // No draw fits into a line: the middle, as wide as allowed.
  const Region line = random_resized_region(10, 1000, crop, random);
  EXPECT_EQ(line.height, 10);
  EXPECT_EQ(line.width, 13);
  EXPECT_EQ(line.left, 493);
}

TEST(Augment, NormalisesOnTheHost) {
  DecodePlan plan;
  plan.spec = ImageSpec{};
  plan.fields = {{{"png"}, FieldKind::kImage}};
  plan.levels = normalized_levels({0.5F, 0.25F, 0.0F}, {0.5F, 0.25F, 1.0F});
  const auto sample = decode_sample(raw_sample({{"png", test::from_base64(test::kPngColor)}}), plan);
  ASSERT_TRUE(sample);
  const Array& pixels = std::get<Image>(sample->fields[0]).pixels;
  EXPECT_EQ(pixels.describe(), "float32 [6, 5, 3]");
  const float* pixel = pixels.data<float>() + (1 * 5 + 2) * 3;  // Pillow: (31, 60, 89)
  EXPECT_FLOAT_EQ(pixel[0], (31 / 255.0F - 0.5F) / 0.5F);
  EXPECT_FLOAT_EQ(pixel[1], (60 / 255.0F - 0.25F) / 0.25F);
  EXPECT_FLOAT_EQ(pixel[2], 89 / 255.0F);
  plan.spec->model = ColorModel::kGray;
  EXPECT_THAT(decode_sample(raw_sample({{"png", test::from_base64(test::kPngColor)}}), plan).error().what(),
              HasSubstr("an image of 1 channels: expected 3"));
}

Sample small_sample(const std::string& key, std::uint8_t first, std::int64_t label) {
  Image image{Array(ElementType::kUint8, {1, 2, 3})};
  for (int i = 0; i < 6; ++i) image.pixels.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(first + i);
  return {key, "s.tar", {image, label, std::string("t") + key}};
}

TEST(Collate, StacksPadsAndMarks) {
  const std::vector<std::optional<Sample>> samples{small_sample("a", 0, 3), small_sample("b", 10, 4), {}};
  const auto batch = collate(samples, layout_of(*samples[0]));
  ASSERT_TRUE(batch) << batch.error().what();
  EXPECT_EQ(batch->image.describe(), "uint8 [3, 3, 1, 2]");
  const auto* pixels = batch->image.data<std::uint8_t>();
  EXPECT_THAT(std::vector<int>(pixels, pixels + 18),
              ElementsAre(0, 3, 1, 4, 2, 5, 10, 13, 11, 14, 12, 15, 0, 0, 0, 0, 0, 0));
  const auto* labels = batch->label.data<std::int64_t>();
  EXPECT_THAT(std::vector<std::int64_t>(labels, labels + 3), ElementsAre(3, 4, 0));
  EXPECT_THAT(std::vector<bool>(batch->mask.data<bool>(), batch->mask.data<bool>() + 3),
              ElementsAre(true, true, false));
  EXPECT_THAT(batch->columns[2].text, ElementsAre("ta", "tb", ""));
  EXPECT_THAT(batch->keys, ElementsAre("a", "b"));
  EXPECT_EQ(batch->count, 2);
  EXPECT_EQ(batch->size(), 3);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(batch->image.data<void>()) % 64, 0u);
}

TEST(Collate, SplitsPlanesOfEveryWidth) {
  for (const std::int64_t channels : {1, 2, 3, 4}) {
    for (std::int64_t area = 0; area < 70; ++area) {
      std::vector<std::uint8_t> in, out(static_cast<std::size_t>(area * channels));
      for (std::int64_t i = 0; i < area * channels; ++i) in.push_back(static_cast<std::uint8_t>(i));
      split_planes(in.data(), area, channels, out.data());
      for (std::int64_t i = 0; i < area * channels; ++i)
        ASSERT_EQ(out[static_cast<std::size_t>(i % channels * area + i / channels)],
                  in[static_cast<std::size_t>(i)]);
    }
  }
}

TEST(Collate, UnlikeSamplesAreNamed) {
  std::vector<std::optional<Sample>> samples{small_sample("a", 0, 3), small_sample("b", 10, 4)};
  samples[1]->fields[0] = Image{Array::zeros(ElementType::kUint8, {2, 2, 3})};
  EXPECT_THAT(
      collate(samples, layout_of(*samples[0])).error().what(),
      HasSubstr("s.tar: sample b has image uint8 [3, 2, 2] as field 0, others have image uint8 [3, 1, 2]"));
}

TEST(FitLength, PadsWithWhatTheTypeHolds) {
  struct Case {
    ElementType type;
    std::vector<double> held, refused;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Case cases[] = {{ElementType::kBool, {0, 1}, {2, -1, 0.5, nan}},
                        {ElementType::kUint8, {0, 255}, {256, -1, nan}},
                        {ElementType::kInt8, {-128, 127}, {-129, 128, 0.5, nan}},
                        {ElementType::kInt16, {-32768, 32767}, {-32769, 32768, nan}},
                        {ElementType::kInt32, {-2147483648.0, 2147483647.0}, {-2147483649.0, 2147483648.0}},
                        {ElementType::kInt64, {-9223372036854775808.0, 9e18}, {9223372036854775808.0, 1e300}},
                        {ElementType::kFloat32, {0.1, -1}, {}}};
  const auto fitted = [](ElementType type, double padding) {
    Sample sample;
    sample.fields.emplace_back(Array::zeros(type, {1}));
    return fit_length(sample, 1, 3, {padding}).has_value();
  };
  for (const Case& one : cases) {
    for (const double value : one.held) EXPECT_TRUE(fitted(one.type, value)) << name_of(one.type) << value;
    for (const double value : one.refused)
      EXPECT_FALSE(fitted(one.type, value)) << name_of(one.type) << value;
  }
}

}  // namespace
}  // namespace sluice::data
