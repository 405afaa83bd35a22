#include "sluice/train/evaluation/confusion.h"

#include <nlohmann/json.hpp>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/json_bytes.h"
#include "sluice/base/text/strings.h"

namespace sluice::train {

base::Status write_confusion(const std::string& folder, const torch::Tensor& matrix,
                             const std::vector<std::string>& classes, int64_t epoch, int64_t step) {
  const auto counts = matrix.accessor<int64_t, 2>();
  std::vector<std::string> rows;
  for (int64_t label = 0; label < counts.size(0); ++label) {
    std::vector<int64_t> row;
    for (int64_t answer = 0; answer < counts.size(1); ++answer) row.push_back(counts[label][answer]);
    rows.push_back("[" + base::join(row, ", ") + "]");
  }
  const std::string names =
      classes.empty() ? "" : base::str("\"classes\": ", base::with_json_texts(classes).dump(), ",\n ");
  return base::write_file_atomically(
      base::join_path(folder, "confusion.json"),
      base::str("{\"epoch\": ", epoch, ", \"step\": ", step, ",\n ", names,
                "\"rows\": \"labels\", \"columns\": \"answers\",\n \"matrix\": [",
                base::join(rows, ",\n            "), "]}\n"));
}

}  // namespace sluice::train
