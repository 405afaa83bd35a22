// TensorBoard's event files: scalars, images and histograms over steps, texts, and a run's hyper-parameters.
// They are written without protobuf: the messages they need have only a few fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/train/hyper_parameters.h"
#include "sluice/train/log/histogram.h"

namespace sluice::train {

// The beginning of the names of event files.
inline constexpr char kEventFile[] = "events.out.tfevents.";

// Writes one file "events.out.tfevents.…" in a folder, appended to and flushed event by event, so that a
// killed run leaves a readable file. Threads: one at a time.
class EventWriter {
 public:
  // Creates the folder if it is missing. The file's name sorts after the existing ones, in the order in which
  // TensorBoard reads them. Its first record (SessionLog START) says that a run starts with the step
  // `first_step`: readers drop the records of this and later steps in earlier files of the folder.
  static base::Result<EventWriter> create(const std::string& folder, int64_t first_step = 0);
  EventWriter(EventWriter&& other) noexcept;
  EventWriter& operator=(EventWriter&& other) noexcept;
  ~EventWriter();

  // Adds one point of the curve `tag`. `wall` is in seconds since 1970.
  base::Status scalar(std::string_view tag, double value, int64_t step, double wall);
  // Adds a text, in Markdown, to TensorBoard's page TEXT.
  base::Status text(std::string_view tag, std::string_view markdown, int64_t step, double wall);
  // Adds an image to the page IMAGES: `png` is the file, its sides are in pixels.
  base::Status image(std::string_view tag, std::string_view png, int64_t height, int64_t width, int64_t step,
                     double wall);
  // Adds a histogram to the pages HISTOGRAMS and DISTRIBUTIONS.
  base::Status histogram(std::string_view tag, const std::vector<HistogramBucket>& buckets, int64_t step,
                         double wall);
  // Write the run's records for the page HPARAMS: its parameters when it begins, and that it has ended well.
  base::Status hyper_parameters(const std::vector<HyperParameter>& parameters, double wall);
  base::Status ended(double wall);
  const std::string& path() const { return path_; }

 private:
  EventWriter() = default;
  base::Status record(std::string_view event);
  base::Status summary(std::string_view value, int64_t step, double wall);
  std::string path_;
  int descriptor_ = -1;
};

// CRC-32C (Castagnoli), and the masked (rotated) form that event files have.
uint32_t crc32c(std::string_view bytes);
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace sluice::train
