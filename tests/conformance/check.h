// Runs samples on the device and on the CPU and compares: functional, gradients, in-place, out, views.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/conformance/call.h"
#include "tests/conformance/judge.h"
#include "tests/conformance/sample.h"

namespace sluice::conformance {

// A damage that the harness itself does to the device's answers, to prove that it would be seen.
enum class Break { kNone, kValue, kDType, kShape, kGradient, kWrite, kIdentity };
// Throws std::runtime_error for an unknown name.
Break break_named(const std::string& name);

struct Report {
  int64_t samples = 0;
  int64_t calls = 0;    // on the device
  int64_t skipped = 0;  // calls that LibTorch's CPU cannot do in this type
  int64_t fallbacks = 0;
  int64_t failures = 0;
};

class Checker {
 public:
  // Without `everything` the in-place and out forms are called in a sample's first types alone, and with
  // operands that are views of one kind, which the sample's line chooses.
  Checker(at::Device device, Break damage, int replicas = 1, bool everything = false)
      : device_(device), damage_(damage), replicas_(replicas), everything_(everything) {}

  // Records the sample's calls on the device and computes the references. Results are compared later, so that
  // many calls are compiled as one program.
  void add(const Sample& sample);
  // Cuts the graph and compares all that is open.
  void flush();
  const Report& report() const { return report_; }

 private:
  void record(const Sample& sample);
  // Returns whether the call wrote into an argument.
  bool record_run(const Sample& sample, const Op& op, const Op& reference, const RunTypes& types, View view);
  // Of operands that are views: results lie in their storages as LibTorch's own ones do.
  void compare_all_strides(const Open& open, const Op& reference);
  void record_forms(const Sample& sample, const Op& op, const Inputs& inputs, const std::string& what,
                    const std::vector<at::Tensor>& like, View view);
  void compare_open();
  void bring_home(Outcome& outcome) const;
  void fail(const Sample& sample, const std::string& what, const std::string& message);

  at::Device device_;
  Break damage_;
  int replicas_;
  bool everything_;
  Report report_;
  std::vector<Open> open_;
  std::vector<const Sample*> waiting_;
  std::map<const Sample*, int> failures_of_;
};

}  // namespace sluice::conformance
