// Reads WebDataset shards of images and labels, and prints their contents.
//
//   read_shards 'train-{0000..0009}.tar'
#include <sluice/data/dataset.h>

#include <cstdint>
#include <iostream>
#include <map>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: read_shards SHARDS\n";
    return 2;
  }
  try {
    auto dataset = sluice::data::WebDataset(argv[1]).images("jpg;png").labels("cls").batch(64).keep();
    auto stream = dataset.open();
    std::int64_t samples = 0;
    std::map<std::int64_t, std::int64_t> per_class;
    while (auto batch = stream->next()) {
      if (samples == 0) std::cout << "first batch: " << batch->image.describe() << "\n";
      samples += batch->count;
      for (std::int64_t row = 0; row < batch->count; ++row)
        ++per_class[batch->label.data<std::int64_t>()[row]];
    }
    std::cout << samples << " samples in " << per_class.size() << " classes\n";
    return samples > 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
