// Calls whose values are known to differ when they are laid out over a mesh (known.txt).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::conformance {

// A line `aten::sort.stable | argument 0 [fsdp | reason`: the operation, a part of the case's name (`*`: any
// case), and why it differs. A reason that begins with `crashes` is not run.
struct KnownDifference {
  int line = 0;
  std::string op, part, reason;
  bool crashes() const { return reason.rfind("crashes", 0) == 0; }
};

class KnownDifferences {
 public:
  // Throws std::runtime_error for a file or a line that cannot be read.
  explicit KnownDifferences(const std::string& path);
  // Returns the entry of a case; null if there is none.
  const KnownDifference* find(const std::string& op, const std::string& name) const;
  const std::vector<KnownDifference>& all() const { return all_; }

 private:
  std::vector<KnownDifference> all_;
};

}  // namespace sluice::conformance
