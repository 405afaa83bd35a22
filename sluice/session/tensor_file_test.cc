#include "sluice/session/tensor_file.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "sluice/base/file.h"
#include "sluice/session/pretrained/weight_files.h"

namespace sluice::sessions {
namespace {

// Files that Python's own packages wrote (tests/python/tensor_files_oracle.py).
std::string by_python(const std::string& name) { return std::string(SLUICE_SESSION_TESTDATA) + "/" + name; }

std::map<std::string, at::Tensor> to_map(base::Result<NamedTensors> tensors) {
  NamedTensors list = base::value_or_throw(std::move(tensors));
  return {list.begin(), list.end()};
}

void expect_equal(const at::Tensor& got, const at::Tensor& want) {
  EXPECT_EQ(got.scalar_type(), want.scalar_type());
  EXPECT_TRUE(got.sizes() == want.sizes() && at::equal(got, want)) << got << "\n" << want;
}

// What the script wrote.
void expect_all_types(std::map<std::string, at::Tensor> tensors) {
  const at::Tensor base = at::arange(24, at::kFloat).reshape({4, 6}) / 8;
  expect_equal(tensors["f32"], base);
  expect_equal(tensors["f64"], base.to(at::kDouble) + 0.1);
  expect_equal(tensors["f16"], base.to(at::kHalf));
  expect_equal(tensors["bf16"], base.to(at::kBFloat16));
  expect_equal(tensors["i64"], at::tensor({-(int64_t{1} << 40), int64_t{0}, int64_t{7}}));
  expect_equal(tensors["i32"], at::tensor({1, -2, 3, 4}, at::kInt).reshape({2, 2}));
  expect_equal(tensors["i16"], at::tensor({-300}, at::kShort));
  expect_equal(tensors["i8"], at::tensor({-3, 3}, at::kChar));
  expect_equal(tensors["u8"], at::tensor({0, 255}, at::kByte));
  expect_equal(tensors["bool"], at::tensor({1, 0}).to(at::kBool));
  expect_equal(tensors["scalar"], at::scalar_tensor(2.5, at::kFloat));
  expect_equal(tensors["empty"], at::zeros({0, 3}));
  expect_equal(tensors["größe"], at::ones({1}));
}

std::string error_of(const base::Result<NamedTensors>& result) { return result ? "" : result.error().what(); }

TEST(TensorFile, ReadsPythonsSafetensors) {
  expect_all_types(to_map(read_tensors(by_python("all_types.safetensors"))));
}

TEST(TensorFile, ReadsPythonsDict) {
  auto tensors = to_map(read_tensors(by_python("dict.pt")));
  expect_all_types(tensors);
  expect_equal(tensors["view"], tensors["f32"].t().slice(0, 1, 3).contiguous());
}

TEST(TensorFile, ReadsPythonsStateDictAndCheckpoint) {
  for (const char* name : {"state_dict.pt", "checkpoint.pt"}) {
    auto tensors = to_map(read_tensors(by_python(name)));
    EXPECT_EQ(tensors.size(), 7u) << name;
    expect_equal(tensors["0.weight"], at::full({2, 3}, 0.5));
    expect_equal(tensors["1.num_batches_tracked"], at::zeros({}, at::kLong));
  }
}

TEST(TensorFile, RunsNothingThatAFileAsksFor) {
  EXPECT_THAT(error_of(read_tensors(by_python("evil.pt"))), testing::HasSubstr("asks to call posix.system"));
  EXPECT_THAT(error_of(read_tensors(by_python("list.pt"))),
              testing::HasSubstr("expected a dict of tensors, found a list"));
}

// What torch.save(…, _use_new_zipfile_serialization=False) begins with.
TEST(TensorFile, NamesTheFormatOfBeforeZip) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string path = folder.path("old.pt");
  ASSERT_TRUE(
      base::write_file_atomically(path, std::string("\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", 15)));
  EXPECT_THAT(error_of(read_tensors(path)), testing::HasSubstr("before PyTorch 1.6"));
}

TEST(TensorFile, BothKindsComeBack) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  NamedTensors tensors = base::value_or_throw(read_tensors(by_python("all_types.safetensors")));
  for (const char* name : {"a.safetensors", "a.pt"}) {
    ASSERT_TRUE(write_tensors(folder.path(name), tensors));
    expect_all_types(to_map(read_tensors(folder.path(name))));
  }
}

TEST(TensorFile, StridedTensorsAreWrittenDense) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const at::Tensor strided = at::arange(6).reshape({2, 3}).t();
  ASSERT_TRUE(write_safetensors(folder.path("x.safetensors"), {{"x", strided}}));
  expect_equal(to_map(read_tensors(folder.path("x.safetensors")))["x"], strided);
  EXPECT_FALSE(write_safetensors(folder.path("y.safetensors"), {{"x", at::zeros({1}, at::kComplexFloat)}}));
  EXPECT_FALSE(base::path_exists(folder.path("y.safetensors")));
}

// Every way to cut or damage a small file gives an error or the same tensors, never a crash.
TEST(TensorFile, CutAndDamagedFilesAreErrors) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  for (const char* name : {"all_types.safetensors", "state_dict.pt"}) {
    const std::string whole = base::value_or_throw(base::read_file(by_python(name)));
    const std::string path = folder.path(name);
    for (size_t size = 0; size < whole.size(); size += 97) {
      ASSERT_TRUE(base::write_file_atomically(path, whole.substr(0, size)));
      EXPECT_FALSE(read_tensors(path)) << name << " cut at " << size;
    }
    for (size_t at = 0; at < whole.size(); at += 13) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
      ASSERT_TRUE(base::write_file_atomically(path, damaged));
      auto result = read_tensors(path);  // a damaged number in the data cannot be seen
      (void)result;
    }
  }
}

TEST(TensorFile, WrongHeadersNameTheTensor) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  auto read = [&](std::string header, size_t data) {
    const uint64_t length = header.size();
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    bytes += header + std::string(data, '\0');
    EXPECT_TRUE(base::write_file_atomically(folder.path("x"), bytes));
    return error_of(read_safetensors(folder.path("x")));
  };
  EXPECT_EQ(read(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8), "");
  EXPECT_THAT(read(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7),
              testing::HasSubstr("cut off?"));
  EXPECT_THAT(read(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8),
              testing::HasSubstr("tensor a is wrong"));
  EXPECT_THAT(read(R"({"a":{"dtype":"F9","shape":[2],"data_offsets":[0,8]}})", 8),
              testing::HasSubstr("\"F9\""));
  EXPECT_THAT(read(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12),
              testing::HasSubstr("no holes"));
  EXPECT_THAT(read("{\"a\":", 8), testing::HasSubstr("no JSON object"));
  EXPECT_NE(error_of(read_safetensors(folder.path("missing"))), "");
  // A type of a million levels, which a message would print.
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_THAT(read(R"({"a":{"dtype":)" + deep + R"(,"shape":[2],"data_offsets":[0,8]}})", 8),
              testing::HasSubstr("no JSON object"));
}

TEST(WeightFiles, AnIndexReachesNoFileOutsideOfItsFolder) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string inner = folder.path("inner");
  ASSERT_TRUE(base::make_directories(inner));
  ASSERT_TRUE(write_safetensors(folder.path("secret"), {{"x", at::zeros({2})}}));
  ASSERT_TRUE(write_safetensors(base::join_path(inner, "own"), {{"x", at::zeros({2})}}));
  const auto read = [&](const std::string& file) {
    EXPECT_TRUE(base::write_file_atomically(base::join_path(inner, "model.safetensors.index.json"),
                                            R"({"weight_map":{"x":)" + file + "}}"));
    return error_of(read_weight_files(inner));
  };
  EXPECT_EQ(read("\"own\""), "");
  for (const std::string& outside :
       {std::string("\"../secret\""), "\"" + folder.path("secret") + "\"", std::string("\"..\""),
        std::string("\".\""), std::string("\"\""), std::string("\"a/../own\""), std::string("3"),
        std::string("[[\"own\"]]")})
    EXPECT_THAT(read(outside), testing::HasSubstr("must be in a file of the same folder")) << outside;
  EXPECT_THAT(read(std::string(1'000'000, '[') + std::string(1'000'000, ']')),
              testing::HasSubstr("expected a JSON object"));
}

}  // namespace
}  // namespace sluice::sessions
