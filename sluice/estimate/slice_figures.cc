#include "sluice/estimate/slice_figures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "sluice/base/formats/parse_toml.h"
#include "sluice/base/text/join.h"
#include "sluice/estimate/peak.h"

namespace sluice::estimate {

StepBound step_bound(const TpuSlice& slice, const pjrt::ProgramCost& cost) {
  const TpuGeneration& chip = *slice.generation;
  return {cost.flops / peak_of(chip).f16,
          cost.bytes_accessed / (chip.memory_gb_per_second * 1e9 / chip.devices_per_chip)};
}

double StepBound::seconds() const { return std::max({flops_seconds, bytes_seconds, exchange_seconds}); }

const char* StepBound::limit() const {
  if (exchange_seconds > std::max(flops_seconds, bytes_seconds)) return "links";
  return flops_seconds > bytes_seconds ? "FLOPs" : "memory";
}

Prices list_prices() {
  Prices prices;
  prices.date = kPriceDate;
  for (const TpuGeneration& generation : tpu_generations())
    prices.of[generation.name] = {generation.on_demand, generation.spot};
  return prices;
}

namespace {

base::Status read_price(const toml::node& node, const std::string& where, Price& price) {
  const toml::table* table = node.as_table();
  if (table == nullptr)
    return base::fail(Code::kInvalidArgument, where, ": expected a table with on_demand and spot");
  for (const auto& [name, value] : *table) {
    const std::string key(name.str());
    const auto number = value.value<double>();
    if (key != "on_demand" && key != "spot")
      return base::fail(Code::kInvalidArgument, where, ".", key, ": expected on_demand or spot");
    if (!number || !(*number >= 0))
      return base::fail(Code::kInvalidArgument, where, ".", key, ": expected US dollars for a chip-hour");
    (key == "spot" ? price.spot : price.on_demand) = *number;
  }
  return {};
}

base::Result<Prices> prices_of(const toml::table& file, const std::string& path) {
  Prices prices = list_prices();
  prices.date.clear();
  for (const auto& [name, value] : file) {
    const std::string key(name.str());
    if (key == "date") {
      prices.date = value.value<std::string>().value_or("");
      continue;
    }
    const auto found = prices.of.find(key);
    if (found == prices.of.end()) {
      std::vector<std::string> known{"date"};
      for (const auto& [generation, price] : prices.of) known.push_back(generation);
      return base::fail(Code::kInvalidArgument, path, ": unknown key ", key,
                        "; known: ", base::join(known, ", "));
    }
    SLUICE_OK(read_price(value, base::str(path, ": ", key), found->second));
  }
  if (prices.date.empty())
    return base::fail(Code::kInvalidArgument, path,
                      ": expected date = \"…\", the day and place of the prices");
  return prices;
}

}  // namespace

base::Result<Prices> read_prices(const std::string& path) {
  SLUICE_TRY(const toml::table file, base::parse_toml_file(path));
  return prices_of(file, path);
}

int64_t steps_of_epoch(int64_t batch, int64_t samples) { return (samples + batch - 1) / batch; }

EpochCost epoch_cost(const TpuSlice& slice, const Prices& prices, double step_seconds, int64_t steps) {
  EpochCost cost;
  cost.hours = static_cast<double>(steps) * step_seconds / 3600;
  const auto price = prices.of.find(slice.generation->name);
  if (price == prices.of.end()) return cost;
  const double chip_hours = cost.hours * slice.chips;
  if (price->second.on_demand > 0) cost.on_demand = chip_hours * price->second.on_demand;
  if (price->second.spot > 0) cost.spot = chip_hours * price->second.spot;
  return cost;
}

namespace {

// The state of the search for the largest batch, in multiples.
class BatchSearch {
 public:
  BatchSearch(int64_t multiple, int64_t limit) : multiple_(multiple), beyond_(limit / multiple + 1) {}

  bool done() const { return beyond_ - fits_ <= 1; }
  int64_t largest() const { return fits_ * multiple_; }
  void note(int64_t count, const BatchFit& fit) {
    (fit.fits ? fits_ : beyond_) = count;
    tried_beyond_ = tried_beyond_ || !fit.fits;
    if (fit.needed > 0 && fit.available > 0) known_.push_back({static_cast<double>(count), fit});
  }
  // Returns the next count to try: strictly between one that fits and one that does not.
  int64_t next() {
    ++tries_;
    int64_t wanted = predicted();
    // Every third try bisects, in case predictions keep missing; without an upper end it doubles.
    if (wanted == 0 || tries_ % 3 == 0) wanted = tried_beyond_ ? (fits_ + beyond_) / 2 : 2 * fits_;
    return std::clamp(wanted, fits_ + 1, beyond_ - 1);
  }

 private:
  struct Known {
    double count;
    BatchFit fit;
  };
  // Returns where a line through the last two points (or through one and the origin) meets the limit.
  int64_t predicted() const {
    if (known_.empty()) return 0;
    const Known& last = known_.back();
    Known other{0, {true, 0, last.fit.available}};
    for (const Known& known : known_)
      if (known.count != last.count) other = known;
    const double slope = (last.fit.needed - other.fit.needed) / (last.count - other.count);
    if (!(slope > 0)) return 0;
    const double count = last.count + (last.fit.available - last.fit.needed) / slope;
    return static_cast<int64_t>(std::clamp(std::floor(count), 0.0, 1e12));
  }

  int64_t multiple_, fits_ = 0, beyond_;
  bool tried_beyond_ = false;
  int tries_ = 0;
  std::vector<Known> known_;
};

}  // namespace

base::Result<int64_t> largest_batch(const std::function<base::Result<BatchFit>(int64_t)>& try_batch,
                                    int64_t start, int64_t multiple, int64_t limit) {
  BatchSearch search(multiple, limit);
  int64_t count = std::clamp<int64_t>(start / multiple, 1, std::max<int64_t>(1, limit / multiple));
  while (!search.done()) {
    SLUICE_TRY(const BatchFit fit, try_batch(count * multiple));
    search.note(count, fit);
    if (!search.done()) count = search.next();
  }
  return search.largest();
}

namespace {

std::string printed(const char* format, double number, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, format, number, unit);
  return text;
}

}  // namespace

std::string in_gib(double bytes) { return printed("%.2f %s", bytes / (1 << 30), "GiB"); }

std::string in_time(double seconds) {
  if (seconds < 1) return printed("%.3g %s", seconds * 1e3, "ms");
  if (seconds < 120) return printed("%.3g %s", seconds, "s");
  return seconds < 7200 ? printed("%.1f %s", seconds / 60, "min") : printed("%.1f %s", seconds / 3600, "h");
}

}  // namespace sluice::estimate
