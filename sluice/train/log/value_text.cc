#include "sluice/train/log/value_text.h"

#include "sluice/base/text/join.h"
#include "sluice/metrics/names.h"
#include "sluice/session/log_line.h"

namespace sluice::train {

namespace {

// Returns the name without the prefix of a test set.
std::string own_name(const std::string& name) { return name.substr(name.rfind('/') + 1); }

}  // namespace

double shown(const metrics::Value& value) {
  return metrics::is_accuracy(own_name(value.name)) ? metrics::percent(value) : value.number;
}

std::string text_of(const std::string& name, double value, const char* separator) {
  const bool percent = metrics::is_accuracy(own_name(name));
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

void put_into(Measurement& row, metrics::Values& all, const metrics::Values& more, const std::string& set) {
  for (const metrics::Value& value : more.numbers) {
    row.others.push_back({base::str(set, "/", value.name),
                          base::str(set, "/", metrics::label(value.name), "/", row.split), shown(value)});
    all.numbers.push_back(value);
    all.numbers.back().name = row.others.back().column;
  }
}

}  // namespace sluice::train
