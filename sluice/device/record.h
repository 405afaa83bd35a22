// The one boxed kernel that records every operation with a row, and its registration.
#pragma once

namespace sluice::device {

class Trace;
// Refuses a thread that would record while another one has operations pending. The caller holds the trace's
// lock.
void check_thread(Trace& trace);

// Registers the rows' functional, in-place and out variants, the kernels written by hand and the CPU fallback
// with LibTorch's dispatcher. Once a process; throws sluice::Error when a row names no operation of this
// LibTorch.
void register_kernels();

// Its parts (the hand-written kernels are in operators/without_rows.cc).
void register_rows();
void register_hand_written_kernels();
void register_hooks();
void register_fallback();
void register_attention();
// Before the rows, as the one above: they define operations that have rows.
void register_recurrent();
// Before the rows, too: it defines an operation that has one.
void register_lbfgs();
void register_composites();
void register_linear_algebra();
void register_value_shapes();
void register_autocast();

}  // namespace sluice::device
