// To which layer, and to which part of a step, an operation belongs that is recorded now.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/stablehlo/location.h"

namespace torch::autograd {
struct Node;
}

namespace sluice::device {

struct RecordedIn {
  uint32_t layer = 0;  // in Names
  stablehlo::Pass pass = stablehlo::Pass::kForward;
};

// The forward pass of a layer begins where one of its parameters is read. Its backward pass is what
// autograd's functions record that were made since then: they are numbered in the order in which they are
// made. What comes without gradients behind a backward pass is an update. Belongs to the trace's lock.
class Passes {
 public:
  // Of an operation of LibTorch's, which may have a function of autograd's, and of a part of one. `read`: the
  // name of the parameter read last.
  RecordedIn operation(uint32_t read);
  RecordedIn part(uint32_t read);
  // The graph was cut.
  void cut();

 private:
  void note_forward(uint32_t layer);
  uint32_t layer_of(torch::autograd::Node& function, uint32_t read) const;

  struct Begin {
    uint64_t function;  // its number among those of the thread
    uint32_t layer;
  };
  std::vector<Begin> begins_;
  uint64_t thread_ = 0;           // that made the functions
  const char* noting_ = nullptr;  // what is its own
  uint64_t noted_ = 0;            // one more than the last function that was
  bool backward_ = false;
};

}  // namespace sluice::device
