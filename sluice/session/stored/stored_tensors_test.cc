#include "sluice/session/stored/stored_tensors.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "sluice/base/files/file.h"
#include "sluice/data/test_bucket.h"
#include "sluice/session/files/tensor_file.h"
#include "sluice/session/stored/stored_ranges.h"

namespace sluice::sessions {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Sizes = std::vector<int64_t>;

template <typename Value>
std::string message(const base::Result<Value>& result) {
  return result ? "" : result.error().what();
}

// A tensor whose elements all differ as far as the type allows.
at::Tensor counted(const Sizes& sizes, at::ScalarType type = at::kFloat, int64_t from = 0) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return (at::arange(from, from + count) % 251).to(type).reshape(sizes);
}

at::Tensor part(at::Tensor tensor, const Sizes& start, const Sizes& sizes) {
  for (size_t d = 0; d < sizes.size(); ++d)
    tensor = tensor.narrow(static_cast<int64_t>(d), start[d], sizes[d]);
  return tensor;
}

class StoredTensorsTest : public testing::Test {
 protected:
  std::string write(const std::string& name, const NamedTensors& tensors) {
    const std::string path = folder_.path(name);
    EXPECT_TRUE(write_safetensors(path, tensors));
    return path;
  }
  // A file with this header and data of that many bytes.
  std::string write_header(const std::string& header, size_t data) {
    const uint64_t length = header.size();
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    EXPECT_TRUE(base::write_file_atomically(folder_.path("x"), bytes + header + std::string(data, '\0')));
    return folder_.path("x");
  }
  base::TemporaryDirectory folder_ = base::value_or_throw(base::TemporaryDirectory::create());
};

TEST_F(StoredTensorsTest, BlocksOfRandomTensorsAreTheTensorsParts) {
  std::mt19937 random(7);
  const auto below = [&](int64_t end) { return static_cast<int64_t>(random() % static_cast<uint64_t>(end)); };
  for (int round = 0; round < 40; ++round) {
    NamedTensors tensors;
    const at::ScalarType types[] = {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble, at::kByte};
    for (int i = 0; i < 4; ++i) {
      Sizes sizes(static_cast<size_t>(below(4)));
      for (int64_t& size : sizes) size = 1 + below(9);
      tensors.emplace_back(base::str("t", i), counted(sizes, types[below(5)], i));
    }
    const std::string path = write("x.safetensors", tensors);
    StoredReader reader({.range_bytes = 64});
    const StoredTensors stored = base::value_or_throw(reader.list(path));
    ASSERT_EQ(stored.size(), tensors.size());
    std::vector<StoredBox> boxes;
    std::vector<at::Tensor> wanted;
    for (const auto& [name, tensor] : tensors) {
      EXPECT_EQ(stored.at(name).type, tensor.scalar_type());
      Sizes start, sizes;
      for (const int64_t size : tensor.sizes()) {
        start.push_back(below(size));
        sizes.push_back(1 + below(size - start.back()));
      }
      const at::ScalarType type = round % 2 == 0 ? at::kFloat : tensor.scalar_type();
      boxes.push_back({name, &stored.at(name), start, sizes, type});
      wanted.push_back(part(tensor, start, sizes).to(type));
    }
    const auto blocks = base::value_or_throw(reader.read(boxes));
    for (size_t i = 0; i < boxes.size(); ++i) {
      EXPECT_TRUE(blocks[i].is_contiguous());
      EXPECT_EQ(blocks[i].scalar_type(), boxes[i].type);
      EXPECT_TRUE(blocks[i].sizes() == wanted[i].sizes() && at::equal(blocks[i], wanted[i])) << round;
    }
    EXPECT_LE(static_cast<double>(reader.reads().bytes), 1.25 * static_cast<double>(reader.reads().needed));
  }
}

TEST_F(StoredTensorsTest, LongConversionsAndComplexNumbers) {
  // More elements than are converted at a time, whose parts of a file end within elements.
  const at::Tensor half = counted({700, 301}, at::kHalf), pairs = at::randn({5, 3}, at::kComplexDouble);
  const std::string path =
      write("x.safetensors", {{"half", half}, {"none", at::empty({0, 3})}, {"c", pairs}});
  StoredReader reader;
  const StoredTensors stored = base::value_or_throw(reader.list(path));
  const auto read = [&](const std::string& name, Sizes start, Sizes sizes, at::ScalarType type) {
    return base::value_or_throw(
        reader.read(StoredBox{name, &stored.at(name), std::move(start), std::move(sizes), type}));
  };
  EXPECT_TRUE(at::equal(read("half", {0, 0}, {700, 301}, at::kFloat), half.to(at::kFloat)));
  EXPECT_TRUE(at::equal(read("half", {3, 1}, {690, 300}, at::kDouble),
                        part(half, {3, 1}, {690, 300}).to(at::kDouble)));
  EXPECT_EQ(read("none", {0, 0}, {0, 3}, at::kFloat).sizes(), at::IntArrayRef({0, 3}));
  EXPECT_TRUE(at::equal(read("c", {1, 0}, {3, 2}, at::kComplexDouble), part(pairs, {1, 0}, {3, 2})));
}

TEST_F(StoredTensorsTest, NeighboursAreReadTogetherWhileLittleIsWasted) {
  const at::Tensor rows = counted({100, 40}, at::kByte);
  const std::string path = write("x.safetensors", {{"a", rows}, {"b", counted({100}, at::kByte)}});
  struct Case {
    Sizes start, sizes;
    int64_t requests, bytes;
  };
  for (const auto& [start, sizes, requests, bytes] : {
           Case{{0, 0}, {100, 40}, 1, 4000},
           Case{{10, 0}, {20, 40}, 1, 800},
           Case{{0, 0}, {100, 36}, 1, 3996},   // 1.11 of what is needed: in one read, up to the last element
           Case{{0, 4}, {100, 32}, 1, 3992},   // 1.2475
           Case{{0, 0}, {100, 31}, 15, 3865},  // seven rows and their gaps are 1.249, eight 1.254
           Case{{0, 0}, {100, 12}, 100, 1200},
       }) {
    StoredReader reader;
    const StoredTensors stored = base::value_or_throw(reader.list(path));
    const auto block =
        base::value_or_throw(reader.read(StoredBox{"a", &stored.at("a"), start, sizes, at::kByte}));
    EXPECT_TRUE(at::equal(block, part(rows, start, sizes)));
    const StoredReads reads = reader.reads();
    EXPECT_EQ(reads.requests, requests);
    EXPECT_EQ(reads.bytes, bytes);
    EXPECT_EQ(reads.needed, sizes[0] * sizes[1]);
  }
  // Neighbours of two tensors are one read, too.
  StoredReader reader;
  const StoredTensors stored = base::value_or_throw(reader.list(path));
  base::value_or_throw(reader.read(
      {{"a", &stored.at("a"), {0, 0}, {100, 40}, at::kByte}, {"b", &stored.at("b"), {0}, {100}, at::kByte}}));
  EXPECT_EQ(reader.reads().requests, 1);
}

TEST(StoredRanges, LongRangesAreCut) {
  StoredBox box{"a", nullptr, {0}, {1000}, at::kInt};
  std::vector<Segment> segments;
  add_segments({"f", 10, {0}, {1000}}, box, 4, {}, segments);
  ASSERT_EQ(segments.size(), 1u);
  const auto ranges = plan_ranges(segments, {4}, {.range_bytes = 1600}, false);
  ASSERT_EQ(ranges.size(), 3u);
  EXPECT_EQ(ranges[0].begin, 10u);
  EXPECT_EQ(ranges[1].begin, 1610u);
  EXPECT_EQ(ranges[2].end, 4010u);
  EXPECT_EQ(segments[1].to, 400);
  EXPECT_TRUE(fills_box(segments, box, 4));
}

TEST(StoredRanges, ThousandsOfSmallRequestsAreJoined) {
  const StoredBox box{"a", nullptr, {0, 0}, {5000, 1}, at::kByte};
  for (const bool elsewhere : {false, true}) {
    std::vector<Segment> segments;
    add_segments({"f", 0, {0, 0}, {5000, 8}}, box, 1, {}, segments);
    EXPECT_EQ(plan_ranges(segments, {1}, {}, elsewhere).size(), elsewhere ? 1u : 5000u);
  }
}

TEST_F(StoredTensorsTest, PiecesOfSeveralFilesAreJoined) {
  const at::Tensor whole = counted({6, 8});
  StoredReader reader;
  StoredTensor tensor{at::kFloat, {6, 8}, {}};
  for (int64_t i = 0; i < 4; ++i) {
    const Sizes start = {i / 2 * 3, i % 2 * 4}, sizes = {3, 4};
    const std::string path = write(base::str("p", i), {{"x", part(whole, start, sizes)}});
    StoredPiece piece = base::value_or_throw(reader.list(path)).at("x").pieces.front();
    piece.start = start;
    tensor.pieces.push_back(piece);
  }
  const auto read = [&](const StoredTensor& of, const Sizes& start, const Sizes& sizes) {
    return reader.read(StoredBox{"x", &of, start, sizes, at::kFloat});
  };
  EXPECT_TRUE(at::equal(base::value_or_throw(read(tensor, {0, 0}, {6, 8})), whole));
  EXPECT_TRUE(at::equal(base::value_or_throw(read(tensor, {2, 3}, {3, 2})), part(whole, {2, 3}, {3, 2})));
  // What a damaged list of pieces may say.
  StoredTensor wrong = tensor;
  wrong.pieces.pop_back();
  EXPECT_THAT(message(read(wrong, {0, 0}, {6, 8})), HasSubstr("leave some of its elements out"));
  EXPECT_TRUE(read(wrong, {0, 0}, {3, 8}));
  wrong.pieces.push_back(wrong.pieces[0]);
  EXPECT_THAT(message(read(wrong, {0, 0}, {6, 8})), HasSubstr("have some of them twice"));
  wrong = tensor;
  wrong.pieces[3].start = {4, 4};
  EXPECT_THAT(message(read(wrong, {0, 0}, {6, 8})), HasSubstr("does not fit its shape"));
  wrong.pieces[3].start = {3};
  EXPECT_THAT(message(read(wrong, {0, 0}, {6, 8})), HasSubstr("does not fit its shape"));
  wrong = tensor;
  wrong.pieces[3].begin += 1;
  EXPECT_THAT(message(read(wrong, {0, 0}, {6, 8})), AllOf(HasSubstr("p3 has"), HasSubstr("tensor x")));
  wrong.pieces[3].begin = ~uint64_t{0};
  EXPECT_FALSE(read(wrong, {0, 0}, {6, 8}));
  wrong = tensor;
  wrong.pieces[0].sizes = {int64_t{1} << 62, int64_t{1} << 62};
  EXPECT_FALSE(read(wrong, {0, 0}, {6, 8}));
  for (const Sizes& start : {Sizes{0, 1}, Sizes{-1, 0}, Sizes{0}, Sizes{7, 0}})
    EXPECT_THAT(message(read(tensor, start, {6, 8})), HasSubstr("is not in its shape"));
}

TEST_F(StoredTensorsTest, WrongHeadersNameFileAndTensor) {
  const auto list = [&](const std::string& header, size_t data) {
    const std::string text = message(StoredReader().list(write_header(header, data)));
    if (!text.empty()) {
      EXPECT_THAT(text, HasSubstr(folder_.path("x")));
    }
    return text;
  };
  EXPECT_EQ(list(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8), "");
  EXPECT_THAT(list(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7), HasSubstr("cut off?"));
  EXPECT_THAT(list(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8), HasSubstr("tensor a"));
  EXPECT_THAT(list(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                   R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                   12),
              HasSubstr("no overlaps"));
  EXPECT_THAT(list("{\"a\":", 8), HasSubstr("not a JSON object"));
  ASSERT_TRUE(
      base::write_file_atomically(folder_.path("x"), std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8)));
  EXPECT_THAT(message(StoredReader().list(folder_.path("x"))), HasSubstr("not a safetensors file"));
  ASSERT_TRUE(base::write_file_atomically(folder_.path("x"), "abc"));
  EXPECT_THAT(message(StoredReader().list(folder_.path("x"))), HasSubstr("not a safetensors file"));
  const auto torch_file = StoredReader().list(std::string(SLUICE_SESSION_TESTDATA) + "/state_dict.pt");
  ASSERT_FALSE(torch_file);
  EXPECT_EQ(torch_file.error().code(), Code::kUnimplemented);
}

// A header that is longer than the first read.
TEST_F(StoredTensorsTest, LongHeaders) {
  NamedTensors tensors;
  for (int i = 0; i < 2000; ++i) tensors.emplace_back(base::str("tensor-", i), counted({3}, at::kFloat, i));
  const std::string path = write("x.safetensors", tensors);
  StoredReader reader;
  const StoredTensors stored = base::value_or_throw(reader.list(path));
  ASSERT_EQ(stored.size(), 2000u);
  const StoredBox box{"tensor-1999", &stored.at("tensor-1999"), {0}, {3}, at::kFloat};
  EXPECT_TRUE(at::equal(base::value_or_throw(reader.read(box)), tensors.back().second));
}

TEST_F(StoredTensorsTest, AReplacedFileIsAnError) {
  const std::string path = write("x.safetensors", {{"a", at::zeros({4})}});
  StoredReader reader;
  const StoredTensors stored = base::value_or_throw(reader.list(path));
  write("x.safetensors", {{"a", at::ones({4})}});
  EXPECT_THAT(message(reader.read(StoredBox{"a", &stored.at("a"), {0}, {4}, at::kFloat})),
              AllOf(HasSubstr(path), HasSubstr("was replaced")));
}

TEST_F(StoredTensorsTest, IndexesAreChecked) {
  write("one", {{"a", counted({2})}});
  write("two", {{"b", counted({3})}});
  const auto list = [&](const std::string& map) {
    EXPECT_TRUE(base::write_file_atomically(folder_.path("model.safetensors.index.json"),
                                            R"({"weight_map":)" + map + "}"));
    return StoredReader().list(folder_.path());
  };
  const auto good = list(R"({"a":"one","b":"two"})");
  ASSERT_TRUE(good) << message(good);
  EXPECT_EQ(good->at("b").pieces.front().file, folder_.path("two"));
  EXPECT_THAT(message(list(R"({"a":"one","c":"two"})")),
              AllOf(HasSubstr("tensor c is missing"), HasSubstr(folder_.path("two"))));
  EXPECT_THAT(message(list(R"({"a":"../one"})")), HasSubstr("must be in a file of the same folder"));
  EXPECT_NE(message(list(R"({"a":"three"})")), "");
  write("two", {{"a", counted({3})}});
  EXPECT_THAT(message(list(R"({"a":"one","a2":"two"})")), HasSubstr("missing"));
  write("two", {{"a", counted({3})}, {"b", counted({3})}});
  EXPECT_THAT(message(list(R"({"a":"one","b":"two"})")), HasSubstr("is in another file of the index too"));
  EXPECT_THAT(message(StoredReader().list(folder_.path("nothing"))), HasSubstr(folder_.path("nothing")));
}

// The same files in a bucket, with counted requests.
TEST_F(StoredTensorsTest, ABucketIsAskedForTheBlocksBytes) {
  auto& service = data::test::service();
  const at::Tensor table = at::randn({512, 256}), norm = at::randn({256});
  const auto put = [&](const std::string& name) {
    service.bucket.put("m/" + name, base::value_or_throw(base::read_file(folder_.path(name))));
  };
  write("one.safetensors", {{"table", table}});
  write("two.safetensors", {{"norm", norm}});
  ASSERT_TRUE(
      base::write_file_atomically(folder_.path("model.safetensors.index.json"),
                                  R"({"weight_map":{"table":"one.safetensors","norm":"two.safetensors"}})"));
  for (const char* name : {"one.safetensors", "two.safetensors", "model.safetensors.index.json"}) put(name);
  StoredReader reader;
  const StoredTensors stored = base::value_or_throw(reader.list("gs://b/m"));
  EXPECT_EQ(stored.at("norm").pieces.front().file, "gs://b/m/two.safetensors");
  const int before = service.media;
  const auto blocks =
      base::value_or_throw(reader.read({{"table", &stored.at("table"), {128, 0}, {128, 256}, at::kBFloat16},
                                        {"norm", &stored.at("norm"), {0}, {256}, at::kFloat}}));
  EXPECT_TRUE(at::equal(blocks[0], part(table, {128, 0}, {128, 256}).to(at::kBFloat16)));
  EXPECT_TRUE(at::equal(blocks[1], norm));
  EXPECT_EQ(service.media - before, 2);
  EXPECT_EQ(reader.reads().requests, 2);
  EXPECT_EQ(reader.reads().bytes, 128 * 256 * 4 + 256 * 4);
  EXPECT_EQ(reader.reads().needed, reader.reads().bytes);
  EXPECT_EQ(base::value_or_throw(StoredReader().list("gs://b/m/one.safetensors")).size(), 1u);
  EXPECT_THAT(message(StoredReader().list("gs://b/none")), HasSubstr("gs://b/none"));
}

}  // namespace
}  // namespace sluice::sessions
