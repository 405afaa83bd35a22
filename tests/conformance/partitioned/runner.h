// Runs samples laid out over a mesh and compares them with LibTorch's CPU.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/partitioned/cases.h"
#include "tests/conformance/partitioned/journal.h"
#include "tests/conformance/partitioned/known.h"
#include "tests/conformance/partitioned/subject.h"

namespace sluice::conformance {

struct RunnerOptions {
  bool alone = false;   // each case is a program of its own, so that a crash has one case
  bool broken = false;  // inputs come to the devices wrongly, which must be seen
  size_t every = 1;     // of each sample's cases only each N-th, beginning at another one for each line
};

class Runner {
 public:
  Runner(at::Device device, const KnownDifferences& known, const Journal& journal, RunnerOptions options)
      : device_(device), known_(known), journal_(journal), options_(options) {}

  // Records the sample's cases. They are compared later, so that many are compiled as one program. Returns
  // whether a dimension of an input is laid out in one of them.
  bool add(const Sample& sample, size_t number);
  // Cuts the graph and compares all that is open.
  void flush();

 private:
  struct Pending {
    std::shared_ptr<const Subject> subject;
    Case how;
    bool in_place = false;
    Open open = {};
    std::string name() const;
  };

  bool add_cases(const std::shared_ptr<const Subject>& subject, const std::vector<Case>& cases);
  void add_case(Pending pending);
  void record(Pending& pending) const;
  // Compares what a program gave; `trouble` if it failed.
  void settle(Pending& pending, const std::string& trouble);
  // Returns what differs when the same call is run with everything whole; "" if nothing does.
  std::string difference_of_whole(const Pending& pending) const;
  void differs(const Pending& pending, const std::string& message);

  at::Device device_;
  const KnownDifferences& known_;
  const Journal& journal_;
  RunnerOptions options_;
  std::vector<Pending> pending_;
};

}  // namespace sluice::conformance
