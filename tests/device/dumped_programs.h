// The text of the programs that a test makes, and which kernels it calls.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "sluice/base/files/file.h"
#include "tests/device/support.h"

namespace sluice::tests {

// How often a program's text names this kernel.
inline int64_t calls_of(const std::string& target, const std::filesystem::path& program) {
  return static_cast<int64_t>(count_of(target, base::value_or_throw(base::read_file(program))));
}

// A fresh device, which writes its programs to a folder that is there as long as this.
class DumpedPrograms {
 public:
  explicit DumpedPrograms(DeviceOptions options = {}) {
    options.dump = folder_.path();
    restart(options);
  }

  // In the order in which they were made.
  std::vector<std::filesystem::path> all() const {
    std::vector<std::filesystem::path> found;
    for (const auto& file : std::filesystem::directory_iterator(folder_.path())) found.push_back(file.path());
    std::sort(found.begin(), found.end());
    return found;
  }
  int64_t calls(const std::string& target) const {
    int64_t calls = 0;
    for (const auto& program : all()) calls += calls_of(target, program);
    return calls;
  }

 private:
  base::TemporaryDirectory folder_ = base::value_or_throw(base::TemporaryDirectory::create());
};

}  // namespace sluice::tests
