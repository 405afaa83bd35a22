// How fast shards are read through the public API.
//
//   bench_data_read MODE SHARDS [--threads N] [--seconds S] [--batch ROWS] [--shuffle SAMPLES]
//
// MODE: tar       the members' bytes as they are (png;jpg and cls)
//       png       images → uint8 batches
//       jpeg      the same, of the jpg members
//       imagenet  jpg → random resized crop 224, flip → uint8 batches
// Reads whole epochs until S seconds have passed (default 3) and prints JSON with samples and bytes a second,
// and samples a second of processor time, which tells more on a machine that has other work.
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "sluice/base/clock.h"
#include "sluice/base/error.h"
#include "sluice/data/dataset.h"

namespace sluice::data {
namespace {

struct Arguments {
  std::string mode, shards;
  int threads = 1;
  double seconds = 3;
  std::int64_t batch = 128, shuffle = 0;
};

WebDataset dataset_of(const Arguments& arguments) {
  WebDataset data(arguments.shards);
  if (arguments.mode == "tar") {
    data.to_tuple("png;jpg", "cls");
  } else if (arguments.mode == "png") {
    data.images("png").labels("cls");
  } else if (arguments.mode == "jpeg") {
    data.images("jpg;jpeg").labels("cls");
  } else if (arguments.mode == "imagenet") {
    data.images("jpg;jpeg").labels("cls").random_resized_crop(224).flip();
  } else {
    throw_error(Code::kInvalidArgument,
                "expected tar, png, jpeg or imagenet, found '" + arguments.mode + "'");
  }
  data.batch(arguments.batch).keep().workers(arguments.threads);
  if (arguments.shuffle > 0) data.shuffle(arguments.shuffle).keep();
  return data;
}

nlohmann::json measure(const Arguments& arguments) {
  const WebDataset data = dataset_of(arguments);
  const base::Stopwatch clock;
  std::int64_t samples = 0, bytes = 0, epochs = 0;
  Statistics statistics;
  while (clock.seconds() < arguments.seconds) {
    const auto stream = data.open(epochs++);
    while (const auto batch = stream->next()) samples += batch->count;
    statistics = stream->statistics();
    bytes += statistics.bytes;
  }
  const double seconds = clock.seconds();
  return {{"program", "sluice"},
          {"mode", arguments.mode},
          {"threads", arguments.threads},
          {"epochs", epochs},
          {"samples_per_second", static_cast<double>(samples) / seconds},
          {"samples_per_cpu_second",
           static_cast<double>(samples) * CLOCKS_PER_SEC / static_cast<double>(std::clock())},
          {"megabytes_per_second", static_cast<double>(bytes) / seconds / 1e6},
          {"reading_share", reading_share(statistics)},
          {"decoding_share", decoding_share(statistics)}};
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  if (argc < 3 || argc % 2 == 0) throw_error(Code::kInvalidArgument, "expected MODE SHARDS [--name value]…");
  arguments.mode = argv[1];
  arguments.shards = argv[2];
  for (int i = 3; i < argc; i += 2) {
    const std::string name = argv[i];
    const double value = std::atof(argv[i + 1]);
    if (name == "--threads") {
      arguments.threads = static_cast<int>(value);
    } else if (name == "--seconds") {
      arguments.seconds = value;
    } else if (name == "--batch") {
      arguments.batch = static_cast<std::int64_t>(value);
    } else if (name == "--shuffle") {
      arguments.shuffle = static_cast<std::int64_t>(value);
    } else {
      throw_error(Code::kInvalidArgument, "no such option: " + name);
    }
  }
  return arguments;
}

}  // namespace
}  // namespace sluice::data

int main(int argc, char** argv) {
  try {
    std::cout << sluice::data::measure(sluice::data::parse(argc, argv)).dump() << "\n";
    return 0;
  } catch (const sluice::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
