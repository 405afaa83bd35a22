#include "sluice/train/loop/run_view.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "sluice/base/random.h"

namespace sluice::train {

void RunView::stop(const std::string& reason) {
  if (state_.stop_reason.empty()) state_.stop_reason = reason;
}

void RunView::log_image(const std::string& tag, const torch::Tensor& image) {
  log_.tensors().image(given_.session.backend(), tag, image, state_.progress.step);
}

void RunView::log_histogram(const std::string& tag, const torch::Tensor& values) {
  log_.tensors().histogram(given_.session.backend(), tag, values, state_.progress.step);
}

void RunView::log_scalar(const std::string& tag, const torch::Tensor& value) {
  log_.tensors().scalar(given_.session.backend(), tag, value, state_.progress.step);
}

void RunView::log_scalar(const std::string& tag, double value) {
  log_scalar(tag, torch::scalar_tensor(value, torch::kDouble));
}

void RunView::log_text(const std::string& tag, const std::string& markdown) { log_.text(tag, markdown); }

bool RunView::forward_epoch(const std::function<void()>& after_batch) {
  constexpr uint64_t kOfPass = 0x5041;  // no step uses these random numbers
  const TrainOptions& options = given_.options;
  const Input& train = given_.train;
  const sessions::Progress& progress = state_.progress;
  if (state_.stopping || !given_.steps.training_step) return false;
  int64_t number = progress.epoch - (progress.batch > 0 ? 0 : 1);
  while (number > 0 && train.updates(given_.data_epoch(number)) == 0) --number;
  const int64_t epoch = given_.data_epoch(std::max<int64_t>(number, 0));
  torch::NoGradGuard no_grad;
  torch::manual_seed(base::key({options.seed, static_cast<uint64_t>(progress.step), kOfPass}));
  const bool was_training = given_.module.is_training();
  given_.module.train();
  auto feed = train.feed(given_.session, epoch, 0);
  const int64_t batches = train.batches_of(epoch, train.updates(epoch));
  bool whole = true;
  for (int64_t i = 0; i < batches && whole; ++i) {
    auto batch = feed.next();
    if (!batch) break;
    std::optional<Autocast> autocast;
    if (options.precision == Precision::kBf16) autocast.emplace(given_.session.device());
    given_.steps.training_step(*batch);
    autocast.reset();
    after_batch();
    given_.session.sync(shapes_.name("statistics", *batch).c_str());
    log_.console().progress("Statistics", i + 1, batches, "");
    whole = !limits_.stops_alone();
  }
  given_.module.train(was_training);
  return whole;
}

}  // namespace sluice::train
