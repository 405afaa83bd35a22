// How lines, tables and curves show the values of tests.
#pragma once

#include <string>
#include <vector>

#include "sluice/metrics/metrics.h"
#include "sluice/train/metrics_writer.h"

namespace sluice::train {

// Shares of samples are in percent, as accuracy is.
double shown(const metrics::Value& value);
// "Accuracy=93.10%", "F1=0.71234" for a value as shown() gives it.
std::string text_of(const std::string& name, double value, const char* separator = "=");
// ", Loss=0.30512, Accuracy=93.10%": all but the numbers of single classes.
std::string line_of(const metrics::Values& values);
// The columns of a row of these: the loss and the accuracy have their own.
void put_into(Measurement& row, const metrics::Values& values);
// Those of another test set, into both, with its name before theirs.
void put_into(Measurement& row, metrics::Values& all, const metrics::Values& more, const std::string& set);

}  // namespace sluice::train
