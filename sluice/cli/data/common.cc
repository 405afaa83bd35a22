#include "sluice/cli/data/common.h"

#include <unistd.h>

#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>

#include "sluice/base/json_text.h"
#include "sluice/base/printable.h"
#include "sluice/base/shown_url.h"
#include "sluice/base/strings.h"
#include "sluice/data/memory.h"
#include "sluice/data/shards/urls.h"

namespace sluice::cli {

void print_json(const nlohmann::json& document) { std::printf("%s\n", base::json_text(document).c_str()); }

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) != 0) {}

void Progress::show(const std::string& what, std::int64_t done, std::int64_t total) {
  const double pause = terminal_ ? 0.1 : 10;
  if (clock_.seconds() - last_ < pause) return;
  last_ = clock_.seconds();
  std::fprintf(stderr, terminal_ ? "\r\033[K%s: %s of %s" : "%s: %s of %s\n", what.c_str(),
               grouped(done).c_str(), grouped(total).c_str());
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (shown_ && terminal_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

std::function<int()> guarded(std::string verb, std::function<base::Status()> body, std::string noun) {
  return [verb = std::move(noun) + " " + verb, body = std::move(body)] {
    try {
      const auto status = body();
      if (status) return 0;
      std::fprintf(stderr, "sluice %s: %s\n", verb.c_str(),
                   base::printable(base::shown_urls(status.error().what())).c_str());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "sluice %s: %s\n", verb.c_str(),
                   base::printable(base::shown_urls(error.what())).c_str());
    }
    return 1;
  };
}

void add_shards(CLI::App& app, std::vector<std::string>& shards) {
  app.add_option(
         "SHARDS", shards,
         "Shards: paths, {0000..0639} and {a,b} braces, globs, @file (a list), several joined by '::'")
      ->required();
  add_allow_pipe(app);
}

void add_allow_pipe(CLI::App& app) {
  app.add_flag_callback("--allow-pipe", data::allow_pipe_in_lists,
                        "Let a list of shards (@file) run commands (pipe:…)");
}

void add_memory_flags(CLI::App& app) {
  constexpr std::int64_t kMaxOfFlag = 1 << 20;
  app.add_option_function<std::int64_t>(
         "--max-sample",
         [](std::int64_t mib) { data::memory_limits().sample = static_cast<std::uint64_t>(mib) << 20; },
         "Memory in MiB that one sample's members and decoding may claim (default: 1024)")
      ->check(between(std::int64_t{1}, kMaxOfFlag));
  app.add_option_function<std::int64_t>(
         "--max-buffered",
         [](std::int64_t gib) { data::memory_limits().readers = static_cast<std::uint64_t>(gib) << 30; },
         "Memory in GiB that the windows of all zstd streams may take (default: 8)")
      ->check(between(std::int64_t{1}, kMaxOfFlag));
  app.add_option_function<std::int64_t>(
         "--max-pixels", [](std::int64_t millions) { data::memory_limits().pixels = millions * 1'000'000; },
         "Pixels of an image at most, in millions (default: 100)")
      ->check(between(std::int64_t{1}, kMaxOfFlag));
}

void add_where_flag(CLI::App& app, std::vector<std::string>& conditions) {
  app.add_option("--where", conditions,
                 "Only samples for which this holds, such as 'cls in 0,3' or 'json:split = train' (may be "
                 "repeated)")
      ->allow_extra_args(false);
}

base::Result<std::vector<data::Filter>> filters_of(const std::vector<std::string>& conditions) {
  std::vector<data::Filter> filters;
  for (const std::string& condition : conditions) {
    SLUICE_TRY(auto filter, data::parse_condition(condition));
    filters.push_back(std::move(filter));
  }
  return filters;
}

base::Result<std::vector<std::string>> expand_arguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> urls;
  for (const std::string& argument : arguments) {
    SLUICE_TRY(const auto some, data::expand_urls(argument));
    urls.insert(urls.end(), some.begin(), some.end());
  }
  return urls;
}

}  // namespace sluice::cli
