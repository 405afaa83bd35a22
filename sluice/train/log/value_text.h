// The values of tests, as lines, tables and curves show them.
#pragma once

#include <string>
#include <vector>

#include "sluice/metrics/metrics.h"
#include "sluice/train/log/metrics_writer.h"

namespace sluice::train {

// Returns shares of samples, such as accuracy, in percent.
double shown(const metrics::Value& value);
// Returns "Accuracy=93.10%" or "F1=0.71234" for a value that shown() has converted.
std::string text_of(const std::string& name, double value, const char* separator = "=");
// Returns ", Loss=0.30512, Accuracy=93.10%": all values except the numbers of single classes.
std::string line_of(const metrics::Values& values);
// Adds the values as columns of a row; the loss and the accuracy have their own columns.
void put_into(Measurement& row, const metrics::Values& values);
// Adds the values of another test set to both, with the set's name before theirs.
void put_into(Measurement& row, metrics::Values& all, const metrics::Values& more, const std::string& set);

}  // namespace sluice::train
