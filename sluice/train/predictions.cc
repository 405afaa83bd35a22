#include "sluice/train/predictions.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "sluice/base/file.h"
#include "sluice/session/backend.h"
#include "sluice/train/evaluate.h"
#include "sluice/train/metrics_writer.h"

namespace sluice::train {
namespace predictions_detail {

using Json = nlohmann::ordered_json;

// JSON has no numbers for what is not finite.
Json number(double value) {
  if (std::isfinite(value)) return value;
  return number_text(value);
}

Json json_of(const at::Tensor& value) {
  if (value.dim() > 0) {
    Json list = Json::array();
    for (int64_t i = 0; i < value.size(0); ++i) list.push_back(json_of(value[i]));
    return list;
  }
  if (value.scalar_type() == at::kBool) return value.item<bool>();
  if (c10::isIntegralType(value.scalar_type(), /*includeBool=*/false)) return value.item<int64_t>();
  if (value.scalar_type() == at::kDouble) return number(value.item<double>());
  // The shortest text that reads back as the same f32.
  const float single = value.item<float>();
  return std::isfinite(single) ? Json::parse(number_text(single)) : number(single);
}

// A batch whose values are on their way to the host.
struct Batched {
  std::vector<std::string> keys;
  std::optional<sessions::Pending> mask;
  std::vector<std::pair<std::string, sessions::Pending>> values;
};

base::Status write(base::AtomicFile& file, const Batched& batch) {
  std::vector<at::Tensor> masks;
  if (batch.mask) masks = batch.mask->get();
  std::vector<std::vector<at::Tensor>> columns;
  for (const auto& [name, value] : batch.values) columns.push_back(value.get());
  std::string lines;
  size_t sample = 0;
  for (size_t replica = 0; !columns.empty() && replica < columns.front().size(); ++replica) {
    for (int64_t row = 0; row < columns.front()[replica].size(0); ++row) {
      if (!masks.empty() && !masks[replica][row].item<bool>()) continue;
      Json line;
      if (sample < batch.keys.size()) line["key"] = batch.keys[sample];
      ++sample;
      for (size_t i = 0; i < columns.size(); ++i)
        line[batch.values[i].first] = json_of(columns[i][replica][row]);
      lines += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    }
  }
  return file.write(lines);
}

std::string own_path(const Session& session, const std::string& path) {
  if (session.processes() == 1) return path;
  const size_t slash = path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1;
  const size_t dot = path.rfind('.');
  const size_t end = dot == std::string::npos || dot <= slash ? path.size() : dot;
  return base::str(path.substr(0, end), ".", session.process_index(), path.substr(end));
}

}  // namespace predictions_detail

base::Result<int64_t> write_predictions(Session& session, const Steps& steps, Feed feed, bool autocast,
                                        const std::string& path) {
  namespace detail = predictions_detail;
  torch::NoGradGuard no_grad;
  SLUICE_TRY(base::AtomicFile file, base::AtomicFile::create(detail::own_path(session, path)));
  int64_t samples = 0;
  std::optional<detail::Batched> before;  // is written while the device computes the next one
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
    if (before) SLUICE_OK(detail::write(file, *before));
    samples += batch.count;
    before = std::move(now);
  }
  if (before) SLUICE_OK(detail::write(file, *before));
  SLUICE_OK(file.commit());
  return samples;
}

}  // namespace sluice::train
