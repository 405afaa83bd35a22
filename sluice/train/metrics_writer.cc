#include "sluice/train/metrics_writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>

#include "sluice/base/clock.h"
#include "sluice/base/file.h"

namespace sluice::train {
namespace metrics_detail {

constexpr const char* kColumns =
    "time,split,epoch,step,loss,rate,global_rate,learning_rate,accuracy,"
    "examples_per_second,step_p50_ms,step_p95_ms,tokens_per_second,flops_per_second,mfu,"
    "memory_in_use,memory_peak,input_share";

// The measured values with the names of their columns and of their TensorBoard curves.
struct Field {
  const char* column;
  const char* curve;
  std::optional<double> value;
};

std::vector<Field> fields(const Measurement& row) {
  const bool test = row.split == "test";
  const StepRates& steps = row.steps;
  const auto number = [](const std::optional<int64_t>& bytes) {
    return bytes ? std::optional(static_cast<double>(*bytes)) : std::nullopt;
  };
  return {{"loss", test ? "Loss/test" : "Loss", row.loss},
          {"rate", "Rate_step", row.rate},
          {"global_rate", "Global Rate", row.global_rate},
          {"learning_rate", "LearningRate", row.learning_rate},
          {"accuracy", test ? "Accuracy/test" : "Accuracy/train", row.accuracy},
          {"examples_per_second", "examples/sec", row.examples_per_second},
          {"step_p50_ms", "Step/p50 ms", steps.p50_ms},
          {"step_p95_ms", "Step/p95 ms", steps.p95_ms},
          {"tokens_per_second", "tokens/sec", steps.tokens_per_second},
          {"flops_per_second", "FLOP/s", steps.flops_per_second},
          {"mfu", "MFU", steps.mfu},
          {"memory_in_use", "Memory/in use", number(steps.memory_in_use)},
          {"memory_peak", "Memory/peak", number(steps.memory_peak)},
          {"input_share", "Step/input share", steps.input_share}};
}

base::Status append(const std::string& path, const std::string& line) {
  std::ofstream out(path, std::ios::app);
  out << line << std::flush;
  if (!out) return base::fail_errno(errno, "cannot write", path);
  return {};
}

// The number after `mark` in a line, or nothing.
std::optional<int64_t> number_after(const std::string& line, const std::string& mark) {
  size_t at = line.find(mark);
  if (at == std::string::npos) return std::nullopt;
  int64_t value = 0;
  const char* begin = line.data() + at + mark.size();
  if (std::from_chars(begin, line.data() + line.size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

std::optional<int64_t> csv_step(const std::string& line) {
  auto cells = base::split(line, ',');
  return cells.size() > 3 ? number_after("=" + cells[3], "=") : std::nullopt;
}

// Keeps the lines of steps up to `last`; a line cut off in the middle has no step or no end, and goes too.
template <typename StepOf>
base::Status keep_until(const std::string& path, int64_t last, bool header, const StepOf& step_of) {
  if (!base::path_exists(path)) return {};
  SLUICE_TRY(std::string text, base::read_file(path));
  std::string kept;
  bool first = header;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    std::string line = text.substr(begin, end - begin);
    auto step = step_of(line);
    if (first || (step && *step <= last)) kept += line + "\n";
    first = false;
  }
  return base::write_file_atomically(path, kept);
}

// A table from before a column was added gets it, empty.
base::Status widen(const std::string& path) {
  if (!base::path_exists(path)) return {};
  SLUICE_TRY(const std::string text, base::read_file(path));
  const std::string_view columns = kColumns;
  const std::string_view header = std::string_view(text).substr(0, text.find('\n'));
  if (header.size() >= columns.size() || columns.substr(0, header.size()) != header) return {};
  const std::string_view more = columns.substr(header.size());
  const std::string commas(static_cast<size_t>(std::count(more.begin(), more.end(), ',')), ',');
  std::string wide = std::string(columns) + "\n";
  for (const auto& line : base::split(text.substr(header.size()), '\n'))
    if (!line.empty()) wide += line + commas + "\n";
  return base::write_file_atomically(path, wide);
}

}  // namespace metrics_detail

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[40];
  auto end = std::to_chars(text, text + sizeof text, value);
  return std::string(text, end.ptr);
}

namespace metrics_detail {

// What all lines begin with.
std::string json_head(double wall, const std::string& split, int64_t epoch, int64_t step) {
  char time[40];
  auto end = std::to_chars(time, time + sizeof time, wall, std::chars_format::fixed, 3);
  return base::str("{\"time\": ", std::string_view(time, static_cast<size_t>(end.ptr - time)),
                   ", \"split\": \"", split, "\", \"epoch\": ", epoch, ", \"step\": ", step);
}

}  // namespace metrics_detail

std::string json_text(const EpochTimes& times, int64_t epoch, int64_t step, double wall) {
  return base::str(metrics_detail::json_head(wall, "epoch", epoch, step), ", \"bound\": \"", times.bound(),
                   "\", \"input_seconds\": ", number_text(times.input),
                   ", \"trace_seconds\": ", number_text(times.trace),
                   ", \"device_seconds\": ", number_text(times.device),
                   ", \"compile_seconds\": ", number_text(times.compiling), "}");
}

std::string json_text(const Measurement& row, double wall) {
  std::string out = metrics_detail::json_head(wall, row.split, row.epoch, row.step);
  if (row.process) out += base::str(", \"process\": ", *row.process);
  for (const auto& field : metrics_detail::fields(row)) {
    if (!field.value) continue;
    // JSON has no numbers for these.
    std::string text = number_text(*field.value);
    out += base::str(", \"", field.column, "\": ", std::isfinite(*field.value) ? text : "\"" + text + "\"");
  }
  return out + "}";
}

base::Result<MetricsWriter> MetricsWriter::create(const std::string& folder, int64_t resume_step) {
  SLUICE_OK(base::make_directories(folder));
  const std::string csv = base::join_path(folder, "metrics.csv"),
                    jsonl = base::join_path(folder, "metrics.jsonl");
  SLUICE_OK(metrics_detail::keep_until(csv, resume_step, true, metrics_detail::csv_step));
  SLUICE_OK(metrics_detail::keep_until(jsonl, resume_step, false, [](const std::string& line) {
    return metrics_detail::number_after(line, "\"step\": ");
  }));
  SLUICE_OK(metrics_detail::widen(csv));
  if (!base::path_exists(csv))
    SLUICE_OK(metrics_detail::append(csv, std::string(metrics_detail::kColumns) + "\n"));
  SLUICE_TRY(EventWriter events, EventWriter::create(folder));
  return MetricsWriter(folder, std::move(events));
}

base::Status MetricsWriter::write(const Measurement& row) {
  const double wall = base::wall_seconds();
  std::string line = base::str(static_cast<int64_t>(wall), ",", row.split, ",", row.epoch, ",", row.step);
  for (const auto& field : metrics_detail::fields(row)) {
    line += ",";
    if (!field.value) continue;
    line += number_text(*field.value);
    SLUICE_OK(events_.scalar(field.curve, *field.value, row.step, wall));
  }
  SLUICE_OK(metrics_detail::append(base::join_path(folder_, "metrics.csv"), line + "\n"));
  return metrics_detail::append(base::join_path(folder_, "metrics.jsonl"), json_text(row, wall) + "\n");
}

base::Status MetricsWriter::write(const EpochTimes& times, int64_t epoch, int64_t step) {
  const double wall = base::wall_seconds(), whole = std::max(times.seconds(), 1e-9);
  SLUICE_OK(events_.scalar("Share/input", times.input / whole, step, wall));
  SLUICE_OK(events_.scalar("Share/tracing", times.trace / whole, step, wall));
  SLUICE_OK(events_.scalar("Share/device", times.device / whole, step, wall));
  return metrics_detail::append(base::join_path(folder_, "metrics.jsonl"),
                                json_text(times, epoch, step, wall) + "\n");
}

}  // namespace sluice::train
