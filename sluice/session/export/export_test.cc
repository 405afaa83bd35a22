// Weights that are exported in parts, from a checkpoint of one file and of pieces.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sluice/base/text/join.h"
#include "sluice/data/test_bucket.h"
#include "sluice/session/export/export_weights.h"
#include "sluice/session/export/test_checkpoint.h"
#include "sluice/session/export/weight_parts.h"
#include "sluice/session/files/weights.h"
#include "sluice/session/stored/stored_stream.h"

namespace sluice::sessions {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// 68, 96, 4, 32, 48, 0, 40 and 1 bytes.
NamedTensors small_model() {
  return {{"a.weight", at::arange(17, at::kFloat)},
          {"b.weight", at::arange(24, at::kFloat).reshape({4, 6})},
          {"b.bias", at::scalar_tensor(7, at::kInt)},
          {"c.weight", at::arange(16, at::kFloat).to(at::kBFloat16).reshape({2, 8})},
          {"c.phase", at::view_as_complex(at::arange(6, at::kDouble).reshape({3, 2}))},
          {"none", at::empty({0, 3})},
          {"d.weight", at::arange(20, at::kHalf).reshape({2, 2, 5})},
          {"on", at::ones({1}, at::kBool)}};
}

std::string export_error(const std::string& from, const std::string& to, const ExportOptions& options = {}) {
  try {
    export_weights(from, to, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

class Export : public testing::Test {
 protected:
  void SetUp() override {
    test::write_one_file(path("one"), small_model());
    test::write_pieces(path("pieces"), small_model(), 2);
  }
  std::string path(const std::string& name) const { return folder_.path(name); }
  std::vector<std::string> names(const std::string& name) const {
    return base::value_or_throw(base::list_directory(path(name)));
  }
  std::string text(const std::string& name) const {
    return base::value_or_throw(base::read_file(path(name)));
  }
  // Changes the last byte of a file.
  void damage(const std::string& name) const {
    std::string bytes = text(name);
    bytes.back() = static_cast<char>(bytes.back() ^ 4);
    test::write_text(path(name), bytes);
  }
  const base::TemporaryDirectory folder_ = base::value_or_throw(base::TemporaryDirectory::create());
};

TEST(WeightParts, AreFilledInOrder) {
  const auto parts_of = [](const std::vector<int64_t>& sizes, uint64_t most) {
    std::vector<SafetensorsEntry> tensors;
    for (const int64_t size : sizes) tensors.push_back({"t", at::kByte, {size}});
    std::vector<std::vector<size_t>> found;
    for (const WeightPart& part : divide_weights(tensors, most)) found.push_back(part.tensors);
    return found;
  };
  using Places = std::vector<size_t>;
  EXPECT_THAT(parts_of({4, 6, 1, 9}, 10), ElementsAre(Places{0, 1}, Places{2, 3}));
  EXPECT_THAT(parts_of({4, 7, 1}, 10), ElementsAre(Places{0}, Places{1, 2}));
  // A larger tensor has a file of its own; the others are divided without it.
  EXPECT_THAT(parts_of({4, 11, 6, 1}, 10), ElementsAre(Places{1}, Places{0, 2}, Places{3}));
  EXPECT_THAT(parts_of({}, 10), ElementsAre(Places{}));
  EXPECT_THAT(parts_of({0, 10, 0}, 10), ElementsAre(Places{0, 1, 2}));
}

TEST_F(Export, BothFormsBecomePartsThatTransformersReads) {
  ExportOptions options;
  options.part_bytes = 90;
  for (const char* const form : {"one", "pieces"}) {
    SCOPED_TRACE(form);
    const std::string out = base::str("of_", form);
    const ExportReport report = export_weights(path(form), path(out), options);
    EXPECT_EQ(report.tensors, 8);
    EXPECT_EQ(report.bytes, 289);
    // b.weight is larger than a part.
    EXPECT_EQ(names(out).back(), "model.safetensors.index.json");
    EXPECT_EQ(names(out).front(), part_name(kModel, 0, static_cast<int>(report.files)));
    EXPECT_EQ(static_cast<int64_t>(names(out).size()), report.files + 1);
    const auto index = nlohmann::json::parse(text(out + "/model.safetensors.index.json"));
    EXPECT_EQ(index["metadata"]["total_size"], 289);
    EXPECT_EQ(index["weight_map"].size(), 8U);
    for (const auto& [name, file] : index["weight_map"].items()) {
      const std::string part = out + "/" + file.get<std::string>();
      int64_t bytes = 0;
      bool found = false;
      for (const auto& [own, tensor] : base::value_or_throw(read_safetensors(path(part)))) {
        bytes += static_cast<int64_t>(tensor.nbytes());
        found = found || own == name;
      }
      EXPECT_TRUE(found) << name;
      EXPECT_LE(bytes, name == "b.weight" ? 96 : 90);
      EXPECT_THAT(text(part), HasSubstr(R"("__metadata__":{"format":"pt")"));
    }
    test::expect_same(base::value_or_throw(read_weights(path(out))), small_model());
  }
}

TEST_F(Export, OneFileNeedsNoIndex) {
  for (const char* const form : {"one", "pieces"}) {
    const std::string out = base::str("of_", form);
    EXPECT_EQ(export_weights(path(form), path(out) + "/").files, 1);
    EXPECT_THAT(names(out), ElementsAre("model.safetensors"));
    test::expect_same(base::value_or_throw(read_safetensors(path(out + "/model.safetensors"))),
                      small_model());
    for (const char* const file : {"x.safetensors", "x.pt"}) {
      EXPECT_EQ(export_weights(path(form), path(file)).files, 1);
      test::expect_same(base::value_or_throw(read_weights(path(file))), small_model());
    }
  }
  // The order of the file stays.
  export_weights(path("one"), path("x.safetensors"));
  EXPECT_EQ(text("x.safetensors"), text("one/model.safetensors"));
}

TEST_F(Export, AllTypesStay) {
  const std::string types = std::string(SLUICE_SESSION_TESTDATA) + "/more_types.safetensors";
  export_weights(types, path("out"));
  const NamedTensors wanted = base::value_or_throw(read_safetensors(types));
  test::expect_same(base::value_or_throw(read_weights(path("out"))), wanted);
  // A file of Python's torch.save becomes a folder in the same way.
  const std::string state = std::string(SLUICE_SESSION_TESTDATA) + "/state_dict.pt";
  ExportOptions options;
  options.part_bytes = 1;
  const ExportReport report = export_weights(state, path("of_torch"), options);
  EXPECT_GT(report.files, 1);
  test::expect_same(base::value_or_throw(read_weights(path("of_torch"))),
                    base::value_or_throw(read_torch_file(state)));
}

TEST_F(Export, ConfigurationAndTokenizerComeAlong) {
  for (const char* const name : {"config.json", "tokenizer.json", "notes.txt"})
    test::write_text(path("one/") + name, name);
  export_weights(path("one"), path("out"));
  EXPECT_THAT(names("out"), ElementsAre("config.json", "model.safetensors", "tokenizer.json"));
  EXPECT_EQ(text("out/config.json"), "config.json");
  // Those of an existing folder stay.
  base::value_or_throw(base::make_directories(path("prepared")));
  test::write_text(path("prepared/config.json"), "own");
  export_weights(path("one"), path("prepared"));
  EXPECT_THAT(names("prepared"), ElementsAre("config.json", "model.safetensors", "tokenizer.json"));
  EXPECT_EQ(text("prepared/config.json"), "own");
}

TEST_F(Export, FoldersWithWeightsAreRefused) {
  EXPECT_THAT(export_error(path("one"), path("pieces")),
              AllOf(HasSubstr(path("pieces") + " has weights or a checkpoint already (model-00001-of-00002"),
                    HasSubstr("name another folder")));
  EXPECT_THAT(export_error(path("one"), path("one")), HasSubstr("is the folder of the weights themselves"));
  EXPECT_THAT(export_error(path("one"), path("pieces/../one/")), HasSubstr("is the folder of the weights"));
  EXPECT_THAT(export_error(path("one/model.safetensors"), path("one")),
              HasSubstr("has weights or a checkpoint"));
  test::write_text(path("file"), "text");
  EXPECT_THAT(export_error(path("one"), path("file")), HasSubstr("is a file: expected a folder"));
  EXPECT_THAT(export_error(path("one"), "https://host/folder"), HasSubstr("cannot write to the web server"));
  EXPECT_THAT(export_error(path("nothing"), path("out")), HasSubstr(path("nothing")));
  EXPECT_THAT(names(""), ElementsAre("file", "one", "pieces"));
  EXPECT_THAT(names("one"), ElementsAre("model.safetensors", "state.json"));
}

TEST_F(Export, ADamagedPieceLeavesNothing) {
  ExportOptions options;
  options.part_bytes = 90;
  const std::string part = "pieces/model-00002-of-00002.safetensors";
  damage(part);
  base::value_or_throw(base::make_directories(path("prepared")));
  test::write_text(path("prepared/notes.txt"), "own");
  for (const char* const out : {"out", "prepared", "out.safetensors"})
    EXPECT_THAT(export_error(path("pieces"), path(out), options),
                AllOf(HasSubstr(path(part)), HasSubstr("tensor "), HasSubstr("checksum")));
  EXPECT_THAT(names(""), ElementsAre("one", "pieces", "prepared"));
  EXPECT_THAT(names("prepared"), ElementsAre("notes.txt"));
  // A file that is cut is found before anything is written.
  std::filesystem::resize_file(path(part), std::filesystem::file_size(path(part)) - 3);
  EXPECT_THAT(export_error(path("pieces"), path("out"), options),
              AllOf(HasSubstr(path(part)), HasSubstr("cut off?")));
  EXPECT_THAT(names(""), ElementsAre("one", "pieces", "prepared"));
}

// A limit on the size of files stands for the full disk.
TEST_F(Export, AFullDiskLeavesNothing) {
  test::write_one_file(path("large"), {{"a", at::zeros({1000})}, {"b", at::zeros({40'000})}});
  base::value_or_throw(base::make_directories(path("prepared")));
  ExportOptions options;
  options.part_bytes = 10'000;
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  auto* const old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = before;
  limit.rlim_cur = 100'000;
  setrlimit(RLIMIT_FSIZE, &limit);
  const std::string fresh = export_error(path("large"), path("out"), options),
                    prepared = export_error(path("large"), path("prepared"), options),
                    one = export_error(path("large"), path("out.safetensors"));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(fresh, HasSubstr("cannot write the weights to " + path("out")));
  EXPECT_THAT(prepared, HasSubstr("cannot write the weights to " + path("prepared")));
  EXPECT_THAT(one, HasSubstr(path("out.safetensors")));
  EXPECT_THAT(names(""), ElementsAre("large", "one", "pieces", "prepared"));
  EXPECT_THAT(names("prepared"), IsEmpty());
}

// The next export removes the folder that a killed one has left.
TEST_F(Export, LeftoversAreRemoved) {
  base::value_or_throw(base::make_directories(path(".out.writing-1")));
  export_weights(path("one"), path("out"));
  EXPECT_THAT(names(""), ElementsAre("one", "out", "pieces"));
}

TEST_F(Export, ABucketGetsTheIndexLast) {
  auto& service = data::test::service();
  ExportOptions options;
  options.part_bytes = 90;
  test::write_text(path("pieces/config.json"), "{}");
  std::vector<std::string> order;
  bool refuse = false;
  service.set_fault([&](const cloud::test::Request& request) -> std::optional<cloud::test::Reply> {
    const std::string name = request.parameter("name");
    if (request.method != "POST" || name.empty()) return {};
    order.push_back(name);
    if (refuse && name == "refused/model.safetensors.index.json") return cloud::test::Reply{403, {}, "no"};
    return {};
  });
  const ExportReport report = export_weights(path("pieces"), "gs://b/exported", options);
  EXPECT_EQ(order.empty() ? "" : order.back(), "exported/model.safetensors.index.json");
  EXPECT_EQ(static_cast<int64_t>(order.size()), report.files + 2);
  test::expect_same(base::value_or_throw(read_all_stored("gs://b/exported")), small_model());
  EXPECT_TRUE(service.bucket.get("exported/config.json"));
  // From there to a folder and to one object.
  export_weights("gs://b/exported", path("back"));
  EXPECT_THAT(names("back"), ElementsAre("config.json", "model.safetensors"));
  test::expect_same(base::value_or_throw(read_weights(path("back"))), small_model());
  export_weights("gs://b/exported", "gs://b/one.safetensors");
  test::expect_same(base::value_or_throw(read_all_stored("gs://b/one.safetensors")), small_model());
  EXPECT_THAT(export_error(path("pieces"), "gs://b/exported/"), HasSubstr("gs://b/exported has weights"));
  // Without its index, nothing remains.
  refuse = true;
  EXPECT_NE(export_error(path("pieces"), "gs://b/refused", options), "nothing");
  service.set_fault({});
  EXPECT_THAT(service.bucket.names(), Not(testing::Contains(HasSubstr("refused"))));
}

// Rows that are read some at a time: the checksums of pieces are put together.
TEST_F(Export, PiecesThatAreReadInRowsAreCompared) {
  for (const int64_t files : {2, 3}) {
    const std::string from = base::str("rows", files);
    const NamedTensors tensors = {
        {"a", at::arange(150, at::kFloat).reshape({15, 10})},
        {"b", at::arange(60, at::kFloat).reshape({6, 10})}};  // a by rows, b by columns
    test::write_pieces(path(from), tensors, static_cast<int>(files));
    const auto pass = [&](std::string& bytes) {
      StoredReader reader;
      const StoredTensors stored = base::value_or_throw(reader.list(path(from)));
      return stream_tensors(reader, {{"a", &stored.at("a")}, {"b", &stored.at("b")}}, 84,
                            [&](std::string_view some) -> base::Status {
                              EXPECT_LE(some.size(), 84U);
                              bytes += some;
                              return {};
                            });
    };
    std::string bytes;
    ASSERT_TRUE(pass(bytes));
    ASSERT_EQ(bytes.size(), 840U);
    EXPECT_EQ(std::memcmp(bytes.data(), tensors[0].second.const_data_ptr(), 600), 0);
    EXPECT_EQ(std::memcmp(bytes.data() + 600, tensors[1].second.const_data_ptr(), 240), 0);
    const std::string part = base::str(from, "/", part_name(kModel, 1, static_cast<int>(files)));
    damage(part);
    const base::Status damaged = pass(bytes);
    ASSERT_FALSE(damaged);
    EXPECT_EQ(damaged.error().code(), Code::kDataLoss);
    EXPECT_THAT(std::string(damaged.error().what()),
                AllOf(HasSubstr("tensor b: " + path(part)), HasSubstr("from [0, "), HasSubstr("checksum")));
  }
}

}  // namespace
}  // namespace sluice::sessions
