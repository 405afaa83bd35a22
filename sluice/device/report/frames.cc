#include "sluice/device/report/frames.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/formats/hash.h"
#include "sluice/base/process.h"
#include "sluice/base/text/join.h"

namespace sluice::device {
namespace {

std::string demangled(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 ? text : name;
  free(text);
  return result;
}

// A function and its source line, in addr2line's format.
struct Call {
  std::string function, line;
};

// An addr2line process for one file. It keeps running: reading the debug information of a large program takes
// seconds, and all later lines are found at once. It ends with this process, when its input closes.
class LineFinder {
 public:
  explicit LineFinder(const std::string& file) {
    base::ProcessOptions options;
    options.input = base::ProcessOptions::Input::kPipe;
    options.output = base::ProcessOptions::Output::kPipe;
    options.error = base::ProcessOptions::Output::kWithOutput;
    options.own_session = true;  // Ctrl-C is meant for the program
    auto started = base::Process::start({"addr2line", "-aCfi", "--exe=" + file}, options);
    if (started) process_.emplace(std::move(*started));
  }

  // Returns the call at an offset into the file and the calls into which it was inlined, the innermost first;
  // empty without addr2line.
  std::vector<Call> look_up(uintptr_t offset) {
    std::vector<Call> calls;
    // The reply to an address that no program has marks the end of the answer.
    char question[64];
    const int size =
        snprintf(question, sizeof question, "%#zx\n%s\n", static_cast<size_t>(offset), kNoAddress);
    if (!process_ || process_->write_in(question, static_cast<size_t>(size)) != size) return calls;
    const double deadline = base::monotonic_seconds() + kPatience;
    next_line(deadline);  // the address
    while (process_) {
      Call call{next_line(deadline), ""};
      if (call.function == kNoAddress) break;
      call.line = next_line(deadline);
      calls.push_back(std::move(call));
    }
    next_line(deadline), next_line(deadline);  // the reply to that address
    return calls;
  }

 private:
  static constexpr const char* kNoAddress = "0xffffffffffffffff";
  static constexpr double kPatience = 60;

  // Returns the next line of the answer. If no line arrives, abandons the process.
  std::string next_line(double deadline) {
    while (process_) {
      if (const size_t end = read_.find('\n'); end != std::string::npos) {
        std::string line = read_.substr(0, end);
        read_.erase(0, end + 1);
        return line;
      }
      pollfd wait{process_->out(), POLLIN, 0};
      const double left = deadline - base::monotonic_seconds();
      char block[4096];
      if (left > 0 && ::poll(&wait, 1, static_cast<int>(left * 1e3) + 1) <= 0) continue;
      const ssize_t count = left > 0 ? ::read(process_->out(), block, sizeof block) : 0;
      if (count > 0)
        read_.append(block, static_cast<size_t>(count));
      else
        process_.reset();
    }
    return "";
  }

  std::optional<base::Process> process_;
  std::string read_;
};

// Returns the finder of a file. Each process has its own, because a forked child shares its parent's pipes.
LineFinder& finder_of(const std::string& file) {
  static auto& finders = *new std::map<std::pair<pid_t, std::string>, LineFinder>();
  return finders.try_emplace({::getpid(), file}, file).first->second;
}

bool begins_with_any(std::string_view text, std::initializer_list<std::string_view> begins) {
  return std::any_of(begins.begin(), begins.end(),
                     [&](std::string_view begin) { return text.starts_with(begin); });
}
bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

bool is_library(const std::string& path) {
  return begins_with_any(std::string_view(path).substr(path.rfind('/') + 1),
                         {"libtorch", "libc10", "libsluice", "libc.so", "libstdc++"});
}

// Returns whether a function is the user's, not of LibTorch, the C++ library or the device itself.
bool is_users(const std::string& function, const std::string& line) {
  if (begins_with_any(function,
                      {"sluice::device::", "sluice::on_replica", "sluice::sync", "sluice::upload",
                       "sluice::forward_padded", "sluice::Fetch", "sluice::Capture", "sluice::Session",
                       "at::", "c10::", "torch::", "std::", "void c10::", "void at::", "_start", "__libc"}))
    return false;
  // The symbol of a template begins with its return type.
  if (contains_any(std::string_view(function).substr(0, function.find('(')),
                   {"sluice::device::", " at::", " c10::", " torch::", " std::"}))
    return false;
  // Functions of an unnamed namespace are printed without their outer namespaces.
  return !contains_any(line, {"/include/", "/sluice/device/", "libc-start", "sanitizer_common"});
}

// Returns whether an address in the loaded file equals its address in the process, which means that the
// program is not position-independent.
bool is_linked_at_its_place(const void* base) {
  return static_cast<const ElfW(Ehdr)*>(base)->e_type == ET_EXEC;
}

// One frame. Without debug information it has no line, only `offset`: "program+0x1f2a".
struct Symbol {
  std::string function, line, offset;
};

// Finds the line of the innermost call that is the user's own.
void find_line(Symbol& symbol, const std::string& file, uintptr_t offset) {
  for (const auto& [function, line] : finder_of(file).look_up(offset)) {
    if (function == "??" || !is_users(function, line)) continue;
    symbol.function = function;
    // The line is "file:line (discriminator 2)", "??:0", or "file.cc:?" if only a symbol is known.
    const std::string place = line.substr(0, line.find(" ("));
    if (place.starts_with("??") || place.ends_with(":?")) continue;
    symbol.line = place.substr(place.rfind('/') + 1);
    return;
  }
}

Symbol look_up(void* address) {
  Symbol symbol;
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return symbol;
  std::string file = info.dli_fname;
  if (is_library(file)) return symbol;
  // The name of a program that was found on $PATH has no folder.
  if (file.find('/') == std::string::npos) {
    std::error_code error;
    file = std::filesystem::read_symlink("/proc/self/exe", error).string();
  }
  if (info.dli_sname != nullptr) symbol.function = demangled(info.dli_sname);
  // The return address is the one after the call.
  const auto offset =
      reinterpret_cast<uintptr_t>(address) -
      (is_linked_at_its_place(info.dli_fbase) ? 0 : reinterpret_cast<uintptr_t>(info.dli_fbase)) - 1;
  find_line(symbol, file, offset);
  char place[32];
  snprintf(place, sizeof place, "+0x%zx", static_cast<size_t>(offset));
  symbol.offset = file.substr(file.rfind('/') + 1) + place;
  return symbol;
}

Symbol resolve(void* address) {
  static auto& mutex = *new std::mutex();
  static auto& known = *new std::unordered_map<void*, Symbol>();
  const std::scoped_lock lock(mutex);
  const auto found = known.find(address);
  return found != known.end() ? found->second : known[address] = look_up(address);
}

}  // namespace

uint64_t hash_of(const Frames& frames) {
  uint64_t hash = 0;
  for (void* frame : frames) hash = base::mix_word(hash, reinterpret_cast<uintptr_t>(frame));
  return hash;
}

std::string describe_place(const Frames& frames) {
  for (void* frame : frames) {
    const Symbol symbol = resolve(frame);
    if (!symbol.line.empty()) return symbol.line;
    if (!symbol.function.empty() && is_users(symbol.function, ""))
      return base::str(symbol.function, " (", symbol.offset, ")");
  }
  return "";
}

}  // namespace sluice::device
