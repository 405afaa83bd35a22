// A run that is killed or stopped anywhere and goes on is the run that was not: a matrix of schedules,
// accumulation, averages, how often it tests and saves, where it ends, and where its log folder is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/test_server.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/train/checkpoints/remote_folder.h"
#include "sluice/train/log/metrics_writer.h"
#include "tests/train/event_points.h"
#include "tests/train/small_regression.h"

namespace sluice::train::test {
namespace {

enum class Place {
  kTraining,       // in the forward pass of a training batch
  kAfterStep,      // behind an update
  kBeforeReading,  // before a test, or a checkpoint
  kAfterReading,   // behind one
  kTestBatch,      // in the forward pass of a test
  kAfterTest,      // behind its row, before its checkpoint
  kSignalInTraining,
  kSignalInTest,
  kSignalInSave,  // while a checkpoint is put together
};
struct End {
  Place place;
  // From 1, among its like in this part of the run; 0: the last one of the whole run, -1: the one before.
  int64_t number;
};

struct Recipe {
  const char* name;
  std::function<void(TrainOptions&)> set;
  int64_t average_every = 0;  // a mean of the weights after every so many steps
};

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> all = {
      {"constant", [](TrainOptions& o) { o.save_top_k = 2; }},
      {"cosine, accumulated",
       [](TrainOptions& o) {
         o.lr_schedule = LrSchedule::kCosine;
         o.accumulate = 2;
         o.save_steps = 2;
         o.save_top_k = 2;
       }},
      {"cosine, ema",
       [](TrainOptions& o) {
         o.lr_schedule = LrSchedule::kCosine;
         o.ema = 0.8;
         o.save_steps = o.test_every_steps = 2;
         o.save_top_k = 3;
       }},
      {"linear, swa",
       [](TrainOptions& o) {
         o.lr_schedule = LrSchedule::kLinear;
         o.swa_start = 1;
         o.save_steps = 2;
         o.test_every_steps = 3;
         o.save_top_k = 2;
       }},
      {"wsd, accumulated, ema",
       [](TrainOptions& o) {
         o.lr_schedule = LrSchedule::kWsd;
         o.accumulate = 2;
         o.ema = 0.9;
         o.ema_warmup = true;
         o.test_every_steps = 2;
         o.test_every_epochs = 2;
         o.save_top_k = 2;
       }},
      {"one-cycle, patience",
       [](TrainOptions& o) {
         o.lr_schedule = LrSchedule::kOneCycle;
         o.save_steps = o.test_every_steps = 2;
         o.patience = 6;
         o.min_delta = 0.01;
         o.save_top_k = 2;
       }},
      {"inverse-sqrt, accumulated, swa",
       [](TrainOptions& o) {
         o.lr_schedule = LrSchedule::kInverseSqrt;
         o.warmup_steps = 3;
         o.accumulate = 2;
         o.swa_start = 2;
         o.save_steps = o.test_every_steps = 1;
         o.save_top_k = 1;
       }},
      {"step, ema, patience",
       [](TrainOptions& o) {
         o.lr_schedule = LrSchedule::kStep;
         o.lr_every_epochs = 1;
         o.ema = 0.5;
         o.save_steps = 1;
         o.test_every_steps = 4;
         o.test_every_epochs = 2;
         o.patience = 3;
         o.min_delta = 0.02;
         o.optimizer = OptimizerKind::kAdam;
       }},
      {"mean of every third step", [](TrainOptions& o) { o.save_steps = o.test_every_steps = 3; }, 3},
      {"ended in mid-epoch",
       [](TrainOptions& o) {
         o.lr_schedule = LrSchedule::kCosine;
         o.max_steps = 7;
         o.ema = 0.8;
         o.save_steps = 2;
         o.test_every_steps = 3;
       }},
  };
  return all;
}

const std::vector<std::vector<End>>& ends() {
  static const std::vector<std::vector<End>> all = {
      {{Place::kTraining, 8}},
      {{Place::kAfterStep, 4}},
      {{Place::kBeforeReading, 2}},
      {{Place::kAfterReading, 2}},
      {{Place::kTestBatch, 9}},
      {{Place::kAfterTest, 2}},
      {{Place::kSignalInTraining, 5}},  // without accumulation the last batch of an epoch
      {{Place::kSignalInTest, 3}},
      {{Place::kSignalInTest, -1}},  // the last test of the run, before its last batch
      {{Place::kAfterReading, 3}, {Place::kSignalInTest, 2}, {Place::kAfterStep, 1}},
      {{Place::kSignalInTraining, 0}},  // the last batch of the run
      {{Place::kSignalInSave, 1}},
  };
  return all;
}

struct Killed : std::runtime_error {
  Killed() : std::runtime_error("killed") {}
};

// Counts what comes, and ends the run where it is told to.
class Ender {
 public:
  Ender(std::optional<End> end, std::function<void()> on_kill) : end_(end), on_kill_(std::move(on_kill)) {}
  void come(Place place) {
    const int64_t number = ++counts_[place];
    if (!end_ || end_->place != place || end_->number != number) return;
    fired_ = true;
    if (place == Place::kSignalInTraining || place == Place::kSignalInTest || place == Place::kSignalInSave) {
      for (int times = 0; times < 2; ++times) std::raise(SIGTERM);  // a launcher may send it again
      return;
    }
    on_kill_();
    throw Killed();
  }
  bool fired() const { return fired_; }
  int64_t count(Place place) const {
    const auto found = counts_.find(place);
    return found == counts_.end() ? 0 : found->second;
  }

 private:
  std::optional<End> end_;
  std::function<void()> on_kill_;
  bool fired_ = false;
  std::map<Place, int64_t> counts_;
};

struct Killer : Callback {
  explicit Killer(Ender& ender) : ender_(ender) {}
  std::string name() const override { return "killer"; }
  void after_step(Run&) override { ender_.come(Place::kAfterStep); }
  void before_reading(Run&) override { ender_.come(Place::kBeforeReading); }
  void after_reading(Run&) override { ender_.come(Place::kAfterReading); }
  void after_test(Run&, const metrics::Values&) override { ender_.come(Place::kAfterTest); }
  std::string state() const override {
    ender_.come(Place::kSignalInSave);
    return "";
  }
  Ender& ender_;
};

// The names of columns and curves that time decides.
bool is_of_time(const std::string& name) {
  static const std::set<std::string> columns = {
      "time",        "rate",        "global_rate",       "examples_per_second",
      "step_p50_ms", "step_p95_ms", "tokens_per_second", "input_share",
      "bound",       "Rate_step",   "examples/sec",      "tokens/sec"};
  return columns.count(name) > 0 || base::ends_with(name, "_seconds") || base::starts_with(name, "Step/") ||
         base::starts_with(name, "Share/") || base::starts_with(name, "Global Rate");
}

// What a run has left in its folder, as far as time does not decide it.
struct Outcome {
  std::vector<std::string> rows, table, curves, top;
  std::map<std::string, std::string> weights;
  nlohmann::json state;
};

Outcome outcome_of(const std::string& folder) {
  const auto read = [&](const std::string& name) {
    return base::value_or_throw(base::read_file(base::join_path(folder, name)));
  };
  Outcome outcome;
  for (const std::string& line : base::split(read("metrics.jsonl"), '\n')) {
    if (line.empty()) continue;
    const auto row = nlohmann::json::parse(line);
    nlohmann::json kept;
    for (const auto& [name, value] : row.items())
      if (!is_of_time(name)) kept[name] = value;
    outcome.rows.push_back(kept.dump());
  }
  for (const std::string& line : base::split(read("metrics.csv"), '\n'))
    if (const auto cells = base::split(line, ','); cells.size() > 4)
      outcome.table.push_back(cells[1] + " " + cells[2] + " " + cells[3] + " " + cells[4]);
  for (const auto& [tag, points] : curves_in(folder)) {
    if (base::starts_with(tag, "Step/")) continue;  // the first step of a start, which compiles, has none
    for (const auto& [step, value] : points)
      outcome.curves.push_back(base::str(tag, " ", step, is_of_time(tag) ? "" : base::str(" ", value)));
  }
  for (const std::string& name : base::value_or_throw(base::list_directory(folder)))
    if (base::starts_with(name, "top-"))
      outcome.top.push_back(
          base::str(name, " ", nlohmann::json::parse(read(name + "/state.json"))["value"].dump()));
  for (const char* const name :
       {"last/model.safetensors", "last/state.safetensors", "best/model.safetensors"})
    outcome.weights[name] = read(name);
  const auto state = nlohmann::json::parse(read("last/state.json"));
  for (const char* const key : {"epoch", "batch", "step", "best", "callbacks", "due", "skipped", "tested"})
    outcome.state[key] = state[key];
  return outcome;
}

void expect_equal(const Outcome& found, const Outcome& whole) {
  EXPECT_EQ(found.rows, whole.rows);
  EXPECT_EQ(found.table, whole.table);
  EXPECT_EQ(found.curves, whole.curves);
  EXPECT_EQ(found.top, whole.top);
  EXPECT_EQ(found.state.dump(), whole.state.dump());
  for (const auto& [name, bytes] : whole.weights) EXPECT_TRUE(found.weights.at(name) == bytes) << name;
}

// A bucket whose server can die with the process that speaks with it.
class Store {
 public:
  Store() : server_([this](const cloud::test::Request& request) { return answer(request); }) {
    cloud::test::stand_for_cloud(server_);
  }
  void die() { dead_ = true; }
  void revive() { dead_ = false; }
  // Calls this before it answers, on the server's thread; empty: nothing. Set it while nobody asks.
  void before_answers(std::function<void(const cloud::test::Request&)> hook) { hook_ = std::move(hook); }
  // What a user would have after `sluice data cp`, with the names of checkpoints followed.
  void copy_to(const std::string& run, const std::string& folder) const {
    for (const std::string& name : bucket_.names()) {
      if (!base::starts_with(name, run + "/")) continue;
      const std::string rest = name.substr(run.size() + 1);
      if (rest.find('/') != std::string::npos) continue;
      const std::string bytes = bucket_.get(name)->bytes;
      const bool is_pointer = rest == "last" || rest == "best" || base::starts_with(rest, "top-");
      if (!is_pointer) {
        base::value_or_throw(base::write_file_atomically(base::join_path(folder, rest), bytes));
        continue;
      }
      base::value_or_throw(base::make_directories(base::join_path(folder, rest)));
      for (const char* const file : {"model.safetensors", "state.safetensors", "state.json"}) {
        const auto object = bucket_.get(base::str(run, "/", base::trim(bytes), "/", file));
        if (object) {
          base::value_or_throw(base::write_file_atomically(
              base::join_path(base::join_path(folder, rest), file), object->bytes));
        }
      }
    }
  }
  // The last rows that the bucket has must be those of its checkpoint, whenever it is looked at.
  int64_t step_of_last(const std::string& run) const {
    const auto pointer = bucket_.get(run + "/last");
    if (!pointer) return 0;
    const auto state = bucket_.get(base::str(run, "/", base::trim(pointer->bytes), "/state.json"));
    return nlohmann::json::parse(state->bytes)["step"].get<int64_t>();
  }
  int64_t last_row_up_to(const std::string& run, int64_t step) const {
    int64_t last = 0;
    const auto rows = bucket_.get(run + "/metrics.jsonl");
    for (const std::string& line : base::split(rows ? rows->bytes : "", '\n'))
      if (const auto row = nlohmann::json::parse(line, nullptr, false);
          row.is_object() && row["step"] <= step)
        last = row["step"].get<int64_t>();
    return last;
  }

 private:
  cloud::test::Reply answer(const cloud::test::Request& request) {
    if (dead_) return {.status = 403};
    if (hook_) hook_(request);
    if (dead_) return {.status = 403};
    return bucket_(request);
  }
  std::atomic<bool> dead_{false};
  std::function<void(const cloud::test::Request&)> hook_;
  cloud::test::Bucket bucket_;
  cloud::test::Server server_;
};

Store& store() {
  static Store one;
  return one;
}

class Resumes : public testing::Test {
 protected:
  Resumes() : folder_(scratch()) { store(); }  // before anything speaks with a cloud

  // One part of a run. False: it was killed.
  bool train(const Recipe& recipe, const std::string& logdir, Ender& ender, TrainResult* result = nullptr) {
    torch::manual_seed(3);
    Net net;
    TrainOptions options = regression_options(logdir);
    options.lr = 0.2;
    options.epochs = 2;
    recipe.set(options);
    options.resume.from_last = true;
    Steps steps = regression_steps(net);
    steps.training_step = [&ender, step = steps.training_step](Batch& batch) {
      if (torch::GradMode::is_enabled()) {  // not where statistics are measured
        ender.come(Place::kTraining);
        ender.come(Place::kSignalInTraining);
      }
      return step(batch);
    };
    steps.validation_step = [&ender, step = steps.validation_step](Batch& batch) {
      ender.come(Place::kTestBatch);
      ender.come(Place::kSignalInTest);
      return step(batch);
    };
    try {
      Trainer trainer(options, regression_sets(folder_.path("a.tar")));
      if (recipe.average_every > 0)
        trainer.add(
            std::make_shared<WeightAverage>(WeightAverageOptions{.every_steps = recipe.average_every}));
      trainer.add(std::make_shared<Killer>(ender));
      const TrainResult found = trainer.fit(net, steps);
      if (result != nullptr) *result = found;
      return true;
    } catch (const std::exception&) {
      if (!ender.fired()) throw;
      return false;
    }
  }

  base::TemporaryDirectory folder_;
};

// The numbers of a recipe and of the ends of its run.
using Case = std::pair<size_t, size_t>;

class Matrix : public Resumes {
 protected:
  void try_cases(const std::vector<Case>& cases) {
    size_t fired = 0;
    for (const auto& [r, e] : cases) {
      const bool in_bucket = (r + e) % 5 == 0;
      SCOPED_TRACE(base::str(recipes()[r].name, ", end ", e, in_bucket ? ", in a bucket" : ""));
      fired += try_case(r, e, in_bucket);
      if (HasFailure()) return;  // one that differs says enough
    }
    EXPECT_GE(fired, cases.size());
  }

 private:
  // The run that was not interrupted.
  struct Whole {
    Ender ender{std::nullopt, [] {}};
    TrainResult result;
    Outcome outcome;
  };
  const Whole& whole_of(size_t r) {
    if (const auto found = wholes_.find(r); found != wholes_.end()) return found->second;
    Whole& whole = wholes_[r];
    const std::string folder = folder_.path(base::str("whole ", r));
    EXPECT_TRUE(train(recipes()[r], folder, whole.ender, &whole.result));
    whole.outcome = outcome_of(folder);
    EXPECT_GE(whole.outcome.rows.size(), 6U);
    return whole;
  }
  // How often the run was ended.
  size_t try_case(size_t r, size_t e, bool in_bucket) {
    const Whole& whole = whole_of(r);
    const char* const suite = testing::UnitTest::GetInstance()->current_test_info()->test_suite_name();
    const std::string run = base::str(suite, "-", r, "-", e);  // all tests have one bucket
    const std::string logdir = in_bucket ? "gs://b/" + run : folder_.path(run);
    size_t fired = 0;
    for (End end : ends()[e]) {
      if (end.number < 1) end.number += whole.ender.count(end.place);
      Ender ender(end, [] { store().die(); });
      testing::internal::CaptureStderr();
      TrainResult part;
      const bool ended = train(recipes()[r], logdir, ender, &part);
      testing::internal::GetCapturedStderr();
      store().revive();
      if (ended) {
        EXPECT_EQ(part.exit_status, ender.fired() ? kTerminated : kDone);
      }
      if (ender.fired()) ++fired;
      if (!in_bucket) continue;
      const int64_t step = store().step_of_last(run);
      EXPECT_EQ(store().last_row_up_to(run, step), step);
    }
    Ender again(std::nullopt, [] {});
    TrainResult result;
    testing::internal::CaptureStderr();
    EXPECT_TRUE(train(recipes()[r], logdir, again, &result));
    testing::internal::GetCapturedStderr();
    EXPECT_EQ(result.exit_status, kDone);
    EXPECT_EQ(result.steps, whole.result.steps);
    EXPECT_EQ(result.best, whole.result.best);
    if (in_bucket) {
      base::value_or_throw(base::make_directories(folder_.path(run)));
      store().copy_to(run, folder_.path(run));
    }
    expect_equal(outcome_of(folder_.path(run)), whole.outcome);
    return fired;
  }

  std::map<size_t, Whole> wholes_;
};

// Steps go on while files are uploaded. A run that continues from these files looks for the rows of its step
// in one of them, and believes that the others have the same.
TEST_F(Resumes, AnUploadHasTheRowsOfOneMoment) {
  auto folder = base::value_or_throw(RemoteFolder::open("gs://b/rows", /*leader=*/true));
  auto writer = base::value_or_throw(MetricsWriter::create(folder->local(), 0));
  writer.hold(&folder->rows());
  int64_t step = 0;
  const auto write_row = [&] {
    Measurement row;
    row.split = "train";
    row.step = ++step;
    row.loss = 0.5;
    base::value_or_throw(writer.write(row));
  };
  write_row();
  store().before_answers([&](const cloud::test::Request&) { write_row(); });
  base::value_or_throw(folder->finish());
  store().before_answers({});
  EXPECT_GT(step, 3);
  base::value_or_throw(base::make_directories(folder_.path("copy")));
  store().copy_to("rows", folder_.path("copy"));
  const auto lines = [&](const char* name) {
    return base::split(base::value_or_throw(base::read_file(folder_.path("copy") + "/" + name)), '\n').size();
  };
  EXPECT_EQ(curves_in(folder_.path("copy"))["Loss"], Points({{1, 0.5F}}));
  EXPECT_EQ(lines("metrics.jsonl"), 1U + 1);  // the text ends with an end of line
  EXPECT_EQ(lines("metrics.csv"), 2U + 1);    // and this one begins with the names of columns
}

// A checkpoint is whole in the bucket before `best`, `top-STEP` and `last` name it.
TEST_F(Resumes, ARunThatIsKilledBeforeItsFirstCheckpointIsNamed) {
  const Recipe& recipe = recipes()[0];
  Ender nowhere(std::nullopt, [] {});
  const std::string folder = folder_.path("whole");
  ASSERT_TRUE(train(recipe, folder, nowhere));
  const Outcome whole = outcome_of(folder);
  ASSERT_FALSE(whole.top.empty());
  store().before_answers([](const cloud::test::Request& request) {
    if (base::ends_with(request.parameter("name"), "/best")) store().die();  // an upload
  });
  testing::internal::CaptureStderr();
  EXPECT_ANY_THROW(train(recipe, "gs://b/unnamed", nowhere));
  store().before_answers({});
  store().revive();
  EXPECT_EQ(store().step_of_last("unnamed"), 0);  // there is none
  EXPECT_TRUE(train(recipe, "gs://b/unnamed", nowhere));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("gs://b/unnamed/last is missing, as after a run that was killed"));
  base::value_or_throw(base::make_directories(folder_.path("unnamed")));
  store().copy_to("unnamed", folder_.path("unnamed"));
  expect_equal(outcome_of(folder_.path("unnamed")), whole);
}

// Those that differ most: each of accumulation, EMA, SWA and patience, killed and stopped, in steps, tests
// and checkpoints, two of them in a bucket.
TEST_F(Matrix, FewResumesAreTheRunThatWasNotInterrupted) {
  try_cases({{1, 9}, {3, 2}, {5, 6}, {6, 5}, {7, 4}, {9, 10}, {3, 11}});
}

// Seven ends or more of twelve for each recipe; CTest calls it slow.
class AllOfTheMatrix : public Matrix {};
TEST_F(AllOfTheMatrix, ResumesAreTheRunThatWasNotInterrupted) {
  std::vector<Case> cases;
  for (size_t r = 0; r < recipes().size(); ++r)
    for (size_t e = 0; e < ends().size(); ++e)
      if ((r + e) % 5 < 3 || e == 10) cases.emplace_back(r, e);
  EXPECT_EQ(cases.size(), 76U);
  try_cases(cases);
}

// SIGTERM in the only test of a run: nothing was measured, so that no target was missed, or reached, yet.
TEST_F(Resumes, ATestThatASignalEndsIsMadeBeforeTheTargetIsLookedAt) {
  const Recipe recipe{"one test", [](TrainOptions& o) { o.epochs = 1; }};
  const std::string logdir = folder_.path("run");
  Ender stopped(End{Place::kSignalInTest, 2}, [] {});
  TrainResult result;
  ASSERT_TRUE(train(recipe, logdir, stopped, &result));
  EXPECT_EQ(result.exit_status, kTerminated);
  EXPECT_FALSE(base::path_exists(base::join_path(logdir, "best")));
  EXPECT_TRUE(base::value_or_throw(sessions::read_progress(base::join_path(logdir, "last"))).due.test);
  Ender again(std::nullopt, [] {});
  ASSERT_TRUE(train(recipe, logdir, again, &result));
  EXPECT_EQ(again.count(Place::kTestBatch), 6);
  EXPECT_EQ(again.count(Place::kTraining), 0);
  EXPECT_TRUE(result.best.has_value());
  EXPECT_TRUE(base::path_exists(base::join_path(logdir, "best")));
  EXPECT_FALSE(base::value_or_throw(sessions::read_progress(base::join_path(logdir, "last"))).due.test);
  // And only once.
  Ender third(std::nullopt, [] {});
  ASSERT_TRUE(train(recipe, logdir, third, &result));
  EXPECT_EQ(third.count(Place::kTestBatch), 0);
}

struct Stopper : Callback {
  std::string name() const override { return "stopper"; }
  void after_step(Run& run) override {
    if (run.place().step == 7) run.stop("Enough.");
  }
};

// A callback that ends the run within a step, and a kill before the test that follows.
TEST_F(Resumes, ARunThatACallbackHasEndedStaysEnded) {
  const std::string logdir = folder_.path("run");
  const auto part = [&](std::optional<End> end) {
    torch::manual_seed(3);
    Net net;
    Ender ender(end, [] {});
    Steps steps = regression_steps(net);
    steps.validation_step = [&ender, step = steps.validation_step](Batch& batch) {
      ender.come(Place::kSignalInTest);
      return step(batch);
    };
    TrainOptions options = regression_options(logdir);
    options.resume.from_last = true;
    Trainer trainer(options, regression_sets(folder_.path("a.tar")));
    trainer.add(std::make_shared<Stopper>());
    return trainer.fit(net, steps);
  };
  EXPECT_EQ(part(End{Place::kSignalInTest, 8}).exit_status, kTerminated);  // in the test of step 7
  const TrainResult result = part(std::nullopt);
  EXPECT_EQ(result.steps, 7);
  EXPECT_EQ(result.exit_status, kDone);
  EXPECT_TRUE(result.best.has_value());
}

}  // namespace
}  // namespace sluice::train::test
