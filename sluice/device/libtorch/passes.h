// Finds the layer and the part of a step that an operation belongs to while it is recorded.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/stablehlo/location.h"

namespace torch::autograd {
struct Node;
}

namespace sluice::device {

struct RecordedIn {
  uint32_t layer = 0;  // the layer's number in Names
  stablehlo::Pass pass = stablehlo::Pass::kForward;
};

// The forward pass of a layer begins where one of its parameters is read. Its backward pass is everything
// that is recorded by autograd functions made since then, which are numbered in the order of their making.
// Operations without gradients after a backward pass are an update. Belongs to the trace's lock.
class Passes {
 public:
  // Returns the place of one of LibTorch's operations, which may have a function of autograd, and of a part
  // of one. `read`: the name of the parameter read last.
  RecordedIn operation(uint32_t read);
  RecordedIn part(uint32_t read);
  // Notes that the graph was cut.
  void cut();

 private:
  void note_forward(uint32_t layer);
  uint32_t layer_of(torch::autograd::Node& function, uint32_t read) const;

  struct Begin {
    uint64_t function;  // its sequence number in the thread
    uint32_t layer;
  };
  std::vector<Begin> begins_;
  uint64_t thread_ = 0;           // the thread that made the functions
  const char* noting_ = nullptr;  // an address of that thread's own
  uint64_t noted_ = 0;            // one more than the number of the last function that was noted
  bool backward_ = false;
};

}  // namespace sluice::device
