#include "sluice/profile/device_layers.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/pjrt/proto_reader.h"
#include "sluice/stablehlo/location.h"

namespace sluice::profile {
namespace {

using pjrt::ProtoReader;
using Kind = LayerRow::Kind;

// Calls visit(field, bytes) for each field of bytes in a message, in order.
template <typename Visit>
void each_bytes(std::string_view message, const Visit& visit) {
  for (ProtoReader reader(message); reader.next();)
    if (reader.is_bytes()) visit(reader.field(), reader.bytes());
}

// XStat: metadata_id = 1, double_value = 2, uint64_value = 3, int64_value = 4, str_value = 5, bytes_value =
// 6, ref_value = 7.
struct StatValue {
  int64_t id = 0;
  double number = 0;
  int64_t reference = 0;
  std::string_view text;
};
StatValue read_stat(std::string_view message) {
  StatValue stat;
  for (ProtoReader reader(message); reader.next();) {
    switch (reader.field()) {
      case 1:
        stat.id = static_cast<int64_t>(reader.number());
        break;
      case 2:
        stat.number = reader.real();
        break;
      case 3:
      case 4:
        stat.number = static_cast<double>(static_cast<int64_t>(reader.number()));
        break;
      case 5:
      case 6:
        stat.text = reader.bytes();
        break;
      case 7:
        stat.reference = static_cast<int64_t>(reader.number());
        break;
      default:
        break;
    }
  }
  return stat;
}

// XEvent: metadata_id = 1, offset_ps = 2, duration_ps = 3, stats = 4, num_occurrences = 5; XEventMetadata:
// id = 1, name = 2, display_name = 4, stats = 5.
struct Event {
  int64_t metadata = 0, begin = 0, duration = 0;  // picoseconds
  std::vector<StatValue> stats;
};
struct Metadata {
  std::string_view name;
  std::vector<StatValue> stats;
};

// XPlane: name = 2, lines = 3, event_metadata = 4, stat_metadata = 5 (maps: key = 1, value = 2), stats = 6;
// XLine: name = 2, events = 4.
struct Plane {
  explicit Plane(std::string_view message) {
    each_bytes(message, [&](unsigned field, std::string_view bytes) {
      if (field == 2) name = bytes;
      if (field == 3) lines.push_back(bytes);
      if (field == 4)
        add(bytes, [&](int64_t id, std::string_view value) { metadata[id] = read_metadata(value); });
      if (field == 5)
        add(bytes, [&](int64_t id, std::string_view value) { stat_names[id] = name_of(value); });
      if (field == 6) stats.push_back(read_stat(bytes));
    });
  }

  template <typename Take>
  static void add(std::string_view entry, const Take& take) {
    int64_t key = 0;
    std::string_view value;
    for (ProtoReader reader(entry); reader.next();) {
      if (reader.field() == 1) key = static_cast<int64_t>(reader.number());
      if (reader.field() == 2) value = reader.bytes();
    }
    take(key, value);
  }
  static std::string_view name_of(std::string_view message) {
    std::string_view name;
    each_bytes(message, [&](unsigned field, std::string_view bytes) {
      if (field == 2) name = bytes;
    });
    return name;
  }
  static Metadata read_metadata(std::string_view message) {
    Metadata read{name_of(message), {}};
    each_bytes(message, [&](unsigned field, std::string_view bytes) {
      if (field == 5) read.stats.push_back(read_stat(bytes));
    });
    return read;
  }

  const StatValue* find(const std::vector<StatValue>& among, std::string_view wanted) const {
    for (const StatValue& stat : among)
      if (const auto found = stat_names.find(stat.id); found != stat_names.end() && found->second == wanted)
        return &stat;
    return nullptr;
  }
  // Finds a stat of the event itself, or of its metadata.
  const StatValue* find(const Event& event, std::string_view wanted) const {
    if (const StatValue* own = find(event.stats, wanted)) return own;
    const auto found = metadata.find(event.metadata);
    return found == metadata.end() ? nullptr : find(found->second.stats, wanted);
  }
  std::string_view text(const Event& event, std::string_view wanted) const {
    const StatValue* const stat = find(event, wanted);
    if (stat == nullptr) return {};
    const auto referred = stat_names.find(stat->reference);
    return stat->text.empty() && referred != stat_names.end() ? referred->second : stat->text;
  }
  double number(const Event& event, std::string_view wanted) const {
    const StatValue* const stat = find(event, wanted);
    return stat == nullptr ? 0 : std::max(stat->number, 0.0);
  }

  std::string_view name;
  std::vector<std::string_view> lines;
  std::unordered_map<int64_t, Metadata> metadata;
  std::unordered_map<int64_t, std::string_view> stat_names;
  std::vector<StatValue> stats;
};

struct Line {
  explicit Line(std::string_view message) {
    each_bytes(message, [&](unsigned field, std::string_view bytes) {
      if (field == 2) name = bytes;
      if (field == 4) events.push_back(read_event(bytes));
    });
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.duration > b.duration;
    });
  }
  static Event read_event(std::string_view message) {
    Event event;
    for (ProtoReader reader(message); reader.next();) {
      if (reader.field() == 1) event.metadata = static_cast<int64_t>(reader.number());
      if (reader.field() == 2) event.begin = static_cast<int64_t>(reader.number());
      if (reader.field() == 3) event.duration = static_cast<int64_t>(reader.number());
      if (reader.field() == 4) event.stats.push_back(read_stat(reader.bytes()));
    }
    return event;
  }
  std::string_view name;
  std::vector<Event> events;
};

// Reads the names of all instructions of a program in the plane "/host:metadata": HloProto.hlo_module = 1,
// HloModuleProto: name = 1, computations = 3, HloComputationProto.instructions = 2, HloInstructionProto: name
// = 1, metadata = 7, OpMetadata.op_name = 2.
using ProgramNames = std::map<std::pair<std::string, std::string>, std::string>;  // module, instruction
void read_program(std::string_view hlo, ProgramNames& names) {
  each_bytes(hlo, [&](unsigned field, std::string_view module) {
    if (field != 1) return;
    std::string name;
    each_bytes(module, [&](unsigned part, std::string_view bytes) {
      if (part == 1) name = bytes;
      if (part != 3) return;
      each_bytes(bytes, [&](unsigned inner, std::string_view instruction) {
        if (inner != 2) return;
        std::string_view called, op_name;
        each_bytes(instruction, [&](unsigned which, std::string_view value) {
          if (which == 1) called = value;
          if (which == 7) op_name = Plane::name_of(value);
        });
        if (!op_name.empty()) names.emplace(std::pair(name, std::string(called)), op_name);
      });
    });
  });
}

// Returns "fc.weight/aten::mm:Dot" without the operation's type, which follows a single colon.
std::string_view without_type(std::string_view tf_op) {
  const size_t colon = tf_op.rfind(':');
  if (colon == std::string_view::npos || (colon > 0 && tf_op[colon - 1] == ':')) return tf_op;
  return tf_op.substr(0, colon);
}

class Reader {
 public:
  explicit Reader(std::string_view xspace) {
    each_bytes(xspace, [&](unsigned field, std::string_view bytes) {
      if (field == 1) planes_.emplace_back(bytes);
    });
    for (const Plane& plane : planes_) {
      if (plane.name != "/host:metadata") continue;
      for (const auto& [id, program] : plane.metadata)
        if (const StatValue* hlo = plane.find(program.stats, "Hlo Proto")) read_program(hlo->text, programs_);
    }
  }

  base::Result<LayerTable> read(double steps, double step_nanoseconds) {
    LayerTable table;
    for (const Plane& plane : planes_)
      if (base::starts_with(plane.name, "/device:TPU:") || base::starts_with(plane.name, "/device:GPU:"))
        read_device(plane, table.peaks);
    if (named_ == 0)
      return base::fail(Code::kNotFound,
                        "expected a device's operations with their names (the stat tf_op), found ",
                        found_in_words());
    if (runs_ > 0 && devices_ > 0) {
      steps = runs_ / devices_;
      step_nanoseconds = run_nanoseconds_ / runs_;
      table.unit = "run of its program";
    }
    for (auto& [key, row] : rows_) {
      for (double* number : {&row.nanoseconds, &row.calls, &row.flops, &row.bytes})
        *number /= steps * devices_;
      table.rows.push_back(std::move(row));
    }
    table.step_nanoseconds = step_nanoseconds;
    std::stable_sort(table.rows.begin(), table.rows.end(),
                     [](const auto& a, const auto& b) { return a.nanoseconds > b.nanoseconds; });
    return table;
  }

 private:
  void read_device(const Plane& plane, Peaks& peaks) {
    std::vector<Line> lines;
    for (const std::string_view bytes : plane.lines) lines.emplace_back(bytes);
    const bool derived =
        std::any_of(lines.begin(), lines.end(), [](const Line& line) { return line.name == "XLA Ops"; });
    bool any = false;
    for (const Line& line : lines) {
      if (line.name == "XLA Modules") read_modules(plane, line);
      if (derived ? line.name != "XLA Ops" : !base::starts_with(line.name, "Stream #")) continue;
      any = any || !line.events.empty();
      read_operations(plane, line);
    }
    devices_ += any ? 1 : 0;
    if (const StatValue* flops = plane.find(plane.stats, "peak_teraflops_per_second"))
      peaks.flops_per_second = flops->number * 1e12;
    if (const StatValue* bytes = plane.find(plane.stats, "peak_hbm_bw_gigabytes_per_second"))
      peaks.bytes_per_second = bytes->number * 1e9;
  }

  // Reads the runs of the longest program; the other programs run between the steps.
  void read_modules(const Plane& plane, const Line& line) {
    std::map<std::string_view, std::pair<double, double>> programs;  // runs, nanoseconds
    for (const Event& event : line.events) {
      const auto found = plane.metadata.find(event.metadata);
      if (found == plane.metadata.end()) continue;
      auto& [runs, nanoseconds] = programs[found->second.name];
      runs += 1;
      nanoseconds += in_nanoseconds(event.duration);
    }
    const auto longest = std::max_element(programs.begin(), programs.end(), [](const auto& a, const auto& b) {
      return a.second.second < b.second.second;
    });
    if (longest == programs.end()) return;
    runs_ += longest->second.first;
    run_nanoseconds_ += longest->second.second;
  }

  // Adds each operation's own time, without the operations inside it, as in a loop.
  void read_operations(const Plane& plane, const Line& line) {
    struct Open {
      LayerRow* row;
      int64_t end;
      double flops, bytes;  // including its parts
    };
    std::vector<Open> open;
    for (const Event& event : line.events) {
      while (!open.empty() && open.back().end <= event.begin) open.pop_back();
      Open own{&row_of(plane, event), event.begin + event.duration, plane.number(event, "model_flops"),
               plane.number(event, "bytes_accessed")};
      if (own.flops <= 0) own.flops = plane.number(event, "flops");
      if (!open.empty()) {
        Open& outer = open.back();
        own.end = std::min(own.end, outer.end);
        outer.row->nanoseconds -= in_nanoseconds(own.end - event.begin);
        outer.row->flops -= std::exchange(outer.flops, 0);
        outer.row->bytes -= std::exchange(outer.bytes, 0);
      }
      own.row->nanoseconds += in_nanoseconds(own.end - event.begin);
      own.row->calls += 1;
      own.row->flops += own.flops;
      own.row->bytes += own.bytes;
      open.push_back(own);
    }
  }
  static double in_nanoseconds(int64_t picoseconds) { return static_cast<double>(picoseconds) / 1e3; }

  LayerRow& row_of(const Plane& plane, const Event& event) {
    std::string_view location = without_type(plane.text(event, "tf_op"));
    if (location.empty()) {
      const auto known = programs_.find(
          {std::string(plane.text(event, "hlo_module")), std::string(plane.text(event, "hlo_op"))});
      if (known != programs_.end()) location = known->second;
    }
    std::string layer, pass;
    if (!location.empty()) {
      const stablehlo::Location parts = stablehlo::parse_location(location);
      layer = parts.layer.empty() ? parts.operation : parts.layer;
      pass = stablehlo::pass_name(parts.pass);
      ++named_;
    } else {
      layer = "operations without a name";
      ++unnamed_;
    }
    LayerRow& row = rows_[{layer, pass}];
    row.name = layer;
    row.pass = pass;
    return row;
  }

  std::string found_in_words() const {
    if (unnamed_ > 0) return base::str(unnamed_, " operations without a name");
    std::string names;
    for (const Plane& plane : planes_) names += base::str(names.empty() ? "" : ", ", plane.name);
    return names.empty() ? "no plane" : base::str("the planes ", names);
  }

  std::vector<Plane> planes_;
  ProgramNames programs_;
  std::map<std::pair<std::string, std::string>, LayerRow> rows_;
  int64_t named_ = 0, unnamed_ = 0;
  double devices_ = 0, runs_ = 0, run_nanoseconds_ = 0;
};

}  // namespace

base::Result<LayerTable> layers_of_planes(std::string_view xspace, double steps, double step_nanoseconds) {
  return Reader(xspace).read(steps, step_nanoseconds);
}

}  // namespace sluice::profile
