// Prints how samples are decoded, a JSON object a line, for comparison with Python's webdataset.
//
//   sluice_print_samples SHARD SPEC STEP,STEP… EXTENSION…     STEP: exif, resize=N or center=N, or none
#include <zlib.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "sluice/base/text/strings.h"
#include "sluice/data/decode/decode.h"

namespace {

using namespace sluice;
using nlohmann::json;

json describe(const data::Array& array) {
  const auto sum = crc32(0, array.data<Bytef>(), static_cast<uInt>(array.bytes()));
  return {{"type", data::name_of(array.type())}, {"shape", array.shape()}, {"crc32", sum}};
}

json describe(const data::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    std::string hex;
    for (const char c : *text) {
      char digits[3];
      std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(c));
      hex += digits;
    }
    return {{"hex", hex}};
  }
  if (const auto* number = std::get_if<std::int64_t>(&value)) return {{"number", *number}};
  if (const auto* array = std::get_if<data::Array>(&value)) return describe(*array);
  if (const auto* image = std::get_if<data::Image>(&value)) return describe(image->pixels);
  if (const auto* arrays = std::get_if<data::Arrays>(&value)) {
    json result;
    for (const auto& [name, array] : *arrays) result[name] = describe(array);
    return {{"arrays", result}};
  }
  return {{"number", std::get<double>(value)}};
}

data::DecodePlan plan_of(int argc, char** argv) {
  data::DecodePlan plan;
  plan.spec = base::value_or_throw(data::parse_image_spec(argv[2]));
  for (const std::string& step : base::split(argv[3], ',')) {
    if (step == "exif") {
      plan.exif_rotation = true;
      continue;
    }
    const auto kind = base::starts_with(step, "resize=") ? data::Transform::Kind::kResize
                                                         : data::Transform::Kind::kCenterCrop;
    if (step != "none") plan.transforms.push_back({kind, std::stoll(step.substr(step.find('=') + 1))});
  }
  for (int i = 4; i < argc; ++i) plan.fields.push_back({{argv[i]}, data::FieldKind::kAny});
  return plan;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  try {
    const data::DecodePlan plan = plan_of(argc, argv);
    data::ShardReader reader(base::value_or_throw(data::open_source(argv[1])), {});
    data::RawSample raw;
    while (base::value_or_throw(reader.next(raw))) {
      const data::Sample sample = base::value_or_throw(data::decode_sample(raw, plan));
      json line = {{"key", sample.key}, {"fields", json::object()}};
      for (std::size_t i = 0; i < sample.fields.size(); ++i)
        line["fields"][plan.fields[i].extensions[0]] = describe(sample.fields[i]);
      std::printf("%s\n", line.dump().c_str());
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
