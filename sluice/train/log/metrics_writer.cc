#include "sluice/train/log/metrics_writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/shown_url.h"
#include "sluice/base/text/strings.h"
#include "sluice/train/log/event_points.h"
#include "sluice/train/log/lines.h"

namespace sluice::train {
namespace metrics_detail {

constexpr const char* kColumns =
    "time,split,epoch,step,loss,rate,global_rate,learning_rate,accuracy,"
    "examples_per_second,step_p50_ms,step_p95_ms,tokens_per_second,flops_per_second,mfu,"
    "memory_in_use,memory_peak,input_share";

// A measured value with the names of its column and of its TensorBoard curve.
struct Field {
  std::string column, curve;
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
          {"global_rate", row.of_epoch ? "Global Rate/epoch" : "Global Rate", row.global_rate},
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

// Returns the row's fields, including the run's own values.
std::vector<Field> all_fields(const Measurement& row) {
  std::vector<Field> all = fields(row);
  for (const auto& [column, curve, value] : row.others) all.push_back({column, curve, value});
  return all;
}

base::Status append(const std::string& path, const std::string& line) {
  std::ofstream out(path, std::ios::app);
  out << line << std::flush;
  if (!out) return base::fail_errno(errno, "write", path);
  return {};
}

// Returns the number after `mark` in a line; empty without one.
std::optional<int64_t> number_after(const std::string& line, const std::string& mark) {
  size_t at = line.find(mark);
  if (at == std::string::npos) return std::nullopt;
  int64_t value = 0;
  const char* begin = line.data() + at + mark.size();
  if (std::from_chars(begin, line.data() + line.size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

// Whether a line of metrics.csv is of a test, or of an epoch's end, which has no learning rate.
bool is_test(const std::vector<std::string>& cells) { return cells.size() > 1 && cells[1] == "test"; }
bool is_of_epoch(const std::vector<std::string>& cells) {
  return cells.size() > 7 && cells[1] == "train" && cells[7].empty();
}

std::optional<int64_t> csv_step(const std::string& line) {
  auto cells = base::split(line, ',');
  return cells.size() > 3 ? number_after("=" + cells[3], "=") : std::nullopt;
}

// Keeps the lines of steps up to `last`; removes lines cut off in the middle, which have no step or no end.
template <typename StepOf>
base::Status keep_until(const std::string& path, int64_t last, bool header, const StepOf& step_of) {
  if (!base::path_exists(path)) return {};
  bool first = header;
  SLUICE_TRY([[maybe_unused]] const auto pass,
             rewrite_lines(path, [&](const std::string& line, std::string& out) -> base::Status {
               const auto step = step_of(line);
               if (first || (step && *step <= last)) out.append(line).append(1, '\n');
               first = false;
               return {};
             }));
  return {};
}

base::Result<std::string> first_line(const std::string& path) {
  std::string line;
  if (!base::path_exists(path)) return line;
  std::ifstream in(path, std::ios::binary);
  std::getline(in, line);
  if (in.bad()) return base::fail_errno(errno, "read", path);
  return line;
}

// Makes sure that a table has these columns: a new table has only them; an existing one gets the columns that
// it lacks, empty, after its own. Returns all of its columns.
base::Result<std::vector<std::string>> widen(const std::string& path,
                                             const std::vector<std::string>& wanted) {
  SLUICE_TRY(const std::string header, first_line(path));
  std::vector<std::string> columns;
  if (!header.empty()) columns = base::split(header, ',');
  const size_t before = columns.size();
  for (const std::string& name : wanted)
    if (std::find(columns.begin(), columns.end(), name) == columns.end()) columns.push_back(name);
  if (columns.size() == before) return columns;
  const std::string wide = base::join(columns, ",") + "\n", empty(columns.size() - before, ',');
  bool first = true;
  const auto widened = [&](const std::string& line, std::string& out) -> base::Status {
    if (std::exchange(first, false))
      out += wide;
    else if (!line.empty())
      out.append(line).append(empty).append(1, '\n');
    return {};
  };
  if (base::path_exists(path)) {
    SLUICE_TRY([[maybe_unused]] const auto pass, rewrite_lines(path, widened));
  }
  if (first) SLUICE_OK(base::write_file_atomically(path, wide));
  return columns;
}

}  // namespace metrics_detail

base::Status check_name(const std::string& name) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == '/';
  };
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_plain))
    return base::fail(Code::kInvalidArgument, "the value '", name,
                      "': expected a name of letters, digits, _ - . and /");
  if (name == "loss" || name == "accuracy") return {};
  const auto taken = base::split(metrics_detail::kColumns, ',');
  if (std::find(taken.begin(), taken.end(), name) != taken.end())
    return base::fail(Code::kInvalidArgument, "the value '", name,
                      "' has the name of a column that the table has anyway: choose another one");
  return {};
}

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[40];
  auto end = std::to_chars(text, text + sizeof text, value);
  return std::string(text, end.ptr);
}

namespace metrics_detail {

// Returns the start of every line.
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
  for (const auto& field : metrics_detail::all_fields(row)) {
    if (!field.value) continue;
    // JSON has no numbers for these.
    std::string text = number_text(*field.value);
    out += base::str(", \"", field.column, "\": ", std::isfinite(*field.value) ? text : "\"" + text + "\"");
  }
  return out + "}";
}

base::Result<MetricsWriter> MetricsWriter::create(const std::string& folder, int64_t resume_step,
                                                  const RowsDue& due) {
  namespace detail = metrics_detail;
  SLUICE_OK(base::make_directories(folder));
  const std::string csv = base::join_path(folder, "metrics.csv"),
                    jsonl = base::join_path(folder, "metrics.jsonl");
  // The line of metrics.jsonl is the part of a row that is written last.
  RowsDue there;
  bool has_times = false;
  const auto step_of_json = [&](const std::string& line) {
    const auto step = detail::number_after(line, "\"step\": ");
    if (step != resume_step) return step;
    const auto has = [&](const char* text) { return line.find(text) != std::string::npos; };
    there.test = there.test || has("\"split\": \"test\"");
    has_times = has_times || has("\"split\": \"epoch\"");
    there.epoch_end = there.epoch_end || (has("\"split\": \"train\"") && !has("\"learning_rate\": "));
    return step;
  };
  SLUICE_OK(detail::keep_until(jsonl, resume_step, false, step_of_json));
  const auto step_of_csv = [&](const std::string& line) -> std::optional<int64_t> {
    const auto step = detail::csv_step(line);
    if (step != resume_step) return step;
    const auto cells = base::split(line, ',');
    if (due.test && !there.test && detail::is_test(cells)) return std::nullopt;
    if (due.epoch_end && !there.epoch_end && detail::is_of_epoch(cells)) return std::nullopt;
    return step;
  };
  SLUICE_OK(detail::keep_until(csv, resume_step, /*header=*/resume_step > 0, step_of_csv));
  SLUICE_TRY(auto columns, detail::widen(csv, base::split(detail::kColumns, ',')));
  std::set<std::string> drawn;
  if (due.test || due.epoch_end) {
    SLUICE_TRY(drawn, curves_with_point(folder, resume_step));
  }
  const int64_t first_step = resume_step > 0 ? resume_step + 1 : 0;
  SLUICE_TRY(EventWriter events, EventWriter::create(folder, first_step));
  MetricsWriter writer(folder, std::move(columns), std::move(events));
  writer.first_step_ = first_step;
  writer.drawn_step_ = resume_step;
  writer.drawn_ = std::move(drawn);
  if (due.test && there.test) writer.tested_step_ = resume_step;
  if (due.epoch_end && has_times) writer.timed_step_ = resume_step;
  if (due.epoch_end && there.epoch_end) writer.ended_step_ = resume_step;
  return writer;
}

base::Status MetricsWriter::begin(const std::vector<HyperParameter>& parameters, const std::string& config) {
  const double wall = base::wall_seconds();
  SLUICE_OK(events_.hyper_parameters(parameters, wall));
  if (config.empty()) return {};
  // At the first step of this start: a reader that drops an earlier start's steps also drops its text.
  return events_.text("options", base::str("```\n", base::shown_urls(config), "```\n"), first_step_, wall);
}

base::Status MetricsWriter::end() { return events_.ended(base::wall_seconds()); }

base::Status MetricsWriter::point(const std::string& curve, double value, int64_t step, double wall) {
  if (step == drawn_step_ && drawn_.count(curve) > 0) return {};
  return events_.scalar(curve, value, step, wall);
}

base::Status MetricsWriter::write(const Measurement& row) {
  const bool is_there =
      (row.split == "test" && has_test(row.step)) || (row.of_epoch && row.step == ended_step_);
  const auto lock = rows_ != nullptr ? std::unique_lock(*rows_) : std::unique_lock<std::mutex>();
  const double wall = base::wall_seconds();
  const std::string csv = base::join_path(folder_, "metrics.csv");
  std::map<std::string, std::string> cells = {{"time", std::to_string(static_cast<int64_t>(wall))},
                                              {"split", row.split},
                                              {"epoch", std::to_string(row.epoch)},
                                              {"step", std::to_string(row.step)}};
  std::vector<std::string> named;
  std::vector<std::pair<std::string, double>> values;
  for (const auto& field : metrics_detail::all_fields(row)) {
    named.push_back(field.column);
    if (!field.value) continue;
    cells[field.column] = number_text(*field.value);
    SLUICE_OK(point(field.curve, *field.value, row.step, wall));
    values.emplace_back(row.split + "/" + field.column, *field.value);
  }
  if (is_there) return {};
  const auto is_column = [this](const std::string& name) {
    return std::find(columns_.begin(), columns_.end(), name) != columns_.end();
  };
  if (!std::all_of(named.begin(), named.end(), is_column)) {
    SLUICE_TRY(columns_, metrics_detail::widen(csv, named));
  }
  std::vector<std::string> line;
  for (const std::string& column : columns_) line.push_back(cells[column]);
  SLUICE_OK(metrics_detail::append(csv, base::join(line, ",") + "\n"));
  if (sink_ && !values.empty()) SLUICE_OK(sink_(values, row.step, wall));
  return metrics_detail::append(base::join_path(folder_, "metrics.jsonl"), json_text(row, wall) + "\n");
}

base::Status MetricsWriter::write(const EpochTimes& times, int64_t epoch, int64_t step) {
  const auto lock = rows_ != nullptr ? std::unique_lock(*rows_) : std::unique_lock<std::mutex>();
  const double wall = base::wall_seconds(), whole = std::max(times.seconds(), 1e-9);
  SLUICE_OK(point("Share/input", times.input / whole, step, wall));
  SLUICE_OK(point("Share/tracing", times.trace / whole, step, wall));
  SLUICE_OK(point("Share/device", times.device / whole, step, wall));
  if (step == timed_step_) return {};
  if (sink_)
    SLUICE_OK(sink_({{"epoch/input_share", times.input / whole},
                     {"epoch/trace_share", times.trace / whole},
                     {"epoch/device_share", times.device / whole}},
                    step, wall));
  return metrics_detail::append(base::join_path(folder_, "metrics.jsonl"),
                                json_text(times, epoch, step, wall) + "\n");
}

}  // namespace sluice::train
