// Recurrent layers over sequences of varying lengths that are padded to a few lengths.
#pragma once

#include <torch/nn/modules/rnn.h>

#include <optional>
#include <tuple>

#include "sluice/base/export.h"
#include "sluice/device/pad.h"

SLUICE_API_BEGIN
namespace sluice {

// Runs an LSTM, a GRU or an RNN over padded sequences. pack_padded_sequence(), forward_with_packed_input()
// and pad_packed_sequence() have the same results, but a packed batch has one row for each step of each
// sequence, so nearly every batch needs its own program. This needs one program for each padded length:
//
//   const auto sentences = sluice::pad_to(batch, {16, 32, 64});  // on the host
//   const auto [output, state] =
//       sluice::forward_padded(lstm, {sentences.values.to(device), sentences.mask.to(device)});
//
// `sequences`: values [batch, length, input size] and mask [batch, length], for either batch_first of
// the module. In each row of the mask the true elements come first, as pad_to() makes it; the batch needs no
// order. Returns the output [batch, length, directions * hidden size], which is 0 after a sequence's end, and
// the last state of each sequence (of an LSTM: hidden state and cell), [layers * directions, batch, hidden
// size]. `state`: the first state, of the same shape; zeros if it is not given. A sequence of length 0 keeps
// its first state. Differentiable, but not twice on the device. Throws c10::Error or sluice::Error for other
// shapes and for a module with proj_size. Threads: as the module.
std::tuple<at::Tensor, std::tuple<at::Tensor, at::Tensor>> forward_padded(
    torch::nn::LSTM module, const Padded& sequences,
    const std::optional<std::tuple<at::Tensor, at::Tensor>>& state = std::nullopt);
std::tuple<at::Tensor, at::Tensor> forward_padded(torch::nn::GRU module, const Padded& sequences,
                                                  const std::optional<at::Tensor>& state = std::nullopt);
std::tuple<at::Tensor, at::Tensor> forward_padded(torch::nn::RNN module, const Padded& sequences,
                                                  const std::optional<at::Tensor>& state = std::nullopt);

}  // namespace sluice
SLUICE_API_END
