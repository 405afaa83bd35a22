// The log line of a training step: the same from the trainer and from session.log_every.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sluice/session/rate.h"
#include "sluice/session/rates/step_rates.h"

namespace sluice::sessions {

struct LogLine {
  at::Device device;
  int process = 0;
  int64_t epoch = 0, step = 0;
  std::vector<std::pair<std::string, double>> values = {};
  Rates rates;
  std::string time;      // the time of day when the step was recorded
  StepRates steps = {};  // of the steps since the previous line
};

// Returns "| Training Device=xla:0/2 Epoch=8 Step=310 Loss=0.26758 Rate=1079.01 GlobalRate=1420.67
// Time=18:02:10", followed by the known rates of the steps: " StepMs=118.2/121.9 TFLOP/s=64.1 MFU=41.2%
// GiB=10.2/13.1 Input=2%".
std::string text_of(const LogLine& line);
// Returns the value with `digits` digits after the decimal point.
std::string fixed(double value, int digits);

}  // namespace sluice::sessions
