// What a filter sees of a sample: nothing is decoded yet.
#pragma once

#include <optional>
#include <string_view>

#include "sluice/base/export.h"

SLUICE_API_BEGIN
namespace sluice::data {

struct RawSample;

// Valid during the call that it is given to.
class SampleView {
 public:
  explicit SampleView(const RawSample& sample) : sample_(sample) {}

  std::string_view key() const;
  std::string_view shard() const;  // as WebDataset::urls() names it
  // The bytes of one of the members that the filter asked for, by its extension in lower case; nothing where
  // the sample has none.
  std::optional<std::string_view> member(std::string_view extension) const;

 private:
  const RawSample& sample_;
};

}  // namespace sluice::data
SLUICE_API_END
