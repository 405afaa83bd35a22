// The one boxed kernel that records every operation with a row, and its registration.
#pragma once

namespace sluice::device {

class Trace;
// Throws if another thread has operations pending, so that this one must not record. The caller holds the
// trace's lock.
void check_thread(Trace& trace);

// Registers the rows' functional, in-place and out variants, the hand-written kernels and the CPU fallback
// with LibTorch's dispatcher. Call it once in a process. Throws sluice::Error if a row names an operation
// that this LibTorch does not have.
void register_kernels();

// The parts of register_kernels() (the hand-written kernels are in operators/without_rows.cc).
void register_rows();
void register_hand_written_kernels();
void register_hooks();
void register_fallback();
void register_attention();
// Call it before register_rows(), like register_attention(): both define operations that have rows.
void register_recurrent();
// Call it before register_rows(): it defines an operation that has a row.
void register_lbfgs();
void register_composites();
void register_linear_algebra();
void register_value_shapes();
void register_autocast();

}  // namespace sluice::device
