#include "sluice/device/report/recompiles.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <vector>

#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/device/report/call_places.h"
#include "sluice/device/report/frames.h"
#include "sluice/device/report/metrics.h"

namespace sluice::device {
namespace {

struct Sites {
  std::map<std::string, ProgramSite, std::less<>> boundaries;
  std::map<uint64_t, ProgramSite> reads;  // the key is a hash of the place's frames
  int64_t read_programs = 0;
};
Sites& sites() {
  static auto* all = new Sites();
  return *all;
}

// A length that depended on values.
struct ValueShape {
  std::string operation;
  int64_t length = 0;
  uint64_t trace = 0;  // the number of the trace that uses it, or of a slightly earlier one
  Frames frames;
};
std::deque<ValueShape>& value_shapes() {
  static auto* latest = new std::deque<ValueShape>();
  return *latest;
}

// The reason why the next program differs from the one before.
struct Difference {
  std::string operation;  // as the user wrote it; "" if no operation is the cause
  std::string change;
  std::string remedy;
  const Instance* now = nullptr;
  uint32_t layer = 0;
  Frames frames;  // where the cause is called, if not at `now`
};

constexpr const char* kForMasks =
    "a mask picks another number of values each time: compute with the mask (torch::where(mask, x, 0)), use "
    "index_select with positions of one length, or pick on the host (.cpu())";
constexpr const char* kForUnique =
    "its length depends on values: call it on the host (.cpu()), or give the length where there is an "
    "argument for it (output_size, minlength)";
constexpr const char* kForLengths =
    "a length that changes: pad to a few lengths and mask what was added (sluice::pad_to); for a smaller "
    "last batch there is .drop_last() and .pad()";
constexpr const char* kForSlices =
    "slices of one length share a program wherever they begin: keep the length, or pad to a few lengths";
constexpr const char* kForPlaces = "pass places as a tensor: index_select(0, positions), gather";
constexpr const char* kForNumbers =
    "a number that changes is a part of the program here: pass it as a tensor, torch::full({}, value, "
    "device)";
constexpr const char* kForArguments =
    "this argument is a part of the program: keep it to a few values, or pass positions as a tensor "
    "(index_select, gather)";
constexpr const char* kForBranches =
    "the host records other operations (an if, a state that is made later): record the same ones in each "
    "step and choose with torch::where, make state before the loop (sluice::create_state)";
constexpr const char* kForKept = "what lives at a cut is stored: keep the same tensors in every step";

std::string shape_text(c10::ArrayRef<int64_t> sizes) {
  return base::str("[", base::join(std::vector<int64_t>(sizes.begin(), sizes.end()), ", "), "]");
}

bool is_view(const Instance& instance) {
  return instance.row->name == "sluice::view" || instance.row->name == "sluice::view_write";
}

// Returns the sizes of the part that a view row takes, from its integers as storage.cc writes them.
std::vector<int64_t> sizes_of_view(const Instance& view) {
  const std::vector<int64_t>& ints = view.args[2].ints;
  const auto at = static_cast<size_t>(ints[0]) + 1;
  const auto begin = ints.begin() + static_cast<std::ptrdiff_t>(at) + 1;
  return {begin, begin + static_cast<std::ptrdiff_t>(ints[at])};
}

std::string value_text(const ops::Arg& arg) {
  using Kind = ops::Arg::Kind;
  if (arg.kind == Kind::kScalar) return arg.constant ? base::str(arg.number) : "a number of the run";
  if (arg.kind == Kind::kInts) return shape_text(arg.ints);
  if (arg.kind == Kind::kInt || arg.kind == Kind::kBool) return base::str(base::join(arg.ints, ", "));
  if (arg.kind == Kind::kDoubles) return base::str("[", base::join(arg.doubles, ", "), "]");
  if (arg.kind == Kind::kText) return arg.text;
  return "another one";
}

bool is_same(const ops::Arg& a, const ops::Arg& b) {
  return a.kind == b.kind && a.constant == b.constant && a.number == b.number && a.ints == b.ints &&
         a.doubles == b.doubles && a.text == b.text && a.dtype == b.dtype;
}

// Returns the latest operation that made a length of the new shape that the old shape does not have.
const ValueShape* made_by_values(c10::ArrayRef<int64_t> now, c10::ArrayRef<int64_t> was) {
  const auto has = [](c10::ArrayRef<int64_t> dims, int64_t length) {
    return std::find(dims.begin(), dims.end(), length) != dims.end();
  };
  constexpr uint64_t kShortly = 2;
  const uint64_t trace = Trace::get().number;
  for (const ValueShape& made : value_shapes())
    if (made.trace + kShortly >= trace && has(now, made.length) && !has(was, made.length)) return &made;
  return nullptr;
}

void of_shapes(Difference& found, c10::ArrayRef<int64_t> now, c10::ArrayRef<int64_t> was) {
  found.remedy = kForLengths;
  const ValueShape* const made = made_by_values(now, was);
  if (made == nullptr) return;
  found.operation = made->operation;
  found.frames = made->frames;
  const bool picks = made->operation.find("unique") == std::string::npos && made->operation != "bincount" &&
                     made->operation != "repeat_interleave";
  found.remedy = picks ? kForMasks : kForUnique;
}

void of_view(Difference& found, const Instance& now, const Instance& was) {
  const std::vector<int64_t> sizes = sizes_of_view(now), before = sizes_of_view(was);
  if (sizes == before) {
    found.change = base::str("a part of shape ", shape_text(sizes), " begins at another place");
    found.remedy = kForPlaces;
    return;
  }
  found.change = base::str("its part has shape ", shape_text(sizes), ", was ", shape_text(before));
  of_shapes(found, sizes, before);
  if (found.remedy == kForLengths) found.remedy = kForSlices;
}

void of_arguments(Difference& found, const Instance& now, const Instance& was) {
  if (is_view(now)) return of_view(found, now, was);
  for (size_t i = 0; i < now.args.size() && i < was.args.size(); ++i) {
    if (is_same(now.args[i], was.args[i])) continue;
    found.change = base::str("argument '", (*now.names)[i], "' is ", value_text(now.args[i]), ", was ",
                             value_text(was.args[i]));
    const bool number = now.args[i].kind == ops::Arg::Kind::kScalar;
    found.remedy = number ? kForNumbers : kForArguments;
    return;
  }
  found.change = "a constant argument changed";
  found.remedy = kForArguments;
}

void of_instances(Difference& found, const Instance& now, const Instance& was) {
  for (size_t k = 0; k < now.operands.size() && k < was.operands.size(); ++k) {
    if (now.operands[k] == was.operands[k]) continue;
    const stablehlo::Type &is = now.operands[k]->type, &before = was.operands[k]->type;
    found.change = base::str("operand ", k, " is ", is.str(), ", was ", before.str());
    return of_shapes(found, is.dims, before.dims);
  }
  of_arguments(found, now, was);
}

Difference difference(const Program& before, const Trace& trace, const Plan& plan) {
  Difference found;
  found.remedy = kForBranches;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const Node& node = trace.nodes[plan.nodes[i]];
    const Instance& now = *node.instance;
    if (i < before.instances.size() && before.instances[i] == now.id) continue;
    found.now = &now;
    found.layer = node.name;
    found.operation = written_name(now.row->name);
    if (i >= before.instances.size()) {
      found.change = base::str("operation ", i, " is new");
      return found;
    }
    const Instance* const was = instance_by_id(before.instances[i]);
    if (was == nullptr)
      found.change = base::str("operation ", i, " is another one");
    else if (was->row != now.row)
      found.change = base::str("operation ", i, " was ", written_name(was->row->name));
    else
      of_instances(found, now, *was);
    return found;
  }
  if (plan.nodes.size() < before.instances.size()) {
    found.change = base::str(before.instances.size() - plan.nodes.size(), " operations are gone");
    return found;
  }
  found.change = base::str("the operations are the same; what is kept of their results changed (",
                           plan.outputs.size(), " results)");
  found.remedy = kForKept;
  return found;
}

// Returns " at train.cc:12", " in layer fc1", or "". May take a second.
std::string place_of(const Difference& found) {
  const std::string place = !found.frames.empty()  ? describe_place(found.frames)
                            : found.now != nullptr ? call_place(found.now->id)
                                                   : std::string();
  if (!place.empty()) return base::str(" at ", place);
  return found.layer == 0 ? "" : base::str(" in layer ", Names::name(found.layer));
}

std::string cost_text(const ProgramSite& site) {
  return base::str(site.programs - 1, " programs so far took ", seconds_text(site.seconds), " to compile");
}

constexpr int64_t kManyReads = 50;

void warn_of_many_reads() {
  if (++sites().read_programs != kManyReads || runtime_options().eager) return;
  base::warn(kManyReads,
             " programs were compiled for values that the host reads, one for each kind of value; ",
             "metrics_report() names the places; copy one tensor that holds them all (torch::stack)");
}

// Returns "'step'", or "the read at train.cc:12".
std::string name_of(ProgramSite& site, std::string_view what) {
  if (!is_host_read(what)) return base::str("'", what, "'");
  if (site.place.empty()) site.place = describe_place(frames_here());
  return site.place.empty() ? "a host read" : base::str("the read at ", site.place);
}

}  // namespace

std::string written_name(std::string_view row) {
  if (row == "sluice::view") return "slice";
  if (row == "sluice::view_write") return "write to a slice";
  const size_t space = row.find("::");
  if (space != row.npos) row.remove_prefix(space + 2);
  return std::string(row.substr(0, row.find('.')));
}

ProgramSite& site_of(std::string_view what) {
  if (!is_host_read(what)) return sites().boundaries.try_emplace(std::string(what)).first->second;
  return sites().reads[hash_of(frames_here())];
}

void forget_sites() {
  sites() = Sites();
  value_shapes().clear();
}

void report_new_program(ProgramSite& site, const Trace& trace, const Plan& plan, std::string_view what) {
  ++site.programs;
  if (what == kGather) return;  // one for each kind of value, for example of a checkpoint
  const bool read = is_host_read(what);
  if (read) warn_of_many_reads();
  // The first two programs are expected: the first step creates the optimizer's state.
  if (site.programs <= 2 || site.last == nullptr || runtime_options().eager) return;
  const Difference found = difference(*site.last, trace, plan);
  const int64_t times = ++site.causes[found.operation + found.remedy];
  const bool told = std::has_single_bit(static_cast<uint64_t>(times));
  const std::string text =
      base::str(told ? name_of(site, what) : base::str("'", what, "'"), " needs a new program (its number ",
                site.programs, "): ", found.operation, told ? place_of(found) : "",
                found.operation.empty() ? "" : ": ", found.change);
  if (told)
    base::warn("recompile: ", text, "; ", cost_text(site), "; ", found.remedy,
               times == 1 ? "" : base::str(" (said again after ", times, " of them)"));
  if (read) return;
  Metrics& metrics = Metrics::get();
  std::scoped_lock lock(metrics.mutex);
  if (metrics.recompiles.size() < 100) metrics.recompiles.push_back(text);
}

void note_value_shape(std::string_view operation, int64_t length) {
  constexpr size_t kLatest = 32;
  std::deque<ValueShape>& latest = value_shapes();
  latest.push_front({written_name(operation), length, Trace::get().number, frames_here()});
  if (latest.size() > kLatest) latest.pop_back();
}

}  // namespace sluice::device
