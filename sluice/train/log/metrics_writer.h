// The destinations of a run's numbers: TensorBoard events, metrics.csv and metrics.jsonl in the log folder.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/session/rates/step_rates.h"
#include "sluice/train/log/epoch_times.h"
#include "sluice/train/log/event_writer.h"

namespace sluice::train {

// One row. Values that were not measured stay empty.
struct Measurement {
  std::string split;  // "train" or "test"
  int64_t epoch = 0;
  int64_t step = 0;  // optimizer steps since the start of the run
  std::optional<double> loss;
  std::optional<double> rate;         // examples per second of one replica, moving average
  std::optional<double> global_rate;  // examples per second of all replicas, mean since the epoch began
  std::optional<double> learning_rate;
  std::optional<double> accuracy;             // percent
  std::optional<double> examples_per_second;  // of all replicas, moving average
  StepRates steps;                            // of the steps since the previous row
  std::optional<int> process;                 // only in JSON: the process, for a row of one process
  bool of_epoch = false;                      // for a whole epoch: its rate has its own curve
  // A run's own columns, with names that need no quotes, and their curves in TensorBoard.
  struct Named {
    std::string column, curve;
    double value = 0;
  };
  std::vector<Named> others;
};

// An additional destination of a row's numbers. Names are SPLIT/COLUMN, such as test/loss. `wall`: seconds
// since 1970.
using ValueSink = std::function<base::Status(const std::vector<std::pair<std::string, double>>& values,
                                             int64_t step, double wall)>;

// The rows that a run, continuing at this step, comes to again. A row that is already there and complete is
// not written again.
struct RowsDue {
  bool test = false;
  bool epoch_end = false;  // if the run ends within an epoch
};

// Every row is complete on the disk when write() returns. Threads: one at a time.
class MetricsWriter {
 public:
  // Appends to the folder's files. First removes rows of steps after `resume_step` (0: all rows), left by a
  // run that was stopped after its last checkpoint. Of the rows that are due, each file gets what it lacks: a
  // run may have been killed between two of them.
  static base::Result<MetricsWriter> create(const std::string& folder, int64_t resume_step,
                                            const RowsDue& due = {});
  // The first row with a new name in `others` adds a column for it.
  base::Status write(const Measurement& row);
  // Writes the parts of an epoch's time: a line of metrics.jsonl and three curves of shares, from 0 to 1. The
  // table in metrics.csv has no columns for them.
  base::Status write(const EpochTimes& times, int64_t epoch, int64_t step);
  // Writes the run's parameters, when it begins, and all of its options to TensorBoard's pages HPARAMS and
  // TEXT.
  base::Status begin(const std::vector<HyperParameter>& parameters, const std::string& config);
  base::Status end();  // for a run that ended well
  // Holds this while it writes a row, which goes to several files; null: nothing. It must live longer.
  void hold(std::mutex* rows) { rows_ = rows; }
  void also_to(ValueSink sink) { sink_ = std::move(sink); }
  EventWriter& events() { return events_; }
  // Whether the row of this step's test was there before this start.
  bool has_test(int64_t step) const { return step == tested_step_; }
  const std::string& folder() const { return folder_; }

 private:
  MetricsWriter(std::string folder, std::vector<std::string> columns, EventWriter events)
      : folder_(std::move(folder)), columns_(std::move(columns)), events_(std::move(events)) {}
  // Adds a point to a curve, unless it is there.
  base::Status point(const std::string& curve, double value, int64_t step, double wall);

  std::string folder_;
  std::vector<std::string> columns_;  // of metrics.csv
  EventWriter events_;
  ValueSink sink_;
  std::mutex* rows_ = nullptr;
  int64_t first_step_ = 0;    // the first step whose rows this start writes
  int64_t tested_step_ = -1;  // see has_test()
  int64_t timed_step_ = -1;   // the step of an epoch's times that were there before
  int64_t drawn_step_ = -1;   // the step at which these curves had a point before
  std::set<std::string> drawn_;
  int64_t ended_step_ = -1;  // the step of an epoch's end whose row was there before
};

// Checks that a run's own value may have this name: letters, digits, _ - . and /, and not the name of a
// column that rows have anyway, except "loss" and "accuracy".
base::Status check_name(const std::string& name);

// Returns a double as text for JSON and CSV: the shortest form that reads back equal; "nan", "inf" or "-inf".
std::string number_text(double value);
// Returns the row as one JSON object, with the names of the CSV's columns.
std::string json_text(const Measurement& row, double wall);
// Returns the times as a JSON object whose "split" is "epoch"; times are in seconds.
std::string json_text(const EpochTimes& times, int64_t epoch, int64_t step, double wall);

}  // namespace sluice::train
