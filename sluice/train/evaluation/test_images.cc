#include "sluice/train/evaluation/test_images.h"

#include "sluice/base/clock.h"
#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/data/images/image.h"
#include "sluice/session/backend.h"
#include "sluice/session/log_line.h"
#include "sluice/train/log/tensor_logs.h"

namespace sluice::train {
namespace test_images_detail {

// Returns [channels, height, width] in 0…1.
torch::Tensor shown(const torch::Tensor& image, const std::vector<float>& mean,
                    const std::vector<float>& deviation) {
  const int64_t channels = image.size(0);
  const auto column = [&](const std::vector<float>& given, double usual) {
    return (given.empty() ? torch::full({channels}, usual) : torch::tensor(given)).reshape({channels, 1, 1});
  };
  torch::Tensor plain = image.to(torch::kFloat) * column(deviation, 0.25) + column(mean, 0.5);
  return channels == 1 ? plain.expand({3, -1, -1}) : plain;
}

torch::Tensor framed(const torch::Tensor& image, bool right) {
  const int64_t width = std::max<int64_t>(2, image.size(2) / 32);
  torch::Tensor frame = torch::zeros({3, image.size(1) + 2 * width, image.size(2) + 2 * width});
  frame[right ? 1 : 0].fill_(right ? 0.7 : 0.9);
  frame.slice(1, width, -width).slice(2, width, -width).copy_(image);
  return frame;
}

// Returns a class's name, escaped for Markdown's tables.
std::string cell(const std::vector<std::string>& classes, int64_t number) {
  if (number < 0 || number >= static_cast<int64_t>(classes.size())) return std::to_string(number);
  std::string name;
  for (const char c : classes[static_cast<size_t>(number)])
    name += c == '|' ? std::string("\\|") : std::string(1, c);
  return name;
}

}  // namespace test_images_detail

void TestImages::look(Session& session, const Batch& batch, const StepOutput& step) {
  if (looked_) return;
  const bool fits = batch.image.defined() && batch.image.dim() == 4 && step.output.defined() &&
                    step.output.dim() == 2 && step.target.defined() && step.target.dim() == 1;
  if (!fits)
    throw_error(
        Code::kInvalidArgument,
        "--log-images is for images and steps whose validation gives an output [N, classes] and a target "
        "[N]: leave it out, or log images of your own in a callback (Run::log_image)");
  torch::NoGradGuard no_grad;
  const sessions::Backend& backend = session.backend();
  const auto first = [&](const torch::Tensor& all) { return backend.fetch(all.slice(0, 0, most_)); };
  images_ = first(batch.image);
  const auto [shares, answers] = step.output.to(torch::kFloat).softmax(1).max(1);
  shares_ = first(shares);
  answers_ = first(answers);
  labels_ = first(step.target);
  if (batch.mask.defined()) masks_ = first(batch.mask);
  looked_ = true;
}

void TestImages::write(EventWriter& events, const std::vector<std::string>& classes, int64_t step) const {
  namespace detail = test_images_detail;
  if (!looked_) return;
  const double wall = base::wall_seconds();
  const torch::Tensor images = images_.get().front(), shares = shares_.get().front();
  const torch::Tensor answers = answers_.get().front(), labels = labels_.get().front();
  const torch::Tensor mask = masks_ ? masks_->get().front() : torch::ones({images.size(0)}, torch::kBool);
  std::string table = "| image | label | answer | share |\n| --- | --- | --- | --- |\n";
  for (int64_t i = 0; i < images.size(0); ++i) {
    if (!mask[i].item<bool>()) continue;
    const auto label = labels[i].item<int64_t>(), answer = answers[i].item<int64_t>();
    const data::Pixels pixels =
        pixels_of(detail::framed(detail::shown(images[i], mean_, deviation_), label == answer));
    const std::string png = base::value_or_throw(data::encode_png(pixels));
    base::value_or_throw(events.image(base::str("test/", i), png, pixels.height, pixels.width, step, wall));
    table += base::str("| ", i, " | ", detail::cell(classes, label), " | ", detail::cell(classes, answer),
                       " | ", sessions::fixed(shares[i].item<double>(), 3), " |\n");
  }
  base::value_or_throw(events.text("test/answers", table, step, wall));
}

}  // namespace sluice::train
