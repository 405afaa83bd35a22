// metrics_report(): what the device did, in numbers and in words.
#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <unordered_map>

#include "sluice/base/clock.h"
#include "sluice/base/quantity.h"
#include "sluice/base/strings.h"
#include "sluice/device/device.h"
#include "sluice/device/report/busy_clock.h"
#include "sluice/device/report/metrics.h"
#include "sluice/device/runtime.h"
#include "sluice/device/trace.h"

namespace sluice::device {
namespace {

std::string demangled(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 ? text : name;
  free(text);
  return result;
}

// One frame: where an address lies, as addr2line tells it (the innermost inlined call that is the user's
// own). Without debug information there is no line, but `offset`: "program+0x1f2a".
struct Symbol {
  std::string library, function, line, offset;
};

bool is_library(const std::string& path) {
  for (const char* part : {"libtorch", "libc10", "libsluice", "libc.so", "libstdc++"}) {
    if (path.find(part) != std::string::npos) return true;
  }
  return false;
}

// Functions and header lines of LibTorch, of the C++ library and of the device itself are not the user's.
bool is_users(const std::string& function, const std::string& line) {
  for (const char* prefix :
       {"sluice::device::", "sluice::on_replica", "sluice::Fetch", "sluice::Session",
        "at::", "c10::", "torch::", "std::", "void c10::", "void at::", "_start", "__libc"}) {
    if (function.rfind(prefix, 0) == 0) return false;
  }
  // The symbol of a template begins with what it returns.
  const std::string_view named = std::string_view(function).substr(0, function.find('('));
  for (const char* part : {"sluice::device::", " at::", " c10::", " torch::", " std::"}) {
    if (named.find(part) != std::string_view::npos) return false;
  }
  // Functions of an unnamed namespace come without the names around it.
  for (const char* part : {"/include/", "/sluice/device/", "libc-start", "sanitizer_common"}) {
    if (line.find(part) != std::string::npos) return false;
  }
  return true;
}

// Whether the addresses in the file that is loaded here are those of the process: a program that is no
// position-independent one.
bool is_linked_at_its_place(const void* base) {
  return static_cast<const ElfW(Ehdr)*>(base)->e_type == ET_EXEC;
}

// The line of an offset into the symbol's library, by addr2line.
void find_line(Symbol& symbol, uintptr_t offset) {
  char command[4096];
  snprintf(command, sizeof command, "addr2line -Cfie '%s' 0x%zx 2>/dev/null", symbol.library.c_str(),
           static_cast<size_t>(offset));
  FILE* pipe = popen(command, "r");
  if (pipe == nullptr) return;
  char function[2048] = "", line[2048] = "";
  while (fgets(function, sizeof function, pipe) && fgets(line, sizeof line, pipe)) {
    const std::string name(base::trim(function));
    std::string place(base::trim(line));
    if (name == "??" || !is_users(name, place)) continue;
    symbol.function = name;
    if (place.rfind("??", 0) == 0) continue;
    place = place.substr(0, place.find(" ("));
    symbol.line = place.substr(place.rfind('/') + 1);
    break;
  }
  pclose(pipe);
}

Symbol look_up(void* address, bool with_line) {
  Symbol symbol;
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return symbol;
  symbol.library = info.dli_fname;
  if (is_library(symbol.library) || symbol.library.find('\'') != std::string::npos) return symbol;
  if (info.dli_sname != nullptr) symbol.function = demangled(info.dli_sname);
  // The return address points behind the call.
  const auto offset =
      reinterpret_cast<uintptr_t>(address) -
      (is_linked_at_its_place(info.dli_fbase) ? 0 : reinterpret_cast<uintptr_t>(info.dli_fbase)) - 1;
  if (with_line) find_line(symbol, offset);
  char place[32];
  snprintf(place, sizeof place, "+0x%zx", static_cast<size_t>(offset));
  symbol.offset = symbol.library.substr(symbol.library.rfind('/') + 1) + place;
  return symbol;
}

// A line takes up to a second in a large program: each address is looked up once, and when all that has taken
// so many seconds, places are told as offsets.
constexpr double kMaxLookupSeconds = 300;

Symbol resolve(void* address) {
  static auto& mutex = *new std::mutex();
  static auto& known = *new std::unordered_map<void*, Symbol>();
  static double spent = 0;
  const std::scoped_lock lock(mutex);
  const auto found = known.find(address);
  if (found != known.end()) return found->second;
  const base::Stopwatch watch;
  Symbol symbol = look_up(address, spent < kMaxLookupSeconds);
  spent += watch.seconds();
  return known[address] = std::move(symbol);
}

std::string seconds_text(double s) {
  char text[32];
  if (s < 1e-3)
    snprintf(text, sizeof text, "%.0f us", s * 1e6);
  else if (s < 1)
    snprintf(text, sizeof text, "%.1f ms", s * 1e3);
  else
    snprintf(text, sizeof text, "%.2f s", s);
  return text;
}

// "device 0: 1.2 GB in use, 3.4 GB at the peak, of 16.0 GB": what the plugin says of it.
std::string memory_line(int device, const pjrt::MemoryStats& stats) {
  std::string line = base::str("  device ", device, ": ", base::memory_text(stats.in_use), " in use");
  if (stats.peak) line += base::str(", ", base::memory_text(*stats.peak), " at the peak");
  if (stats.limit) line += base::str(", of ", base::memory_text(*stats.limit));
  return line + "\n";
}

// "4.5 a second"
std::string rate_text(int64_t count, double seconds) {
  char text[64];
  snprintf(text, sizeof text, "%.1f a second", static_cast<double>(count) / seconds);
  return text;
}

void add_series(std::string& out, const char* name, const Series& series) {
  if (series.count() == 0) return;
  out += base::str("  ", name, std::string(12 - std::min<size_t>(11, std::string_view(name).size()), ' '),
                   series.count(), " times, ", seconds_text(series.total()), " in all; percentiles");
  for (double p : {1.0, 25.0, 50.0, 75.0, 99.0})
    out += base::str(" ", p, "% ", seconds_text(series.percentile(p)));
  out += "\n";
}

// The places in the user's code where the host waited, the longest wait first; one source line is one place.
std::vector<std::pair<std::string, Place>> places(const Metrics& metrics) {
  std::map<std::string, Place> merged;
  for (const auto& [hash, read] : metrics.reads) {
    Place& place = merged[describe_place(read.frames) + "\n" + read.what];
    place.what = read.what;
    place.count += read.count;
    place.seconds += read.seconds;
    place.bytes += read.bytes;
  }
  std::vector<std::pair<std::string, Place>> sorted;
  for (auto& [key, place] : merged) sorted.emplace_back(key.substr(0, key.find('\n')), place);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  return sorted;
}

// `elapsed` seconds, which do not hold what the report itself takes: finding a place's line can be a second.
void add_findings(std::string& out, const Metrics& metrics,
                  const std::vector<std::pair<std::string, Place>>& reads, double elapsed) {
  std::vector<std::string> findings;
  const auto share = [&](double s) { return static_cast<int>(100 * s / elapsed + 0.5); };
  for (const auto& [where, place] : reads) {
    if (place.count < 5 || share(place.seconds) < 5) continue;
    findings.push_back(base::str(place.what, " at ", where.empty() ? "an unknown place" : where, ", ",
                                 place.count, " times for ", metrics.counters.cuts, " programs: ",
                                 share(place.seconds), " % of the time is waiting; use session.log_every"));
  }
  for (const auto& [name, count] : metrics.fallbacks) {
    findings.push_back(base::str(name, " ran on the CPU ", count, " times; --strict makes it an error"));
  }
  if (!metrics.recompiles.empty()) {
    findings.push_back(base::str(
        metrics.recompiles.size(),
        " recompiles after the second program of a boundary; the last: ", metrics.recompiles.back()));
  }
  if (metrics.counters.forced_cuts > 0) {
    findings.push_back(
        base::str("the graph was cut ", metrics.counters.forced_cuts, " times because no boundary came"));
  }
  out += "Findings\n";
  if (findings.empty()) out += "  none\n";
  for (const std::string& finding : findings) out += "  - " + finding + "\n";
}

}  // namespace

std::string describe_place(const std::vector<void*>& frames) {
  for (void* frame : frames) {
    const Symbol symbol = resolve(frame);
    if (!symbol.line.empty()) return symbol.line;
    if (!symbol.function.empty() && is_users(symbol.function, ""))
      return base::str(symbol.function, " (", symbol.offset, ")");
  }
  return "";
}

}  // namespace sluice::device

namespace sluice {

std::string metrics_report() {
  using namespace device;
  const Counters now_counters = counters();
  std::string memory;
  {
    TraceLock lock = lock_trace();
    for (pjrt::Device* dev : runtime().devices) {
      if (auto stats = dev->memory()) memory += memory_line(dev->id(), *stats);
    }
  }
  Metrics& metrics = Metrics::get();
  std::scoped_lock lock(metrics.mutex);
  std::string out = "Sluice device report\n";
  out += base::str("Programs\n  ", now_counters.cuts, " launched, ", now_counters.programs,
                   " distinct: ", now_counters.compiles, " compiled, ", now_counters.cache_hits,
                   " from the disk cache\n  ", now_counters.recorded, " operations recorded\n");
  out += "Times\n";
  add_series(out, "tracing", metrics.trace);
  add_series(out, "lowering", metrics.lower);
  add_series(out, "compiling", metrics.compile);
  add_series(out, "loading", metrics.load);
  add_series(out, "launching", metrics.launch);
  add_series(out, "host reads", metrics.wait);
  const double elapsed = std::max(1e-9, base::monotonic_seconds() - metrics.since);
  out += base::str("  devices busy ", seconds_text(now_counters.busy_seconds), " (",
                   static_cast<int>(100 * std::min(1.0, now_counters.busy_seconds / elapsed) + 0.5), " % of ",
                   seconds_text(elapsed), ")\n");
  out += base::str("Transfers\n  to the device ", metrics.uploads, " (",
                   base::size_text(metrics.bytes_to_device), "), to the host ", metrics.downloads, " (",
                   base::size_text(metrics.bytes_to_host), ", ", rate_text(metrics.downloads, elapsed),
                   ")\n  buffers: ", pjrt::Buffer::made(), " made, ", pjrt::Buffer::freed(), " freed, ",
                   now_counters.live_buffers, " live\n");
  if (!memory.empty()) out += "Memory\n" + memory;
  out += base::str("Fallbacks to the CPU\n", metrics.fallbacks.empty() ? "  none\n" : "");
  for (const auto& [name, count] : metrics.fallbacks) out += base::str("  ", name, ": ", count, "\n");
  const auto reads = places(metrics);
  out += base::str("Host reads\n", reads.empty() ? "  none\n" : "");
  for (const auto& [where, place] : reads) {
    out +=
        base::str("  ", place.what, " at ", where.empty() ? "an unknown place" : where, ": ", place.count,
                  " times, waited ", seconds_text(place.seconds), ", ", base::size_text(place.bytes), "\n");
  }
  if (!metrics.recompiles.empty()) out += "Recompiles\n";
  for (const std::string& recompile : metrics.recompiles) out += "  " + recompile + "\n";
  add_findings(out, metrics, reads, elapsed);
  return out;
}

void reset_metrics() {
  auto& metrics = device::Metrics::get();
  std::scoped_lock lock(metrics.mutex);
  metrics.counters = {};
  device::BusyClock::get().restart();
  metrics.trace = metrics.lower = metrics.compile = metrics.load = metrics.launch = metrics.wait = {};
  metrics.bytes_to_device = metrics.bytes_to_host = metrics.uploads = metrics.downloads = 0;
  metrics.fallbacks.clear();
  metrics.reads.clear();
  metrics.recompiles.clear();
  metrics.since = base::monotonic_seconds();
}

}  // namespace sluice
