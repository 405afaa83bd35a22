// The view of a sample that a filter gets: nothing is decoded yet.
#pragma once

#include <optional>
#include <string_view>

#include "sluice/base/export.h"

SLUICE_API_BEGIN
namespace sluice::data {

struct RawSample;

// The view is valid only during the call that gets it.
class SampleView {
 public:
  explicit SampleView(const RawSample& sample) : sample_(sample) {}

  std::string_view key() const;
  std::string_view shard() const;  // as WebDataset::urls() names it
  // Returns the bytes of a member that the filter asked for, by its extension in lower case; nothing if the
  // sample has no such member.
  std::optional<std::string_view> member(std::string_view extension) const;

 private:
  const RawSample& sample_;
};

}  // namespace sluice::data
SLUICE_API_END
