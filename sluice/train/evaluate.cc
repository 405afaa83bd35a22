#include "sluice/train/evaluate.h"

#include "sluice/replica/collectives.h"
#include "sluice/session/session_state.h"

namespace sluice::train {

Evaluation evaluate(Session& session, const std::function<torch::Tensor(torch::Tensor)>& forward, Feed feed,
                    int64_t most, const std::function<bool()>& stop,
                    const std::function<void(int64_t)>& on_batch) {
  torch::NoGradGuard no_grad;
  // The sums start as uploaded values, not as recorded constants: so the first batch runs the program of all
  // others.
  auto zero = [&](at::ScalarType type) {
    std::vector<at::Tensor> zeros;
    for (int r = 0; r < session.local_replicas(); ++r) zeros.push_back(at::zeros({1}, type));
    return session.upload(zeros);
  };
  at::Tensor samples = zero(at::kLong), correct = zero(at::kLong), loss = zero(at::kFloat);
  Evaluation result;
  int64_t done = 0;
  for (auto& batch : feed) {
    at::Tensor logits = forward(batch.image).to(at::kFloat);
    at::Tensor losses = torch::nn::functional::cross_entropy(
        logits, batch.label, torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
    at::Tensor right = logits.argmax(1).eq(batch.label);
    at::Tensor mask = batch.mask.defined() ? batch.mask : at::ones_like(right);
    samples.add_(mask.to(at::kLong).sum());
    correct.add_(right.logical_and(mask).to(at::kLong).sum());
    loss.add_(at::where(mask, losses, at::zeros_like(losses)).sum());
    session.sync("evaluate");
    on_batch(++done);
    if (done == most) break;
    if (stop()) {
      result.stopped = true;
      break;
    }
  }
  session.finish();
  // The sum over all replicas; the sums' own program runs once an evaluation.
  auto total = [&](const at::Tensor& part) { return session.read(sluice::sum(part)).front(); };
  result.samples = total(samples).item<int64_t>();
  result.correct = total(correct).item<int64_t>();
  const double sum = total(loss).item<double>();
  result.loss = result.samples > 0 ? sum / static_cast<double>(result.samples) : 0;
  return result;
}

}  // namespace sluice::train
