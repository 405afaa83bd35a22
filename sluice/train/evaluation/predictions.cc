#include "sluice/train/evaluation/predictions.h"

#include <memory>
#include <optional>
#include <vector>

#include "sluice/session/backend.h"
#include "sluice/train/evaluation/evaluate.h"
#include "sluice/train/evaluation/prediction_files.h"

namespace sluice::train {
namespace predictions_detail {

// A batch whose values are on their way to the host.
struct Batched {
  std::vector<std::string> keys;
  std::optional<sessions::Pending> mask;
  std::vector<std::pair<std::string, sessions::Pending>> values;
};

// Returns the rows that this process has read. With a mesh over processes a value has the rows of all parts.
std::vector<at::Tensor> own_rows(const Session& session, const sessions::Pending& value) {
  std::vector<at::Tensor> all = value.get();
  if (!session.backend().spans_processes()) return all;
  for (at::Tensor& one : all) one = one.chunk(session.batch_parts())[session.batch_part()];
  return all;
}

base::Status write(PredictionFile& file, const Session& session, const Batched& batch) {
  std::vector<at::Tensor> masks;
  if (batch.mask) masks = own_rows(session, *batch.mask);
  std::vector<std::vector<at::Tensor>> columns;
  for (const auto& [name, value] : batch.values) columns.push_back(own_rows(session, value));
  size_t sample = 0;
  for (size_t replica = 0; !columns.empty() && replica < columns.front().size(); ++replica) {
    for (int64_t row = 0; row < columns.front()[replica].size(0); ++row) {
      if (!masks.empty() && !masks[replica][row].item<bool>()) continue;
      NamedValues values;
      for (size_t i = 0; i < columns.size(); ++i)
        values.emplace_back(batch.values[i].first, columns[i][replica][row]);
      SLUICE_OK(file.add(sample < batch.keys.size() ? batch.keys[sample] : "", values));
      ++sample;
    }
  }
  return {};
}

}  // namespace predictions_detail

base::Result<int64_t> write_predictions(Session& session, const Steps& steps, Feed feed, bool autocast,
                                        const std::string& path, int64_t shard_size) {
  namespace detail = predictions_detail;
  torch::NoGradGuard no_grad;
  SLUICE_TRY(const std::unique_ptr<PredictionFile> file,
             create_predictions({.path = path,
                                 .process = session.process_index(),
                                 .processes = session.processes(),
                                 .shard_size = shard_size}));
  int64_t samples = 0;
  std::optional<detail::Batched> before;  // written while the device computes the next batch
  for (auto& batch : feed) {
    check_columns(batch);
    std::optional<Autocast> lower;
    if (autocast) lower.emplace(session.device());
    const NamedValues values = steps.predict_step(batch);
    lower.reset();
    if (values.empty()) return base::fail(Code::kInvalidArgument, "predict_step returned no values");
    detail::Batched now{batch.keys, std::nullopt, {}};
    for (const auto& [name, value] : values) {
      if (name == "key" || value.dim() == 0 || value.size(0) != rows_of(batch))
        return base::fail(Code::kInvalidArgument, "predict_step's '", name, "' has the shape ", value.sizes(),
                          ": expected one row for each of the batch's ", rows_of(batch),
                          ", and a name other than \"key\"");
      now.values.emplace_back(name, session.backend().fetch(value));
    }
    if (batch.mask.defined()) now.mask = session.backend().fetch(batch.mask);
    session.sync("predict");
    if (before) SLUICE_OK(detail::write(*file, session, *before));
    samples += batch.count;
    before = std::move(now);
  }
  if (before) SLUICE_OK(detail::write(*file, session, *before));
  SLUICE_OK(file->commit());
  return samples;
}

}  // namespace sluice::train
