// Where the numbers of a run go: TensorBoard events, metrics.csv and metrics.jsonl in the log folder.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/session/rates/step_rates.h"
#include "sluice/train/epoch_times.h"
#include "sluice/train/event_writer.h"

namespace sluice::train {

// One row. What was not measured stays empty.
struct Measurement {
  std::string split;  // "train" or "test"
  int64_t epoch = 0;
  int64_t step = 0;  // optimizer steps since the start of the run
  std::optional<double> loss;
  std::optional<double> rate;         // examples a second of one replica, moving average
  std::optional<double> global_rate;  // examples a second of all replicas, mean since the epoch began
  std::optional<double> learning_rate;
  std::optional<double> accuracy;             // percent
  std::optional<double> examples_per_second;  // of all replicas, moving average
  StepRates steps;                            // of the steps since the row before
  std::optional<int> process;                 // only in JSON: of one process alone
  bool of_epoch = false;                      // of a whole epoch: its rate has a curve of its own
  // Columns of a run's own, with names that need no quotes, and their curves in TensorBoard.
  struct Named {
    std::string column, curve;
    double value = 0;
  };
  std::vector<Named> others;
};

// Where else a row's numbers go. Names are SPLIT/COLUMN, such as test/loss. `wall`: seconds since 1970.
using ValueSink = std::function<base::Status(const std::vector<std::pair<std::string, double>>& values,
                                             int64_t step, double wall)>;

// Rows of the step at which a run goes on that it comes to once more. They are not written where they are
// already there, whole.
struct RowsDue {
  bool test = false;
  bool epoch_end = false;  // where the run ends within an epoch
};

// Every row is complete on the disk when write() returns. Threads: one at a time.
class MetricsWriter {
 public:
  // Appends to what the folder holds. `resume_step`: rows of later steps, left by a run that was stopped
  // after its last checkpoint, are removed first (0: all of them).
  static base::Result<MetricsWriter> create(const std::string& folder, int64_t resume_step,
                                            const RowsDue& due = {});
  // The first row with a new name in `others` makes a column of it.
  base::Status write(const Measurement& row);
  // Where the time of an epoch went: a line of metrics.jsonl and three curves of shares, from 0 to 1. The
  // table in metrics.csv has no columns for it.
  base::Status write(const EpochTimes& times, int64_t epoch, int64_t step);
  // For TensorBoard's pages HPARAMS and TEXT: the run's parameters when it begins, and all of its options.
  base::Status begin(const std::vector<HyperParameter>& parameters, const std::string& config);
  base::Status end();  // of a run that ended well
  void also_to(ValueSink sink) { sink_ = std::move(sink); }
  EventWriter& events() { return events_; }
  // Whether the row of this step's test was there before.
  bool has_test(int64_t step) const { return step == tested_step_; }
  const std::string& folder() const { return folder_; }

 private:
  MetricsWriter(std::string folder, std::vector<std::string> columns, EventWriter events)
      : folder_(std::move(folder)), columns_(std::move(columns)), events_(std::move(events)) {}
  std::string folder_;
  std::vector<std::string> columns_;  // of metrics.csv
  EventWriter events_;
  ValueSink sink_;
  int64_t first_step_ = 0;    // that this start has rows of
  int64_t tested_step_ = -1;  // see has_test()
  int64_t timed_step_ = -1;   // the same of an epoch's times
  int64_t ended_step_ = -1;   // and of the row of its end
};

// Whether a run's own value may have this name: letters, digits, _ - . and /, and no name of a column that
// rows have anyway but "loss" and "accuracy".
base::Status check_name(const std::string& name);

// A double as JSON and CSV take it: shortest form that reads back equal; nan and infinities as "nan", "inf",
// "-inf".
std::string number_text(double value);
// One JSON object of the row, with the names of the CSV's columns.
std::string json_text(const Measurement& row, double wall);
// Its "split" is "epoch"; times are in seconds.
std::string json_text(const EpochTimes& times, int64_t epoch, int64_t step, double wall);

}  // namespace sluice::train
