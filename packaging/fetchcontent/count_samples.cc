// Counts the samples of WebDataset shards: count_samples 'train-{0000..0009}.tar'
#include <sluice/data/dataset.h>

#include <cstdint>
#include <iostream>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: count_samples SHARDS\n";
    return 2;
  }
  try {
    auto dataset = sluice::data::WebDataset(argv[1]).images("jpg;png").labels("cls").batch(64).keep();
    auto stream = dataset.open();
    std::int64_t samples = 0;
    while (auto batch = stream->next()) samples += batch->count;
    std::cout << samples << " samples\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
