// Readers have fewer files and less memory than one each: counts at two sizes.
#include "sluice/data/shards/open_files.h"

#include <sys/resource.h>

#include <memory>

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/mixture.h"
#include "sluice/data/test_dataset.h"

namespace sluice::data {
namespace {

void limit_files(rlim_t soft, rlim_t hard) {
  const rlimit limit{soft, hard};
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) ::_exit(3);
}

class OpenFilesTest : public DatasetTest {
 protected:
  // A mixture of sets with 64 streams each, whose ranges are all open from the first batch on.
  Mix mix(int sets) {
    std::vector<Mix::Source> sources;
    for (int set = 0; set < sets; ++set) {
      test::Members members;
      for (int i = 0; i < 128; ++i)
        members.emplace_back("k" + std::to_string(1000 * (set + 1) + i) + ".txt", std::string(700, 'x'));
      const std::string shard = folder_.write("set-" + std::to_string(set) + ".tar", test::archive(members));
      sources.push_back(
          {WebDataset(shard).to_tuple("txt", "__key__").shuffle(64).interleave(64).batch(64), 1});
    }
    return Mix(std::move(sources));
  }
  static std::string order_of(const Dataset& dataset) {
    const auto stream = dataset.open({});
    return base::join(keys(all(*stream)), " ");
  }
};

TEST_F(OpenFilesTest, MoreStreamsThanFiles) {
  for (const int sets : {2, 4}) {
    const Mix mixture = mix(sets);
    const std::string expected = order_of(mixture);
    ASSERT_EQ(base::split(expected, ' ').size(), static_cast<std::size_t>(128 * sets));
    EXPECT_EXIT(
        {
          limit_files(64, 64);
          const bool same = order_of(mixture) == expected;
          ::_exit(same && OpenFile::limit(HeldKind::kFile) == 32 ? 0 : 1);
        },
        ::testing::ExitedWithCode(0), "");
  }
}

TEST_F(OpenFilesTest, TheSoftLimitIsRaisedWhenItIsNeeded) {
  const Mix small = mix(1), large = mix(3);
  EXPECT_EXIT(
      {
        limit_files(300, 1000);
        rlimit limit{};
        static_cast<void>(order_of(small));
        ::getrlimit(RLIMIT_NOFILE, &limit);
        if (limit.rlim_cur != 300) ::_exit(1);
        static_cast<void>(order_of(large));
        ::getrlimit(RLIMIT_NOFILE, &limit);
        ::_exit(limit.rlim_cur == 1000 ? 0 : 2);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(OpenFilesTest, AReplacedFileIsAnError) {
  const std::string path = folder_.write("x", std::string(1000, 'a'));
  EXPECT_EXIT(
      {
        limit_files(64, 64);
        const auto source = open_file_source(path);
        char byte = 0;
        if (!source || (*source)->read(&byte, 1).value_or(0) != 1) ::_exit(1);
        if (!OpenFile::make_room() || OpenFile::open_now(HeldKind::kFile) != 0) ::_exit(2);
        if ((*source)->read(&byte, 1).value_or(0) != 1 || byte != 'a') ::_exit(3);
        static_cast<void>(OpenFile::make_room());
        base::value_or_throw(base::write_file_atomically(path, std::string(1000, 'b')));
        const auto read = (*source)->read(&byte, 1);
        ::_exit(!read && read.error().code() == Code::kDataLoss ? 0 : 4);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(ReadBuffer, ManyReadersShareTheMemory) {
  const std::uint64_t before = ReadBuffer::held();
  std::vector<std::unique_ptr<ReadBuffer>> buffers;
  for (const std::size_t count : {256, 2048}) {
    while (buffers.size() < count) buffers.push_back(std::make_unique<ReadBuffer>());
    for (const auto& buffer : buffers) buffer->fit();
    EXPECT_LE(ReadBuffer::held() - before, 32u << 20) << count;
    for (const auto& buffer : buffers) EXPECT_GE(buffer->size(), 4096u);
  }
  buffers.back()->fit(100'000);
  EXPECT_GE(buffers.back()->size(), 100'000u);
  buffers.clear();
  EXPECT_EQ(ReadBuffer::held(), before);
}

}  // namespace
}  // namespace sluice::data
