// Sets of code points.
#pragma once

#include <vector>

namespace sluice::text {

inline constexpr char32_t kLastCodePoint = 0x10FFFF;

// Whether a set contains surrogates makes no difference: no text has them.
class CodePoints {
 public:
  struct Range {
    char32_t first, last;
  };

  CodePoints() = default;
  // The ranges may overlap and have any order.
  explicit CodePoints(std::vector<Range> ranges);
  // The set begins at the first place, ends before the second, begins again at the third, and so on.
  static CodePoints of_places(const std::vector<char32_t>& places);

  void add(char32_t first, char32_t last);
  void add(const CodePoints& other);
  CodePoints complement() const;
  CodePoints without(const CodePoints& other) const;
  CodePoints intersection(const CodePoints& other) const;

  bool has(char32_t code) const;
  bool empty() const { return ranges_.empty(); }
  // The ranges in ascending order, with gaps between them.
  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  void arrange();
  std::vector<Range> ranges_;
};

}  // namespace sluice::text
