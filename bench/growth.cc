// What reading a set costs at one size, as counts and bytes: bench/growth.py makes tables of several sizes.
//
//   bench_growth CASE SIZE FOLDER
//
// CASE: mixture-order  a mixture's order with SIZE sets: comparisons of two sets a sample
//       mixture        a mixture of SIZE sets with 64 streams each: open files, bytes of buffers
//       streams        one set with SIZE streams: the same
//       no-index       one shard of 4,096 samples without an index, SIZE streams: bytes read ÷ bytes of the
//       set resume         a stream resumed after SIZE per cent of an epoch, before its first batch: bytes
//       read cache          SIZE objects put into a cache that holds nine tenths of them: files looked at
// FOLDER: an empty folder for its files. Prints JSON: the counts, seconds and the process's peak memory.
#include <sys/resource.h>

#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "sluice/base/clock.h"
#include "sluice/base/error.h"
#include "sluice/base/files/file.h"
#include "sluice/data/mixture.h"
#include "sluice/data/order/mixture_order.h"
#include "sluice/data/shards/cache.h"
#include "sluice/data/shards/open_files.h"
#include "sluice/data/shards/shard_index.h"
#include "sluice/data/shards/tar_writer.h"

namespace sluice::data {
namespace {

using Json = nlohmann::json;

std::string write_shard(const std::string& path, int samples, std::size_t bytes) {
  std::string archive;
  for (int i = 0; i < samples; ++i)
    archive += tar_member("k" + std::to_string(100'000 + i) + ".txt", std::string(bytes, 'x'));
  archive += tar_end(archive.size());
  base::value_or_throw(base::write_file_atomically(path, archive));
  return path;
}

WebDataset texts(const std::string& urls) { return WebDataset(urls).to_tuple("txt", "__key__"); }

Json mixture_order(std::int64_t size) {
  const auto sets = static_cast<std::size_t>(size);
  const MixtureOrder order(std::vector<std::int64_t>(sets, 1000),
                           {{0, std::vector<double>(sets, 1.0 / static_cast<double>(size))}}, 1000 * size, 64,
                           64, 1);
  std::int64_t compared = 0;
  const std::int64_t samples = 10 * size;  // of each of some lanes
  for (std::int64_t number = 0; number < 8; ++number) {
    auto lane = order.lane(number, 0, 0);
    for (std::int64_t i = 0; i < samples; ++i) static_cast<void>(lane.next());
    compared += lane.compared();
  }
  return {{"comparisons a sample", static_cast<double>(compared) / static_cast<double>(8 * samples)}};
}

Json held(const Dataset& dataset) {
  const auto stream = dataset.open({});
  std::int64_t samples = 0;
  std::size_t files = 0;
  std::uint64_t buffers = 0;
  while (const auto batch = stream->next()) {
    samples += batch->count;
    files = std::max(files, OpenFile::open_now(HeldKind::kFile));
    buffers = std::max(buffers, ReadBuffer::held());
  }
  return {{"samples", samples}, {"open files", files}, {"bytes of buffers", buffers}};
}

Json mixture(std::int64_t size, const std::string& folder) {
  std::vector<Mix::Source> sources;
  for (std::int64_t set = 0; set < size; ++set)
    sources.push_back(
        {texts(write_shard(base::join_path(folder, "set-" + std::to_string(set) + ".tar"), 256, 700))
             .shuffle(64)
             .batch(64),
         1});
  return held(Mix(std::move(sources)));
}

Json streams(std::int64_t size, const std::string& folder) {
  const std::string shard = write_shard(base::join_path(folder, "one.tar"), static_cast<int>(4 * size), 700);
  base::value_or_throw(write_index(shard, base::value_or_throw(index_shard(shard))));
  return held(texts(shard).shuffle(64).interleave(size).batch(64));
}

Json no_index(std::int64_t size, const std::string& folder) {
  constexpr int kSamples = 4096;
  const std::string shard = write_shard(base::join_path(folder, "one.tar"), kSamples, 700);
  base::value_or_throw(base::write_file_atomically(base::join_path(folder, "sizes.json"),
                                                   "{\"one.tar\": " + std::to_string(kSamples) + "}"));
  const auto stream = texts(shard).shuffle(64).interleave(size).batch(64).open();
  while (stream->next()) {
  }
  return {
      {"bytes read, of the set's", static_cast<double>(stream->statistics().bytes) / (kSamples * 1536.0)}};
}

Json resume(std::int64_t percent, const std::string& folder) {
  constexpr int kSamples = 2000, kBytes = 150'000;
  const std::string shard = write_shard(base::join_path(folder, "one.tar"), kSamples, kBytes);
  base::value_or_throw(write_index(shard, base::value_or_throw(index_shard(shard))));
  const WebDataset data =
      texts(shard).shuffle(100).interleave(1).batch(4).workers(1).prefetch(1).prefetch_memory(1);
  const auto stream = data.open(0, 0, 1, kSamples * percent / 100 / 4);
  stream->next();
  return {{"bytes read, in samples", static_cast<double>(stream->statistics().bytes) / kBytes}};
}

Json cache(std::int64_t size, const std::string& folder) {
  const std::string bytes(1000, 'x');
  const Cache kept(base::join_path(folder, "cache"), static_cast<std::uint64_t>(size) * 1008 * 9 / 10);
  for (std::int64_t i = 0; i < size; ++i) {
    const auto writer = base::value_or_throw(kept.begin("gs://b/" + std::to_string(i), "1", bytes.size()));
    base::value_or_throw(writer->append(bytes));
    base::value_or_throw(writer->commit());
  }
  return {{"files looked at", Cache::listed()}};
}

Json measure(const std::string& name, std::int64_t size, const std::string& folder) {
  if (name == "mixture-order") return mixture_order(size);
  if (name == "mixture") return mixture(size, folder);
  if (name == "streams") return streams(size, folder);
  if (name == "no-index") return no_index(size, folder);
  if (name == "resume") return resume(size, folder);
  if (name == "cache") return cache(size, folder);
  throw_error(Code::kInvalidArgument, "no case '" + name + "': the first lines of growth.cc have them");
}

}  // namespace
}  // namespace sluice::data

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "expected CASE SIZE FOLDER, as the first lines of growth.cc say\n";
    return 2;
  }
  try {
    const sluice::base::Stopwatch clock;
    auto result = sluice::data::measure(argv[1], std::atoll(argv[2]), argv[3]);
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    result["seconds"] = clock.seconds();
    result["peak MB"] = static_cast<double>(usage.ru_maxrss) / 1000;
    std::cout << result.dump() << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
