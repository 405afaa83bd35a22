// A StableHLO program from another framework (JAX's lower().as_text()), compiled so that it can run
// repeatedly next to Sluice's own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/pjrt/client.h"

namespace sluice::bench {

class ForeignProgram {
 public:
  // Compiles the text and fills its arguments with small positive numbers (integers: zeros). Errors: a main
  // function whose arguments are not plain tensors, and the plugin's errors.
  static base::Result<ForeignProgram> load(const std::string& path, std::shared_ptr<pjrt::Client> client);
  // Runs the program this number of times and waits at the end. A result that uses an argument's memory is
  // that argument in the next run.
  base::Status run(int times = 1);
  double compile_seconds() const { return executable_->seconds(); }

  const pjrt::Executable& executable() const { return *executable_; }
  const std::vector<pjrt::Buffer>& arguments() const { return arguments_; }
  const std::vector<int>& aliases() const { return aliases_; }

 private:
  std::shared_ptr<pjrt::Client> client_;
  std::shared_ptr<pjrt::Executable> executable_;
  std::vector<pjrt::Buffer> arguments_;
  std::vector<int> aliases_;  // [argument]: the result that uses its memory, or -1
};

}  // namespace sluice::bench
