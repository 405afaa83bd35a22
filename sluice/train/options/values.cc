#include "sluice/train/options/values.h"

#include <algorithm>
#include <charconv>

#include "sluice/base/text/join.h"
#include "sluice/data/order/length_buckets.h"

namespace sluice::train {

double MaxBad::limit() const { return percent ? std::min(amount / 100, 0.999) : amount; }

std::string text_of(const MaxBad& limit) {
  char digits[400];
  // The shortest text that gives the number again; samples without an exponent.
  const auto end =
      limit.percent ? std::to_chars(digits, digits + sizeof digits, limit.amount)
                    : std::to_chars(digits, digits + sizeof digits, limit.amount, std::chars_format::fixed);
  return std::string(digits, end.ptr) + (limit.percent ? "%" : "");
}

std::string text_of(const ProfileSteps& steps) {
  return steps == ProfileSteps() ? "" : base::str(steps.first, ":", steps.end);
}

std::string text_of(const Mesh& mesh) { return mesh.str(); }

std::string text_of(const Resume& resume) { return resume.from_last ? kFromLast : resume.folder; }

std::string text_of(const std::vector<data::LengthShape>& shapes) { return data::shapes_text(shapes); }

}  // namespace sluice::train
