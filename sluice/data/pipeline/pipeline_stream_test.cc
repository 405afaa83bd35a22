#include "sluice/data/pipeline/pipeline_stream.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "sluice/data/test_support.h"

namespace sluice::data {
namespace {

// Batches come late because of decoding: more threads do it, and the order stays.
TEST(PipelineStream, MoreThreadsDecodeWhereTheyAreWaitedFor) {
  const test::Folder folder;
  test::Members members;
  for (int i = 0; i < 200; ++i) members.emplace_back(std::to_string(1000 + i) + ".cls", std::to_string(i));
  StreamSource source;
  source.read = std::make_unique<ReadSettings>();
  source.read->urls =
      std::make_shared<const std::vector<std::string>>(1, folder.write("a.tar", test::archive(members)));
  source.decode.spec = ImageSpec{};
  source.decode.fields.push_back({{"cls"}, FieldKind::kLabel});
  source.maps.emplace_back([](Sample&) { std::this_thread::sleep_for(std::chrono::milliseconds(10)); });
  StreamOptions options;
  options.sources.push_back(std::move(source));
  options.part.rows = 4;
  options.part.remainder = Remainder::kKeep;
  options.max_workers = 5;
  int heard = 0;
  options.on_workers = [&heard](int workers) { heard = workers; };
  PipelineStream stream(std::move(options));
  std::int64_t next = 0;
  while (const auto batch = stream.next())
    for (std::int64_t row = 0; row < batch->size(); ++row)
      EXPECT_EQ(batch->label.data<std::int64_t>()[row], next++);
  EXPECT_EQ(next, 200);
  const int decoders = stream.statistics().decoders;
  EXPECT_GT(decoders, 1);
  EXPECT_LE(decoders, 5);
  EXPECT_EQ(heard, decoders);
}

}  // namespace
}  // namespace sluice::data
