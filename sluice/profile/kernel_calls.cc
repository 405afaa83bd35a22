#include "sluice/profile/kernel_calls.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "sluice/base/text/join.h"
#include "sluice/stablehlo/location.h"

namespace sluice::profile {
namespace {

constexpr size_t kMaxRecordedCalls = size_t{1} << 20;

struct Recorder {
  std::mutex mutex;
  std::vector<KernelCall> calls;
  int64_t dropped = 0;
  std::unordered_map<int64_t, RecordedName> names;

  // The recorder is never destroyed: programs may run while the process ends.
  static Recorder& get() {
    static auto* recorder = new Recorder();
    return *recorder;
  }
};

NamedCall named(const KernelCall& call, const RecordedName* name) {
  if (name == nullptr) return {call.target, "", call};
  const stablehlo::Location location = stablehlo::parse_location(name->location);
  NamedCall result{location.layer, std::string(stablehlo::pass_name(location.pass)), call};
  if (!result.layer.empty()) return result;
  result.layer = location.operation;
  const std::string place = name->place ? name->place() : "";
  if (!place.empty()) result.layer += base::str(", first called at ", place);
  return result;
}

}  // namespace

void record_kernel_call(const KernelCall& call) {
  if (!base::spans_are_recorded()) return;
  Recorder& recorder = Recorder::get();
  std::scoped_lock lock(recorder.mutex);
  if (recorder.calls.size() < kMaxRecordedCalls)
    recorder.calls.push_back(call);
  else
    ++recorder.dropped;
}

void name_recorded(int64_t recorded, RecordedName name) {
  Recorder& recorder = Recorder::get();
  std::scoped_lock lock(recorder.mutex);
  recorder.names.emplace(recorded, std::move(name));
}

KernelCalls take_kernel_calls(int64_t since) {
  Recorder& recorder = Recorder::get();
  KernelCalls result;
  std::vector<KernelCall> calls;
  std::map<int64_t, RecordedName> names;  // their places are looked up without the lock
  {
    std::scoped_lock lock(recorder.mutex);
    calls.swap(recorder.calls);
    result.dropped = std::exchange(recorder.dropped, 0);
    for (const KernelCall& call : calls)
      if (const auto found = recorder.names.find(call.recorded); found != recorder.names.end())
        names.emplace(found->first, found->second);
  }
  std::erase_if(calls, [since](const KernelCall& call) { return call.begin < since; });
  std::stable_sort(calls.begin(), calls.end(),
                   [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::map<std::pair<int64_t, const char*>, NamedCall> known;
  for (const KernelCall& call : calls) {
    auto found = known.find({call.recorded, call.target});
    if (found == known.end()) {
      const auto name = names.find(call.recorded);
      found = known
                  .emplace(std::pair(call.recorded, call.target),
                           named(call, name == names.end() ? nullptr : &name->second))
                  .first;
    }
    result.calls.push_back(found->second);
    result.calls.back().call = call;
  }
  return result;
}

std::vector<base::SpanLine> lines_of(const KernelCalls& calls) {
  // Above the small numbers of tracks.
  constexpr int64_t kFirstId = 1000;
  std::vector<base::SpanLine> lines;
  for (const auto& [layer, pass, call] : calls.calls) {
    auto line = std::find_if(lines.begin(), lines.end(),
                             [&](const auto& other) { return other.spans.back().end <= call.begin; });
    if (line == lines.end()) {
      const auto count = static_cast<int64_t>(lines.size());
      lines.push_back({base::str("xla:0, library kernels", count > 0 ? base::str(" ", count + 1) : ""),
                       kFirstId + count,
                       false,
                       {}});
      line = lines.end() - 1;
    }
    const char* const name = base::span_name(pass.empty() ? layer : base::str(layer, ", ", pass));
    line->spans.push_back({name, call.begin, call.end, {.bytes = static_cast<int64_t>(call.bytes)}});
  }
  return lines;
}

}  // namespace sluice::profile
