#include "sluice/session/files/tensor_file.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "sluice/base/files/file.h"
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

template <typename Value>
std::string error_of(const base::Result<Value>& result) {
  return result ? "" : result.error().what();
}

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

// What the script wrote of the types that a few models have.
void expect_more_types(std::map<std::string, at::Tensor> tensors) {
  using complex = c10::complex<float>;
  expect_equal(tensors["c64"], at::tensor({complex(1.5, -2), complex(-0.25, 4), complex(0, 3)}));
  const auto expect_whole = [&](const char* name, at::ScalarType type, const at::Tensor& want) {
    EXPECT_EQ(tensors[name].scalar_type(), type) << name;
    expect_equal(tensors[name].to(at::kLong), want);
  };
  expect_whole("u16", at::kUInt16, at::tensor({0, 65535, 258}, at::kLong));
  expect_whole("u32", at::kUInt32, at::tensor({int64_t{4294967295}, int64_t{66051}}).reshape({2, 1}));
  EXPECT_EQ(tensors["u64"].scalar_type(), at::kUInt64);
  EXPECT_EQ(*static_cast<const uint64_t*>(tensors["u64"].const_data_ptr()), (uint64_t{1} << 63) + 5);
  for (const auto& [name, type] : {std::pair("f8_e4m3", at::kFloat8_e4m3fn),
                                   {"f8_e4m3fnuz", at::kFloat8_e4m3fnuz},
                                   {"f8_e5m2", at::kFloat8_e5m2},
                                   {"f8_e5m2fnuz", at::kFloat8_e5m2fnuz}}) {
    EXPECT_EQ(tensors[name].scalar_type(), type) << name;
    expect_equal(tensors[name].to(at::kFloat), at::tensor({0.5F, -1.5F, 16.0F, 0.0F}));
  }
  EXPECT_EQ(tensors["f8_e8m0"].scalar_type(), at::kFloat8_e8m0fnu);
  expect_equal(tensors["f8_e8m0"].to(at::kFloat), at::tensor({0.5F, 1.0F, 16.0F}));
}

TEST(TensorFile, ReadsTheTypesThatFewModelsHave) {
  expect_more_types(to_map(read_tensors(by_python("more_types.safetensors"))));
  for (const char* name : {"more_types.pt", "old_more_types.pt"}) {
    auto tensors = to_map(read_tensors(by_python(name)));
    expect_more_types(tensors);
    const at::Tensor pair = tensors["c64"];
    expect_equal(tensors["c128"], pair.to(at::kComplexDouble) / 3);
    EXPECT_EQ(tensors["c32"].scalar_type(), at::kComplexHalf);
    expect_equal(at::view_as_real(tensors["c32"]).to(at::kFloat), at::view_as_real(pair));
    // Their storages hold other values, and flags beside them say so.
    expect_equal(tensors["conjugate"], at::complex(at::real(pair), -at::imag(pair)));
    expect_equal(tensors["negative"], at::tensor({2.0F, -4.0F, -3.0F}));
  }
}

TEST(TensorFile, NamesElementsOfLessThanAByte) {
  EXPECT_THAT(error_of(read_tensors(by_python("four_bits.safetensors"))),
              testing::AllOf(testing::HasSubstr("\"F4\""), testing::HasSubstr("less than a byte")));
}

TEST(TensorFile, WritesTheTypesThatFewModelsHave) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  NamedTensors tensors = base::value_or_throw(read_tensors(by_python("more_types.safetensors")));
  ASSERT_TRUE(write_tensors(folder.path("a.safetensors"), tensors));
  expect_more_types(to_map(read_tensors(folder.path("a.safetensors"))));
  for (const auto& [name, tensor] : tensors) {
    if (name == "c64") continue;
    EXPECT_THAT(error_of(write_torch_file(folder.path("a.pt"), {{name, tensor}})),
                testing::AllOf(testing::HasSubstr("tensor " + name), testing::HasSubstr(".safetensors")));
  }
}

TEST(TensorFile, ComplexNumbersComeBack) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const at::Tensor real = at::arange(12, at::kDouble).reshape({3, 2, 2}) / 3;
  const at::Tensor c128 = at::view_as_complex(real);
  const NamedTensors tensors = {{"a", at::ones({2})},
                                {"c32", at::view_as_complex(real.to(at::kHalf))},
                                {"c64", c128.to(at::kComplexFloat)},
                                {"c128", c128},
                                {"one \"of\" them", c128[0][1]},
                                {"conjugate", c128.conj().t()},
                                {"negative", at::imag(c128.conj())},
                                {"none", at::empty({0, 3}, at::kComplexDouble)}};
  const std::string path = folder.path("x.safetensors");
  ASSERT_TRUE(write_safetensors(path, tensors, {}));
  const auto read = to_map(read_tensors(path));
  ASSERT_EQ(read.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    SCOPED_TRACE(name);
    EXPECT_EQ(read.at(name).scalar_type(), tensor.scalar_type());
    if (name != "c32") expect_equal(read.at(name), tensor.resolve_conj().resolve_neg());
  }
  expect_equal(at::view_as_real(read.at("c32")), real.to(at::kHalf));
  // What another reader sees: pairs.
  const std::string file = base::value_or_throw(base::read_file(path));
  EXPECT_THAT(file, testing::HasSubstr(R"("c128":{"data_offsets":[80,176],"dtype":"F64","shape":[3,2,2]})"));
  ASSERT_TRUE(write_torch_file(folder.path("x.pt"), {{"c", c128.conj()}}));
  expect_equal(to_map(read_tensors(folder.path("x.pt")))["c"], at::complex(at::real(c128), -at::imag(c128)));
}

// What torch.save(…, _use_new_zipfile_serialization=False) writes, and PyTorch wrote before 1.6.
TEST(TensorFile, ReadsTheFormatOfBeforeZip) {
  auto tensors = to_map(read_tensors(by_python("old_dict.pt")));
  expect_all_types(tensors);
  expect_equal(tensors["view"], tensors["f32"].t().slice(0, 1, 3).contiguous());
  EXPECT_EQ(to_map(read_tensors(by_python("old_state_dict.pt"))).size(), 7u);
  EXPECT_THAT(error_of(read_tensors(by_python("old_evil.pt"))),
              testing::HasSubstr("asks to call posix.system"));
}

// PyTorch before 0.4 called another function for a tensor.
TEST(TensorFile, ReadsTheFormatOfTheFirstVersions) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  std::string file = base::value_or_throw(base::read_file(by_python("old_state_dict.pt")));
  const size_t at = file.find("_rebuild_tensor_v2\n");
  ASSERT_NE(at, std::string::npos);
  file.erase(at + std::strlen("_rebuild_tensor"), std::strlen("_v2"));
  ASSERT_TRUE(base::write_file_atomically(folder.path("x.pt"), file));
  const auto wanted = to_map(read_tensors(by_python("old_state_dict.pt")));
  const auto read = to_map(read_tensors(folder.path("x.pt")));
  ASSERT_EQ(read.size(), wanted.size());
  for (const auto& [name, tensor] : wanted) expect_equal(read.at(name), tensor);
}

TEST(TensorFile, OtherPicklesAreNamed) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string path = folder.path("x.pt");
  ASSERT_TRUE(base::write_file_atomically(path, std::string("\x80\x02}q\0.", 6)));  // pickle.dumps({}, 2)
  EXPECT_THAT(error_of(read_tensors(path)), testing::HasSubstr("another pickle"));
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
  EXPECT_FALSE(write_safetensors(folder.path("y.safetensors"), {{"x", at::empty({1}, at::kBits8)}}));
  for (const char* name : {"\xff", "__metadata__"})
    EXPECT_THAT(error_of(write_safetensors(folder.path("y.safetensors"), {{name, at::zeros({1})}})),
                testing::HasSubstr("expected a name in UTF-8"));
  EXPECT_FALSE(base::path_exists(folder.path("y.safetensors")));
}

// Every way to cut or damage a small file gives an error or the same tensors, never a crash.
TEST(TensorFile, CutAndDamagedFilesAreErrors) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  for (const char* name : {"all_types.safetensors", "state_dict.pt", "old_state_dict.pt"}) {
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
  // No bytes at all, but strides that no number holds.
  EXPECT_THAT(
      read(R"({"a":{"dtype":"F32","shape":[0,281474976710656,281474976710656],"data_offsets":[0,0]}})", 0),
      testing::HasSubstr("overflows"));
  EXPECT_THAT(read("{\"a\":", 8), testing::HasSubstr("not a JSON object"));
  EXPECT_NE(error_of(read_safetensors(folder.path("missing"))), "");
  // The format forbids it: which of the two is meant?
  EXPECT_THAT(read(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                   R"("a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}})",
                   1),
              testing::HasSubstr("two entries of one object are called 'a'"));
  for (const char* pairs : {R"("[\"a\"")", R"("{}")", "[]", R"("[3]")", R"("[\"a\"]")"})
    EXPECT_THAT(read(base::str(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)",
                               R"("__metadata__":{"sluice.complex":)", pairs, "}}"),
                     8),
                testing::HasSubstr("sluice.complex"))
        << pairs;
  // A type of a million levels, which a message would print.
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_THAT(read(R"({"a":{"dtype":)" + deep + R"(,"shape":[2],"data_offsets":[0,8]}})", 8),
              testing::HasSubstr("not a JSON object"));
}

// The lengths 640, 896, … have the first two bytes of a pickle.
TEST(TensorFile, ReadsHeadersOfAllLengths) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  for (uint64_t length = 64; length <= 1536; length += 64) {
    std::string bytes(8, '\0'), header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
    std::memcpy(bytes.data(), &length, 8);
    header.resize(length, ' ');
    ASSERT_TRUE(base::write_file_atomically(folder.path("x"), bytes + header + std::string(8, '\0')));
    EXPECT_EQ(error_of(read_tensors(folder.path("x"))), "") << length;
  }
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
  EXPECT_THAT(read(R"("own","x":"own")"), testing::HasSubstr("two entries of one object are called 'x'"));
}

}  // namespace
}  // namespace sluice::sessions
