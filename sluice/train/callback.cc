#include "sluice/train/callback.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "sluice/base/error.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"

namespace sluice::train {

EarlyStopping::EarlyStopping(EarlyStoppingOptions options) : options_(std::move(options)) {
  if (options_.patience < 1 || !(options_.min_delta >= 0))
    throw_error(
        Code::kInvalidArgument,
        base::str("early stopping needs a patience of 1 test or more and a difference of 0 or more, not ",
                  options_.patience, " and ", options_.min_delta));
}

const Monitor& EarlyStopping::monitor(const Run& run) const {
  return options_.monitor ? *options_.monitor : run.monitor();
}

void EarlyStopping::stop_when_patience_ends(Run& run) const {
  if (without_ < options_.patience) return;
  run.stop(base::str("The ", monitor(run).name, " of the test got no better in ",
                     base::counted(without_, "test"), ": early stopping."));
}

void EarlyStopping::begin(Run& run) { stop_when_patience_ends(run); }

void EarlyStopping::after_test(Run& run, const metrics::Values& values) {
  const double now = values[monitor(run).name];
  if (!std::isnan(now) && (!best_ || monitor(run).is_better(now, *best_, options_.min_delta))) {
    best_ = now;
    without_ = 0;
    return;
  }
  ++without_;
  stop_when_patience_ends(run);
}

std::string EarlyStopping::state() const {
  return nlohmann::json({{"best", best_ ? nlohmann::json(*best_) : nlohmann::json()}, {"without", without_}})
      .dump();
}

void EarlyStopping::load(const std::string& state) {
  const auto json = base::parse_json(state);
  if (!json.is_object() || !json.contains("best") || !json.contains("without") ||
      !json["without"].is_number_integer() || !(json["best"].is_null() || json["best"].is_number()))
    throw_error(Code::kDataLoss, base::str("expected best and without, found '", state, "'"));
  best_.reset();
  if (json["best"].is_number()) best_ = json["best"].get<double>();
  without_ = json["without"];
}

}  // namespace sluice::train
