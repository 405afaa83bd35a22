// Networks of the cases that `sluice train` does not have. Each returns its loss and needs no target.
#pragma once

#include <cstdint>

#include "sluice/models/models.h"

namespace sluice::bench {

// An LSTM that predicts the next token. forward() takes ids [batch, length + 1] and returns the mean loss.
struct LstmOptions {
  int64_t vocabulary = 10000;
  int64_t width = 512;
  int64_t layers = 2;
};
models::ModelPtr next_token_lstm(const LstmOptions& options = {});

// The generator and the discriminator of DCGAN for images [batch, 3, 64, 64] in -1 … 1. forward() takes real
// images and returns the sum of both losses: its gradient in the discriminator's parameters tells real from
// generated images, and in the generator's parameters it makes images that pass for real.
models::ModelPtr dcgan();

}  // namespace sluice::bench
