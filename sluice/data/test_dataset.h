// The fixture of the tests of whole data sets.
#pragma once

#include <string>
#include <vector>

#include "sluice/data/dataset.h"
#include "sluice/data/test_support.h"

namespace sluice::data {

inline std::string png_of(int value) {
  Pixels pixels{4, 4, 3, std::vector<std::uint8_t>(48)};
  for (std::size_t i = 0; i < 48; ++i)
    pixels.bytes[i] = static_cast<std::uint8_t>(value + static_cast<int>(i));
  return *encode_png(pixels);
}

// Writes shards s-0.tar … with `each` samples; keys and labels are numbered through all shards. `label` is
// the extension of the labels.
class DatasetTest : public ::testing::Test {
 protected:
  std::string shards(int count, int each, const test::Members& extra = {}, const char* label = "cls") {
    int next = 0;
    for (int shard = 0; shard < count; ++shard) {
      test::Members members;
      for (int i = 0; i < each; ++i, ++next) {
        const std::string key = "k" + std::to_string(1000 + next);
        members.emplace_back(key + ".png", png_of(next));
        members.emplace_back(key + "." + label, std::to_string(next % 10));
      }
      if (shard + 1 == count) members.insert(members.end(), extra.begin(), extra.end());
      folder_.write("s-" + std::to_string(shard) + ".tar", test::archive(members));
    }
    return folder_.path("s-{0.." + std::to_string(count - 1) + "}.tar");
  }

  static WebDataset dataset(const std::string& urls) {
    return WebDataset(urls).images("jpg;png").labels("cls").batch(8);
  }

  static std::vector<Batch> all(Stream& stream) {
    std::vector<Batch> batches;
    while (auto batch = stream.next()) batches.push_back(std::move(*batch));
    return batches;
  }
  static std::vector<std::string> keys(const std::vector<Batch>& batches) {
    std::vector<std::string> result;
    for (const Batch& batch : batches) result.insert(result.end(), batch.keys.begin(), batch.keys.end());
    return result;
  }
  // Returns the keys, pixels and labels of an epoch in one string.
  static std::string everything(Stream& stream) {
    std::string text;
    for (const Batch& batch : all(stream)) {
      text += base::join(batch.keys, ",") + "|";
      text.append(batch.image.data<char>(), batch.image.bytes());
      text.append(batch.label.data<char>(), batch.label.bytes());
    }
    return text;
  }

  test::Folder folder_;
};

}  // namespace sluice::data
