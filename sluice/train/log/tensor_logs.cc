#include "sluice/train/log/tensor_logs.h"

#include <exception>

#include "sluice/base/clock.h"
#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/train/log/histogram.h"

namespace sluice::train {
namespace tensor_logs_detail {

void check_image(const std::string& tag, const torch::Tensor& image) {
  const bool has_type = image.scalar_type() == torch::kByte || image.is_floating_point();
  const int64_t channels = image.dim() == 3 ? image.size(0) : 1;
  const bool has_shape = image.dim() == 2 || image.dim() == 3;
  if (has_type && has_shape && (channels == 1 || channels == 3 || channels == 4) && image.numel() > 0) return;
  throw_error(
      Code::kInvalidArgument,
      base::str("the image '", tag, "' has the shape ", image.sizes(), " and the type ", image.scalar_type(),
                ": expected [height, width] or [1, 3 or 4 channels, height, width], of uint8 or of "
                "floating-point numbers from 0 to 1"));
}

void check_tag(const std::string& tag) {
  if (tag.empty())
    throw_error(Code::kInvalidArgument, "a scalar, an image or a histogram needs a tag, and it is empty");
}

void check_real(const std::string& tag, const torch::Tensor& values) {
  if (values.is_complex())
    throw_error(Code::kInvalidArgument, base::str("the values '", tag, "' have the type ",
                                                  values.scalar_type(), ": expected real numbers"));
}

// Returns the replicas' values one after the other; once if the value is equal everywhere.
torch::Tensor values_of(const sessions::Pending& value, torch::ScalarType type) {
  std::vector<torch::Tensor> parts = value.get();
  if (value.global()) parts.resize(1);
  for (torch::Tensor& part : parts) part = part.detach().to(type).flatten();
  return (parts.size() == 1 ? parts.front() : torch::cat(parts)).contiguous();
}

}  // namespace tensor_logs_detail

data::Pixels pixels_of(const torch::Tensor& image) {
  tensor_logs_detail::check_image("", image);
  torch::Tensor planes = image.dim() == 2 ? image.unsqueeze(0) : image;
  // NaN becomes black.
  if (planes.is_floating_point())
    planes = planes.to(torch::kFloat).nan_to_num(0).clamp(0, 1).mul(255).round();
  const torch::Tensor rows = planes.to(torch::kByte).permute({1, 2, 0}).contiguous();
  data::Pixels pixels{.height = rows.size(0), .width = rows.size(1), .channels = rows.size(2), .bytes = {}};
  const auto* bytes = rows.const_data_ptr<uint8_t>();
  pixels.bytes.assign(bytes, bytes + rows.numel());
  return pixels;
}

void TensorLogs::image(const sessions::Backend& backend, const std::string& tag, const torch::Tensor& image,
                       int64_t step) {
  tensor_logs_detail::check_tag(tag);
  tensor_logs_detail::check_image(tag, image);
  logs_.push_back({tag, Kind::kImage, step, base::wall_seconds(), backend.fetch(image.detach())});
}

void TensorLogs::histogram(const sessions::Backend& backend, const std::string& tag,
                           const torch::Tensor& values, int64_t step) {
  tensor_logs_detail::check_tag(tag);
  tensor_logs_detail::check_real(tag, values);
  logs_.push_back({tag, Kind::kHistogram, step, base::wall_seconds(), backend.fetch(values.detach())});
}

void TensorLogs::scalar(const sessions::Backend& backend, const std::string& tag, const torch::Tensor& value,
                        int64_t step) {
  tensor_logs_detail::check_tag(tag);
  tensor_logs_detail::check_real(tag, value);
  if (value.numel() != 1)
    throw_error(Code::kInvalidArgument,
                base::str("the scalar '", tag, "' has the shape ", value.sizes(), ": expected one element"));
  logs_.push_back({tag, Kind::kScalar, step, base::wall_seconds(), backend.fetch(value.detach())});
}

void TensorLogs::deliver(EventWriter* events, bool wait) {
  for (; !logs_.empty() && (wait || logs_.front().value.ready()); logs_.pop_front()) {
    if (events == nullptr) continue;
    const Log& log = logs_.front();
    if (log.kind == Kind::kScalar) {
      const double mean = tensor_logs_detail::values_of(log.value, torch::kDouble).mean().item<double>();
      base::value_or_throw(events->scalar(log.tag, mean, log.step, log.wall));
    } else if (log.kind == Kind::kImage) {
      const data::Pixels pixels = pixels_of(log.value.get().front());
      const std::string png = base::value_or_throw(data::encode_png(pixels));
      base::value_or_throw(events->image(log.tag, png, pixels.height, pixels.width, log.step, log.wall));
    } else {
      const torch::Tensor values = tensor_logs_detail::values_of(log.value, torch::kFloat);
      const auto buckets =
          histogram_of({values.const_data_ptr<float>(), static_cast<size_t>(values.numel())});
      base::value_or_throw(events->histogram(log.tag, buckets, log.step, log.wall));
    }
  }
}

}  // namespace sluice::train
