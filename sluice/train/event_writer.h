// TensorBoard's event files: scalars over steps. Written without protobuf: the two messages that scalars need
// are a handful of fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/base/result.h"

namespace sluice::train {

// One file "events.out.tfevents.…" in a folder, appended to and flushed event by event, so that a killed run
// leaves a readable file. Threads: one at a time.
class EventWriter {
 public:
  // Makes the folder when it is missing.
  static base::Result<EventWriter> create(const std::string& folder);
  EventWriter(EventWriter&& other) noexcept;
  EventWriter& operator=(EventWriter&& other) noexcept;
  ~EventWriter();

  // One point of the curve `tag`. `wall` is in seconds since 1970.
  base::Status scalar(std::string_view tag, double value, int64_t step, double wall);
  const std::string& path() const { return path_; }

 private:
  EventWriter() = default;
  base::Status record(std::string_view event);
  std::string path_;
  int descriptor_ = -1;
};

// CRC-32C (Castagnoli), and the rotated form that event files hold.
uint32_t crc32c(std::string_view bytes);
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace sluice::train
