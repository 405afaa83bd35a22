// The file of the confusion matrix: whole for a few classes, the most confused pairs for many.
#include "sluice/train/evaluation/confusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sluice/base/files/file.h"

namespace sluice::train {
namespace {

// Returns a matrix with 3 right answers of class 1; count i is that of the label i + 2 and the answer i + 3.
torch::Tensor pairs_matrix(const std::vector<int64_t>& counts, int64_t classes) {
  std::vector<int64_t> labels = {1}, answers = {1}, numbers = {3};
  for (size_t i = 0; i < counts.size(); ++i) {
    labels.push_back(static_cast<int64_t>(i) + 2);
    answers.push_back(static_cast<int64_t>(i) + 3);
    numbers.push_back(counts[i]);
  }
  const torch::Tensor places = torch::stack({torch::tensor(labels), torch::tensor(answers)});
  return torch::sparse_coo_tensor(places, torch::tensor(numbers), {classes, classes}).coalesce();
}

std::string confusion_text(const torch::Tensor& matrix, const std::vector<std::string>& classes = {}) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  base::value_or_throw(write_confusion(folder.path(), matrix, classes, 2, 24));
  return base::value_or_throw(base::read_file(folder.path("confusion.json")));
}

TEST(Confusion, ManyClassesAreTheMostConfusedPairs) {
  const torch::Tensor matrix = pairs_matrix({4, 9, 4, 1}, 2'000);
  const auto json = nlohmann::json::parse(confusion_text(matrix));
  EXPECT_EQ(json["epoch"], 2);
  EXPECT_EQ(json["step"], 24);
  EXPECT_EQ(json["class_count"], 2'000);
  EXPECT_EQ(json["samples"], 21);
  EXPECT_EQ(json["right"], 3);
  EXPECT_EQ(json["confused_pairs"], 4);
  EXPECT_FALSE(json.contains("matrix"));
  std::vector<std::vector<int64_t>> pairs;
  for (const auto& pair : json["pairs"]) pairs.push_back({pair["label"], pair["answer"], pair["count"]});
  EXPECT_EQ(pairs, (std::vector<std::vector<int64_t>>{{3, 4, 9}, {2, 3, 4}, {4, 5, 4}, {5, 6, 1}}));
  EXPECT_EQ(confusion_text(matrix.to_dense()), confusion_text(matrix));
  EXPECT_THAT(confusion_note(matrix), testing::HasSubstr("2000 classes are more than 1024"));
}

TEST(Confusion, PairsHaveTheNamesOfTheirClasses) {
  std::vector<std::string> names(2'000, "other");
  names[2] = "caf\xe9";
  names[3] = "tea";
  const auto json = nlohmann::json::parse(confusion_text(pairs_matrix({4}, 2'000), names));
  EXPECT_EQ(json["pairs"][0]["label_name"], R"(caf\xe9)");
  EXPECT_EQ(json["pairs"][0]["answer_name"], "tea");
  names.pop_back();
  EXPECT_FALSE(nlohmann::json::parse(confusion_text(pairs_matrix({4}, 2'000), names))["pairs"][0].contains(
      "label_name"));
}

// The matrix of ten times as many classes would be a hundred times as long.
TEST(Confusion, TheFileDoesNotGrowWithTheClasses) {
  const std::vector<int64_t> counts(1'500, 2);
  const std::string few = confusion_text(pairs_matrix(counts, 2'000)),
                    many = confusion_text(pairs_matrix(counts, 20'000));
  EXPECT_EQ(many.size(), few.size() + 1);  // a digit of class_count
  const auto json = nlohmann::json::parse(many);
  EXPECT_EQ(json["confused_pairs"], 1'500);
  ASSERT_EQ(json["pairs"].size(), static_cast<size_t>(kConfusedPairs));
  EXPECT_EQ(json["pairs"].back()["label"], 1'001);  // of equal counts the first labels
}

TEST(Confusion, FewClassesAreAMatrix) {
  const torch::Tensor matrix = pairs_matrix({4}, kMatrixClasses);
  const auto json = nlohmann::json::parse(confusion_text(matrix));
  EXPECT_EQ(json["matrix"].size(), static_cast<size_t>(kMatrixClasses));
  EXPECT_EQ(json["matrix"][2][3], 4);
  EXPECT_EQ(confusion_note(matrix), "");
  const std::string small = confusion_text(torch::tensor({{1L, 2L}, {3L, 4L}}), {"even", "odd"});
  EXPECT_EQ(nlohmann::json::parse(small)["matrix"], nlohmann::json::parse("[[1, 2], [3, 4]]"));
  EXPECT_EQ(nlohmann::json::parse(small)["classes"], nlohmann::json::parse(R"(["even", "odd"])"));
  EXPECT_EQ(confusion_text(torch::tensor({{1L, 2L}, {3L, 4L}}).to_sparse(), {"even", "odd"}), small);
}

}  // namespace
}  // namespace sluice::train
