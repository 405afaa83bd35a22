// On which thread the operations of a backward pass are recorded.
#pragma once

namespace sluice::device {

// From now on a backward pass of a value on the device is recorded by the thread that calls backward(), if
// that is the one that records: handing it to autograd's thread and back takes a fifth of recording a small
// model's step. Nothing of LibTorch's state changes but during such a pass. Where another engine than
// LibTorch's own is in place (Python's), it stays, and autograd's thread records.
void install_backward_engine();

}  // namespace sluice::device
