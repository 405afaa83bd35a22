#include "sluice/train/evaluation/confusion.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/json_bytes.h"
#include "sluice/base/text/join.h"

namespace sluice::train {
namespace confusion_detail {

struct Pair {
  int64_t label = 0, answer = 0, count = 0;
};

// Returns the pairs that occur.
std::vector<Pair> pairs_of(const torch::Tensor& matrix) {
  const torch::Tensor sparse = matrix.is_sparse() ? matrix.coalesce() : matrix.to_sparse();
  const torch::Tensor places = sparse.indices().contiguous(), numbers = sparse.values().contiguous();
  const auto place = places.accessor<int64_t, 2>();
  const auto number = numbers.accessor<int64_t, 1>();
  std::vector<Pair> pairs;
  for (int64_t i = 0; i < numbers.size(0); ++i) pairs.push_back({place[0][i], place[1][i], number[i]});
  return pairs;
}

std::string matrix_text(const torch::Tensor& matrix, const std::vector<std::string>& classes) {
  const torch::Tensor dense = matrix.is_sparse() ? matrix.to_dense() : matrix;
  const auto counts = dense.accessor<int64_t, 2>();
  std::vector<std::string> rows;
  for (int64_t label = 0; label < counts.size(0); ++label) {
    std::vector<int64_t> row;
    for (int64_t answer = 0; answer < counts.size(1); ++answer) row.push_back(counts[label][answer]);
    rows.push_back("[" + base::join(row, ", ") + "]");
  }
  const std::string names =
      classes.empty() ? "" : base::str("\"classes\": ", base::with_json_texts(classes).dump(), ",\n ");
  return base::str(names, "\"rows\": \"labels\", \"columns\": \"answers\",\n \"matrix\": [",
                   base::join(rows, ",\n            "), "]");
}

std::string pairs_text(const torch::Tensor& matrix, const std::vector<std::string>& classes) {
  std::vector<Pair> pairs = pairs_of(matrix);
  int64_t samples = 0, right = 0;
  for (const Pair& pair : pairs) {
    samples += pair.count;
    if (pair.label == pair.answer) right += pair.count;
  }
  pairs.erase(std::remove_if(pairs.begin(), pairs.end(),
                             [](const Pair& pair) { return pair.label == pair.answer || pair.count == 0; }),
              pairs.end());
  const auto confused = static_cast<int64_t>(pairs.size());
  const auto shown = pairs.begin() + std::min(confused, kConfusedPairs);
  std::partial_sort(pairs.begin(), shown, pairs.end(), [](const Pair& a, const Pair& b) {
    return std::tuple(-a.count, a.label, a.answer) < std::tuple(-b.count, b.label, b.answer);
  });
  std::vector<std::string> rows;
  for (auto pair = pairs.begin(); pair != shown; ++pair) {
    nlohmann::ordered_json row = {{"label", pair->label}, {"answer", pair->answer}, {"count", pair->count}};
    if (!classes.empty()) {
      row["label_name"] = base::json_of_bytes(classes[static_cast<size_t>(pair->label)]);
      row["answer_name"] = base::json_of_bytes(classes[static_cast<size_t>(pair->answer)]);
    }
    rows.push_back(row.dump());
  }
  return base::str("\"class_count\": ", matrix.size(0), ", \"samples\": ", samples, ", \"right\": ", right,
                   ", \"confused_pairs\": ", confused, ",\n \"pairs\": [", base::join(rows, ",\n           "),
                   "]");
}

}  // namespace confusion_detail

std::string confusion_note(const torch::Tensor& matrix) {
  if (matrix.size(0) <= kMatrixClasses) return "";
  return base::str("confusion.json has the ", kConfusedPairs, " most confused pairs of classes instead of ",
                   "the matrix: ", matrix.size(0), " classes are more than ", kMatrixClasses);
}

base::Status write_confusion(const std::string& folder, const torch::Tensor& matrix,
                             const std::vector<std::string>& classes, int64_t epoch, int64_t step) {
  namespace detail = confusion_detail;
  const bool has_names = static_cast<int64_t>(classes.size()) == matrix.size(0);
  const std::vector<std::string> names = has_names ? classes : std::vector<std::string>();
  const std::string text = matrix.size(0) <= kMatrixClasses ? detail::matrix_text(matrix, names)
                                                            : detail::pairs_text(matrix, names);
  return base::write_file_atomically(
      base::join_path(folder, "confusion.json"),
      base::str("{\"epoch\": ", epoch, ", \"step\": ", step, ",\n ", text, "}\n"));
}

}  // namespace sluice::train
