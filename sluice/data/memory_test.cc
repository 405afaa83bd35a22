#include "sluice/data/memory.h"

#include <gmock/gmock.h>
#include <jpeglib.h>
#include <zlib.h>
#include <zstd.h>

#include <thread>

#include "sluice/data/dataset.h"
#include "sluice/data/decode/decode.h"
#include "sluice/data/images/png_fast.h"
#include "sluice/data/mixture.h"
#include "sluice/data/shards/tar.h"
#include "sluice/data/test_files.h"
#include "sluice/data/test_support.h"

namespace sluice::data {
namespace {

using ::testing::HasSubstr;

// Limits for one test.
class MemoryTest : public ::testing::Test {
 protected:
  MemoryTest() : before_(memory_limits()) { memory_limits().sample = 1 << 20; }
  ~MemoryTest() override { memory_limits() = before_; }

  static std::string error_of(const std::string& extension, const std::string& bytes,
                              std::vector<Transform> transforms = {}) {
    RawSample raw;
    raw.key = "k";
    raw.shard = std::make_shared<const std::string>("s.tar");
    raw.fields.push_back({extension, bytes, "k." + extension, 512, 1024, bytes.size()});
    DecodePlan plan;
    plan.spec = ImageSpec{};
    plan.fields = {{{extension}, FieldKind::kAny}};
    plan.transforms = std::move(transforms);
    const auto sample = decode_sample(raw, plan);
    return sample ? "no error" : sample.error().what();
  }

 private:
  const MemoryLimits before_;
};

std::string zlib_of(const std::string& text, int window) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

// A PNG with a further chunk after its header.
std::string png_with(const std::string& chunk) {
  const std::string png = test::gray_png(7);
  const auto sum = crc32(0, reinterpret_cast<const Bytef*>(chunk.data()), static_cast<uInt>(chunk.size()));
  return png.substr(0, 33) + big_endian(static_cast<std::uint32_t>(chunk.size() - 4)) + chunk +
         big_endian(static_cast<std::uint32_t>(sum)) + png.substr(33);
}

TEST_F(MemoryTest, WhatIsUnpackedIsBounded) {
  const std::string zeros = zlib_of(std::string(100 << 20, '0'), 15 + 16);
  EXPECT_THAT(error_of("txt.gz", zeros), HasSubstr("s.tar: member k.txt.gz (header at byte 512): "));
  EXPECT_THAT(error_of("txt.gz", zeros), HasSubstr("expected at most 1048576 bytes for a sample"));
  EXPECT_EQ(error_of("txt.gz", zlib_of(std::string(100'000, '0'), 15 + 16)), "no error");
}

// 64 MiB of text in some kB, as a comment and as a profile.
TEST_F(MemoryTest, ChunksOfPngAreBounded) {
  memory_limits().sample = std::uint64_t{1} << 30;
  const std::string packed = zlib_of(std::string(64 << 20, 'x'), 15);
  EXPECT_THAT(error_of("png", png_with(std::string("zTXtkey\0\0", 9) + packed)),
              HasSubstr("not a valid PNG"));
  EXPECT_THAT(error_of("png", png_with(std::string("iCCPkey\0\0", 9) + packed)),
              HasSubstr("not a valid PNG"));
  EXPECT_EQ(error_of("png", png_with(std::string("zTXtkey\0\0", 9) + zlib_of("a comment", 15))), "no error");
}

TEST_F(MemoryTest, LargeImagesAreRefusedByTheirHeaders) {
  memory_limits().pixels = 20;
  for (const char* png : {test::kPngColor, test::kPngAlpha})
    EXPECT_THAT(error_of("png", test::from_base64(png)),
                HasSubstr("5 × 6 pixels are too many: expected at most 20"));
  for (const char* jpeg : {test::kJpegColor, test::kJpegProgressive})
    EXPECT_THAT(error_of("jpg", test::from_base64(jpeg)), HasSubstr("16 × 16 pixels are too many"));
  EXPECT_THAT(error_of("webp", test::from_base64(test::kWebpLossless)),
              HasSubstr("20 × 12 pixels are too many"));
  EXPECT_THAT(error_of("pgm", "P5 1000000 1000000 255 "), HasSubstr("pixels are too many"));
  memory_limits().pixels = 256;
  EXPECT_EQ(error_of("jpg", test::from_base64(test::kJpegProgressive)), "no error");
  memory_limits().sample = 1000;
  EXPECT_THAT(error_of("jpg", test::from_base64(test::kJpegProgressive)),
              HasSubstr("pixels and coefficients of a JPEG"));
  memory_limits().sample = 1500;
  EXPECT_THAT(error_of("npz", test::from_base64(test::kNpzDeflated)), HasSubstr("no error"));
  memory_limits().sample = 600;
  EXPECT_THAT(error_of("npz", test::from_base64(test::kNpzDeflated)),
              HasSubstr("an npz member of 448 bytes"));
}

// A strip of 1 × 65000 would become 256 × 16,640,000.
TEST_F(MemoryTest, StripsDoNotGrowWithoutBound) {
  memory_limits().sample = std::uint64_t{1} << 30;
  EXPECT_THAT(
      error_of("pgm", "P5 65000 1 255 " + std::string(65'000, 'x'), {{Transform::Kind::kResize, 256}}),
      HasSubstr("16640000 × 256 pixels are too many"));
}

// What a thread keeps for its next image is not counted by any limit.
TEST_F(MemoryTest, WhatAThreadKeepsIsBounded) {
  memory_limits().sample = std::uint64_t{1} << 30;
  static_cast<void>(pixel_memory(0));  // what other tests have left
  const auto gray = [](int side) {
    return base::str("P5 ", side, " ", side, " 255 ",
                     std::string(static_cast<std::size_t>(side) * static_cast<std::size_t>(side), 'x'));
  };
  EXPECT_EQ(error_of("pgm", gray(4000)), "no error");  // 48 MB of pixels
  EXPECT_LE(pixel_memory(0).capacity(), kKeptBytes);
  EXPECT_EQ(error_of("pgm", gray(100)), "no error");
  EXPECT_GE(pixel_memory(0).capacity(), 100u * 100 * 3);
}

TEST_F(MemoryTest, WhatResizingAndOtherColoursTakeIsClaimed) {
  const std::string text = "P6 300 300 255 " + std::string(270'000, 'x');
  memory_limits().sample = 1'300'000;  // 540,000 bytes of members and pixels, and as much again when mirrored
  EXPECT_EQ(error_of("ppm", text), "no error");
  EXPECT_THAT(error_of("ppm", text, {{Transform::Kind::kResize, 400}}),
              HasSubstr("a resized image of 840000"));
}

// A progressive file whose first scan comes again and again.
TEST_F(MemoryTest, ScansOfAJpegAreCounted) {
  const std::string jpeg = test::from_base64(test::kJpegProgressive);
  const std::size_t first = jpeg.find("\xff\xda"), next = jpeg.find("\xff\xc4", first);
  const auto with = [&](int more) {
    std::string many = jpeg.substr(0, next);
    for (int i = 0; i < more; ++i) many += jpeg.substr(first, next - first);
    return error_of("jpg", many + jpeg.substr(next));
  };
  EXPECT_EQ(with(100), "no error");
  EXPECT_THAT(with(1000), HasSubstr("it has more than 500 scans"));
}

// An array of two million ones: a tree of values of a multiple of its bytes.
TEST_F(MemoryTest, ValuesOfANestedFormatAreClaimed) {
  memory_limits().sample = 32 << 20;
  const std::string head("\xdd\x00\x1e\x84\x80", 5);  // array 32, 2,000,000 items
  EXPECT_THAT(error_of("mp", head + std::string(2'000'000, '\x01')),
              HasSubstr("the values of a nested format"));
}

// Members and what they are decoded to are held at once.
TEST_F(MemoryTest, AMemberCountsForItsDecoding) {
  EXPECT_EQ(error_of("pgm", "P5 300 250 255 " + std::string(75'000, 'x')), "no error");
  // 945,000 bytes of decoding alone
  EXPECT_THAT(error_of("pgm", "P5 300 450 255 " + std::string(135'000, 'x')),
              HasSubstr("expected at most 1048576 bytes for a sample"));
}

TEST_F(MemoryTest, APayloadTakesNoMoreRoomThanItHas) {
  memory_limits().sample = std::uint64_t{1} << 30;
  const std::size_t size = (std::size_t{40} << 20) + 1;
  TarReader tar(memory_source("s.tar", test::archive({{"a.bin", std::string(size, 'x')}})));
  Member member;
  std::string payload;
  ASSERT_TRUE(tar.next(member).value_or(false));
  ASSERT_TRUE(tar.read_payload(payload));
  EXPECT_EQ(payload.size(), size);
  EXPECT_LT(payload.capacity(), size + size / 8);
}

TEST_F(MemoryTest, ReadersShareTheirs) {
  memory_limits().readers = 1000;
  ReaderMemory one, other;
  EXPECT_TRUE(one.grow(600, [] { return "one"; }));
  EXPECT_THAT(
      other.grow(500, [] { return "other"; }).error().what(),
      HasSubstr("other of 500 bytes: shuffle buffers, batches and unpackers hold 600 already, expected at "
                "most 1000"));
  one.shrink(200);
  EXPECT_TRUE(other.grow(500, [] { return "other"; }));
  one.clear();
  EXPECT_TRUE(other.grow(500, [] { return "other"; }));
}

// Samples that are much larger than the mean by which the shuffle buffer was measured.
TEST_F(MemoryTest, WhatTheShuffleBufferCannotHoldIsABadSample) {
  memory_limits().readers = 100'000;
  const test::Folder folder;
  test::Members members;
  for (int i = 0; i < 40; ++i)
    members.emplace_back(base::str("k", 100 + i, ".txt"), std::string(i < 20 ? 10 : 10'000, 'x'));
  const std::string url = folder.write("s.tar", test::archive(members));
  const auto stream = [&](OnError policy) {
    return WebDataset(url)
        .to_tuple("txt")
        .shuffle(40)
        .interleave(1)
        .on_error(policy)
        .max_bad(20)
        .batch(1)
        .open();
  };
  EXPECT_THAT(test::thrown([&] {
                const auto all = stream(OnError::kStop);
                while (all->next()) {
                }
              }),
              HasSubstr("allow more with --max-buffered"));
  auto some = stream(OnError::kSkip);
  std::int64_t batches = 0;
  EXPECT_THAT(test::thrown([&] {
                while (some->next()) ++batches;
              }),
              HasSubstr("all samples of a batch are bad"));
  some.reset();  // its threads read the limits
  memory_limits().readers = 1'000'000;
  const auto whole = stream(OnError::kStop);
  for (batches = 0; whole->next();) ++batches;
  EXPECT_EQ(batches, 40);
}

TEST_F(MemoryTest, ASampleByItsNumberSaysThatItIsTooLarge) {
  const test::Folder folder;
  const auto set =
      WebDataset(folder.write("s.tar", test::archive({{"a.bin", std::string(2 << 20, 'x')}, {"b.bin", "b"}})))
          .to_tuple("bin");
  EXPECT_THAT(test::thrown([&] { static_cast<void>(set[0]); }),
              HasSubstr("member a.bin (header at byte 0) has 2097152 bytes: expected at most 1048576"));
  EXPECT_EQ(std::get<std::string>(set[1].fields[0]), "b");
}

// As that of one set: the samples of a batch before they are decoded.
TEST_F(MemoryTest, ABatchOfAMixtureIsBounded) {
  const test::Folder folder;
  test::Members members;
  for (int i = 0; i < 24; ++i)
    members.emplace_back(base::str("k", 100 + i, ".txt"), std::string(10'000, 'x'));
  const std::string url = folder.write("s.tar", test::archive(members));
  const auto next = [&](std::int64_t rows) {
    const auto set = WebDataset(url).to_tuple("txt").shuffle(1).interleave(1).batch(rows);
    return Mix({{set, 1}, {set, 1}}).open({.epoch = 0})->next().has_value();
  };
  memory_limits().readers = 100'000;
  EXPECT_TRUE(next(4));
  EXPECT_THAT(test::thrown([&] { next(12); }), HasSubstr("shuffle buffers, batches and unpackers hold"));
}

TEST_F(MemoryTest, ADecodedBatchIsBounded) {
  memory_limits().readers = 100'000;
  const test::Folder folder;
  test::Members members;
  for (int i = 0; i < 8; ++i) members.emplace_back(base::str("k", i, ".png"), test::gray_png(i, 100));
  const std::string url = folder.write("s.tar", test::archive(members));
  const auto next = [&](std::int64_t rows) {
    return WebDataset(url).images("png").batch(rows).open()->next().has_value();
  };
  EXPECT_TRUE(next(3));  // of 30 kB each
  EXPECT_THAT(test::thrown([&] { next(4); }),
              HasSubstr("the decoded samples of its batch, including it, have more than 100000 bytes"));
}

// A window of 128 MiB for each stream, whatever it unpacks to.
TEST_F(MemoryTest, WindowsOfZstdAreCounted) {
  memory_limits().readers = std::uint64_t{200} << 20;
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 27);
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  const std::string text(1000, 'x');
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  ZSTD_inBuffer in{text.data(), text.size(), 0};
  ZSTD_outBuffer out{packed.data(), packed.size(), 0};
  // In two calls, so that the text's size does not decide the window's.
  ASSERT_EQ(ZSTD_isError(ZSTD_compressStream2(context, &out, &in, ZSTD_e_continue)), 0u);
  ASSERT_EQ(ZSTD_compressStream2(context, &out, &in, ZSTD_e_end), 0u);
  ZSTD_freeCCtx(context);
  packed.resize(out.pos);
  char some[10];
  auto first = zstd_source(memory_source("a", packed)), second = zstd_source(memory_source("b", packed));
  EXPECT_TRUE(first->read(some, sizeof some));
  const auto refused = second->read(some, sizeof some);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what(), HasSubstr("b: the window of its zstd stream"));
  first.reset();
  EXPECT_TRUE(zstd_source(memory_source("c", packed))->read(some, sizeof some));
}

// What does not fit beside other samples waits for them, and one may always go on.
TEST_F(MemoryTest, SamplesWaitForEachOther) {
  memory_limits().sample = 901'000;
  memory_limits().process = 2'000'000;
  std::atomic<int> done{0};
  std::atomic<std::int64_t> held{0}, most{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k) {
        const SampleMemory memory;
        for (int step = 0; step < 3; ++step) {
          done += claim_memory(300'000, "a step") ? 1 : 0;
          const std::int64_t now = held += 300'000;
          for (std::int64_t seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
          }
          std::this_thread::yield();
        }
        held -= 900'000;  // before the claims go
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(done, 8 * 100 * 3);
  EXPECT_LE(most, 2'000'000);  // with the one that goes on while the others wait
}

}  // namespace
}  // namespace sluice::data
