// The run as its callbacks see it.
#pragma once

#include <functional>
#include <string>

#include "sluice/train/callback.h"
#include "sluice/train/evaluation/evaluate.h"
#include "sluice/train/report/run_log.h"
#include "sluice/train/run/run_limits.h"
#include "sluice/train/run/run_plan.h"
#include "sluice/train/run/run_setup.h"
#include "sluice/train/run/run_state.h"

namespace sluice::train {

// Threads: the session's.
class RunView final : public Run {
 public:
  // All of them live longer. `shapes`: the names of the run's shapes.
  RunView(const RunSetup& given, const RunPlan& plan, RunState& state, const RunLimits& limits,
          ShapeNames& shapes, RunLog& log)
      : given_(given), plan_(plan), state_(state), limits_(limits), shapes_(shapes), log_(log) {}
  Session& session() override { return given_.session; }
  torch::nn::Module& module() override { return given_.module; }
  RunPlace place() const override { return place_of(state_, plan_); }
  const Monitor& monitor() const override { return given_.steps.monitor; }
  void stop(const std::string& reason) override;
  void log_image(const std::string& tag, const torch::Tensor& image) override;
  void log_histogram(const std::string& tag, const torch::Tensor& values) override;
  void log_text(const std::string& tag, const std::string& markdown) override;
  void log_scalar(const std::string& tag, double value) override;
  void log_scalar(const std::string& tag, const torch::Tensor& value) override;
  bool forward_epoch(const std::function<void()>& after_batch) override;

 private:
  const RunSetup& given_;
  const RunPlan& plan_;
  RunState& state_;
  const RunLimits& limits_;
  ShapeNames& shapes_;
  RunLog& log_;
};

}  // namespace sluice::train
