#include "sluice/profile/layers.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "sluice/base/text/join.h"
#include "sluice/profile/format.h"

namespace sluice::profile {
namespace {

using Kind = LayerRow::Kind;

std::string label(const std::string& layer, const std::string& pass) {
  return pass.empty() ? layer : base::str(layer, " ", pass);
}

// Sweeps over the moments at which a call or a program begins or ends.
class Sweep {
 public:
  Sweep(const std::vector<NamedCall>& calls, const std::vector<base::SpanRecord>& programs, int64_t begin,
        int64_t end)
      : calls_(calls), programs_(programs), begin_(begin), end_(end) {}

  std::vector<LayerRow> run(double& idle) {
    for (size_t i = 0; i < calls_.size(); ++i) {
      const KernelCall& call = calls_[i].call;
      if (call.end > call.begin) {
        moments_.push_back({call.begin, true, i});
        moments_.push_back({call.end, false, i});
      }
    }
    // At equal moments, ends come before begins.
    std::sort(moments_.begin(), moments_.end(), [](const Moment& a, const Moment& b) {
      return a.at != b.at ? a.at < b.at : a.begins < b.begins;
    });
    int64_t at = begin_;
    for (size_t i = 0; i < moments_.size(); ++i) {
      const Moment& moment = moments_[i];
      if (running_.empty())
        between(at, moment.at, moment.call);
      else
        share(at, moment.at);
      at = std::max(at, moment.at);
      if (moment.begins) {
        running_.insert(moment.call);
        add_work(calls_[moment.call]);
      } else {
        running_.erase(moment.call);
        last_ = &calls_[moment.call];
      }
    }
    between(at, end_, std::nullopt);
    idle = idle_;
    std::vector<LayerRow> rows;
    for (auto& [key, row] : rows_)
      if (row.nanoseconds > 0) rows.push_back(std::move(row));
    return rows;
  }

 private:
  struct Moment {
    int64_t at;
    bool begins;
    size_t call;
  };

  int64_t inside(int64_t from, int64_t to) const {
    return std::max<int64_t>(0, std::min(to, end_) - std::max(from, begin_));
  }

  LayerRow& row(Kind kind, const std::string& name, const std::string& pass) {
    LayerRow& found = rows_[{kind, name, pass}];
    if (found.name.empty()) found = {.kind = kind, .name = name, .pass = pass};
    return found;
  }

  void share(int64_t from, int64_t to) {
    const double part = static_cast<double>(inside(from, to)) / static_cast<double>(running_.size());
    for (const size_t call : running_)
      row(Kind::kLayer, calls_[call].layer, calls_[call].pass).nanoseconds += part;
  }

  // Assigns a time in which no call runs.
  void between(int64_t from, int64_t to, std::optional<size_t> next_call) {
    for (; next_program_ < programs_.size(); ++next_program_) {
      const base::SpanRecord& program = programs_[next_program_];
      if (program.begin >= to) break;
      const int64_t start = std::max(from, program.begin), stop = std::min(to, program.end);
      if (start < stop) {
        idle_ += static_cast<double>(inside(from, start));
        const NamedCall* before = last_ != nullptr && last_->call.end > program.begin ? last_ : nullptr;
        const NamedCall* after =
            next_call && calls_[*next_call].call.begin < program.end ? &calls_[*next_call] : nullptr;
        compiled(before, after, inside(start, stop));
        from = stop;
      }
      if (program.end > to) return;
    }
    idle_ += static_cast<double>(inside(from, to));
  }

  void compiled(const NamedCall* before, const NamedCall* after, int64_t nanoseconds) {
    const std::string first = before == nullptr ? "" : label(before->layer, before->pass);
    const std::string second = after == nullptr ? "" : label(after->layer, after->pass);
    std::string name;
    if (first.empty() && second.empty())
      name = "XLA, programs without library kernels";
    else if (first.empty())
      name = base::str("XLA, before ", second);
    else if (second.empty())
      name = base::str("XLA, after ", first);
    else if (first == second)
      name = base::str("XLA, within ", first);
    else
      name = base::str("XLA, between ", first, " and ", second);
    LayerRow& found = row(Kind::kCompiled, name, "");
    found.nanoseconds += static_cast<double>(nanoseconds);
    if (nanoseconds > 0) found.calls += 1;
  }

  void add_work(const NamedCall& named) {
    const KernelCall& call = named.call;
    const double part =
        static_cast<double>(inside(call.begin, call.end)) / static_cast<double>(call.end - call.begin);
    LayerRow& found = row(Kind::kLayer, named.layer, named.pass);
    found.calls += part;
    found.flops += part * std::max(call.flops, 0.0);
    found.bytes += part * call.bytes;
  }

  const std::vector<NamedCall>& calls_;
  const std::vector<base::SpanRecord>& programs_;
  const int64_t begin_, end_;
  std::vector<Moment> moments_;
  std::set<size_t> running_;
  const NamedCall* last_ = nullptr;
  size_t next_program_ = 0;
  double idle_ = 0;
  std::map<std::tuple<Kind, std::string, std::string>, LayerRow> rows_;
};

double per_second(double amount, double nanoseconds) { return amount / nanoseconds * 1e9; }

std::string bound_in_words(const std::optional<Bound>& bound) {
  if (!bound) return "";
  return format("%s %.0f %%", bound->by_compute ? "compute" : "memory", 100 * bound->share);
}

std::string row_in_words(const LayerRow& row, const LayerTable& table) {
  const auto number = [](double value, const char* form) {
    return value > 0 ? format(form, value) : std::string();
  };
  const bool layer = row.kind == Kind::kLayer;
  return base::str(format("%10.3f  %6.2f  %7.1f  %8s  %9s  %8s  %-13s  ", row.nanoseconds / 1e6,
                          100 * row.nanoseconds / table.step_nanoseconds, row.calls,
                          number(layer ? row.flops / 1e9 : 0, "%.3f").c_str(),
                          number(row.bytes / (1 << 20), "%.2f").c_str(),
                          number(layer ? per_second(row.flops, row.nanoseconds) / 1e9 : 0, "%.1f").c_str(),
                          bound_in_words(bound_of(row, table.peaks)).c_str()),
                   label(row.name, row.pass), "\n");
}

}  // namespace

double LayerTable::nanoseconds(Kind kind) const {
  double sum = 0;
  for (const LayerRow& row : rows)
    if (row.kind == kind) sum += row.nanoseconds;
  return sum;
}

LayerTable layers_of(const std::vector<NamedCall>& calls, const std::vector<base::SpanRecord>& programs,
                     int64_t begin, int64_t end, double steps) {
  LayerTable table;
  double idle = 0;
  table.rows = Sweep(calls, programs, begin, end).run(idle);
  for (LayerRow& row : table.rows)
    for (double* number : {&row.nanoseconds, &row.calls, &row.flops, &row.bytes}) *number /= steps;
  table.idle_nanoseconds = idle / steps;
  table.step_nanoseconds = static_cast<double>(end - begin) / steps;
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [](const auto& a, const auto& b) { return a.nanoseconds > b.nanoseconds; });
  return table;
}

std::optional<Bound> bound_of(const LayerRow& row, const Peaks& peaks) {
  if (row.kind != Kind::kLayer || row.nanoseconds <= 0) return std::nullopt;
  const double compute = peaks.flops_per_second > 0 ? row.flops / peaks.flops_per_second : 0;
  const double memory = peaks.bytes_per_second > 0 ? row.bytes / peaks.bytes_per_second : 0;
  // With only one of both peaks the wrong bound could be named.
  if (peaks.flops_per_second <= 0 || peaks.bytes_per_second <= 0 || row.bytes <= 0) return std::nullopt;
  return Bound{compute >= memory, std::max(compute, memory) / (row.nanoseconds / 1e9)};
}

std::string layers_in_words(const LayerTable& table, size_t max_rows) {
  const auto share = [&](double nanoseconds) {
    return format("%.3f ms (%.1f %%)", nanoseconds / 1e6, 100 * nanoseconds / table.step_nanoseconds);
  };
  const double layers = table.nanoseconds(Kind::kLayer), compiled = table.nanoseconds(Kind::kCompiled);
  std::string out = base::str("By layer, a ", table.unit, ": ");
  if (table.idle_nanoseconds)
    out += base::str("library kernels ", share(layers), ", XLA's code around them ", share(compiled),
                     ", no program on the device ", share(*table.idle_nanoseconds), "\n");
  else
    out += base::str("operations of the device ", share(layers), "\n");
  if (table.dropped > 0)
    out += base::str("There was no room for ", table.dropped, " calls: profile fewer steps.\n");
  const Peaks& peaks = table.peaks;
  if (peaks.flops_per_second > 0 && peaks.bytes_per_second > 0)
    out += base::str(
        "At most ",
        format("%.1f GFLOP/s and %.1f GB/s", peaks.flops_per_second / 1e9, peaks.bytes_per_second / 1e9),
        peaks.source.empty() ? "" : ", ", peaks.source,
        ": what a layer is bound by, and how much of that it reaches\n");
  out += "        ms       %    calls     GFLOP        MiB   GFLOP/s  bound by\n";
  const size_t shown = std::min(max_rows, table.rows.size());
  for (size_t i = 0; i < shown; ++i) out += row_in_words(table.rows[i], table);
  double rest = 0;
  for (size_t i = shown; i < table.rows.size(); ++i) rest += table.rows[i].nanoseconds;
  if (shown < table.rows.size())
    out += base::str(format("%10.3f  %6.2f  ", rest / 1e6, 100 * rest / table.step_nanoseconds), "in ",
                     table.rows.size() - shown, " more rows, which the file .layers.json has\n");
  return out;
}

std::string layers_as_json(const LayerTable& table) {
  using nlohmann::json;
  json page = {{"of", table.unit}, {"ms", table.step_nanoseconds / 1e6}};
  page["layers_ms"] = table.nanoseconds(Kind::kLayer) / 1e6;
  if (table.idle_nanoseconds) {
    page["compiled_ms"] = table.nanoseconds(Kind::kCompiled) / 1e6;
    page["no_program_ms"] = *table.idle_nanoseconds / 1e6;
  }
  if (table.peaks.flops_per_second > 0) page["peak_flops_per_second"] = table.peaks.flops_per_second;
  if (table.peaks.bytes_per_second > 0) page["peak_bytes_per_second"] = table.peaks.bytes_per_second;
  page["rows"] = json::array();
  for (const LayerRow& row : table.rows) {
    json entry = {{"kind", row.kind == Kind::kLayer ? "layer" : "compiled"},
                  {"name", row.name},
                  {"ms", row.nanoseconds / 1e6},
                  {"share", row.nanoseconds / table.step_nanoseconds},
                  {"calls", row.calls}};
    if (!row.pass.empty()) entry["pass"] = row.pass;
    if (row.flops > 0) entry["flops"] = row.flops;
    if (row.bytes > 0) entry["bytes"] = row.bytes;
    if (row.flops > 0) entry["flops_per_second"] = per_second(row.flops, row.nanoseconds);
    if (const auto bound = bound_of(row, table.peaks)) {
      entry["bound_by"] = bound->by_compute ? "compute" : "memory";
      entry["share_of_peak"] = bound->share;
    }
    page["rows"].push_back(std::move(entry));
  }
  return page.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace sluice::profile
