#include "sluice/train/evaluate.h"

#include <cmath>
#include <iterator>

namespace sluice::train {

Evaluation evaluate(Session& session, const std::function<torch::Tensor(torch::Tensor)>& forward, Feed feed,
                    int64_t most, const std::function<bool()>& stop,
                    const std::function<void(int64_t)>& on_batch,
                    const std::vector<metrics::Metric>& others) {
  torch::NoGradGuard no_grad;
  std::vector<metrics::Metric> measured = {metrics::TopK(1).named("accuracy"), metrics::Mean("loss")};
  const auto own = static_cast<std::ptrdiff_t>(measured.size());
  measured.insert(measured.end(), others.begin(), others.end());
  metrics::Collection sums(session, std::move(measured));
  Evaluation result;
  int64_t done = 0;
  for (auto& batch : feed) {
    const at::Tensor logits = forward(batch.image).to(at::kFloat);
    sums.update(logits, batch.label, batch.mask);
    sums.add(
        "loss",
        torch::nn::functional::cross_entropy(
            logits, batch.label, torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone)),
        batch.mask);
    session.sync("evaluate");
    on_batch(++done);
    if (done == most) break;
    if (stop()) {
      result.stopped = true;
      break;
    }
  }
  session.finish();
  metrics::Values values = sums.compute();
  const metrics::Value& accuracy = values.value("accuracy");
  result.samples = accuracy.count;
  result.correct = std::llround(accuracy.number * static_cast<double>(accuracy.count));
  result.loss = result.samples > 0 ? values["loss"] : 0;
  values.numbers.erase(values.numbers.begin(), values.numbers.begin() + own);
  result.values = std::move(values);
  return result;
}

}  // namespace sluice::train
