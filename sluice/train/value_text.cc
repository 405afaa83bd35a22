#include "sluice/train/value_text.h"

#include "sluice/base/strings.h"
#include "sluice/metrics/names.h"
#include "sluice/session/log_line.h"

namespace sluice::train {

double shown(const metrics::Value& value) {
  return metrics::is_accuracy(value.name) ? metrics::percent(value) : value.number;
}

std::string text_of(const std::string& name, double value, const char* separator) {
  const bool percent = metrics::is_accuracy(name);
  return base::str(metrics::label(name), separator, sessions::fixed(value, percent ? 2 : 5),
                   percent ? "%" : "");
}

std::string line_of(const metrics::Values& values) {
  std::string line;
  for (const metrics::Value& value : values.numbers)
    if (value.name.find('/') == std::string::npos) line += ", " + text_of(value.name, shown(value));
  return line;
}

void put_into(Measurement& row, const metrics::Values& values) {
  for (const metrics::Value& value : values.numbers) {
    if (value.name == "loss")
      row.loss = value.number;
    else if (value.name == "accuracy")
      row.accuracy = shown(value);
    else
      row.others.push_back({value.name, metrics::label(value.name) + "/" + row.split, shown(value)});
  }
}

}  // namespace sluice::train
