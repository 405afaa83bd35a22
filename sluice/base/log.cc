#include "sluice/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <optional>
#include <string>

#include "sluice/base/environment.h"
#include "sluice/base/text/shown_text.h"

namespace sluice::base {
namespace {

spdlog::level::level_enum spdlog_level(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

// Returns nothing if the name is no level.
std::optional<Level> level_of(const std::string& name) {
  if (name == "debug") return Level::kDebug;
  if (name == "info" || name.empty()) return Level::kInfo;
  if (name == "warning" || name == "warn") return Level::kWarning;
  if (name == "error") return Level::kError;
  return std::nullopt;
}

// Never destroyed: threads of plugins may still log while the process ends.
spdlog::logger& logger() {
  static spdlog::logger* const instance = [] {
    auto* made = new spdlog::logger("sluice", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%H:%M:%S %L %v");
    made->flush_on(spdlog::level::debug);
    const std::string name = environment("SLUICE_LOG").value_or("");
    made->set_level(spdlog_level(level_of(name).value_or(Level::kInfo)));
    if (!level_of(name))
      made->warn("SLUICE_LOG is '{}': expected debug, info, warning or error; info is taken", name);
    return made;
  }();
  return *instance;
}

}  // namespace

void set_log_level(Level level) { logger().set_level(spdlog_level(level)); }

bool log_enabled(Level level) { return logger().should_log(spdlog_level(level)); }

void log(Level level, const std::string& message) {
  logger().log(spdlog_level(level), "{}", shown_text(message));
}

}  // namespace sluice::base
