// Decides which thread records the operations of a backward pass.
#pragma once

namespace sluice::device {

// Makes the thread that calls backward() record a backward pass of a value on the device, if it is the thread
// that records: handing the pass to autograd's thread and back takes a fifth of the time to record a small
// model's step. LibTorch's state changes only during such a pass. If another engine than LibTorch's own is
// installed (Python's), it stays, and autograd's thread records.
void install_backward_engine();

}  // namespace sluice::device
