#include "sluice/cli/data/common.h"

#include <unistd.h>

#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>

#include "sluice/base/formats/json_text.h"
#include "sluice/base/text/shown_text.h"
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
      std::fprintf(stderr, "sluice %s: %s\n", verb.c_str(), base::shown_text(status.error().what()).c_str());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "sluice %s: %s\n", verb.c_str(), base::shown_text(error.what()).c_str());
    }
    return 1;
  };
}

// clang-format off
std::vector<Flag> shard_rows(std::vector<std::string>& shards) {
  return {
      Flag{"", "SHARDS", Words{&shards}, "", "Shards: paths, {0000..0639} and {a,b} braces, globs, @file (a list), several joined by '::'"}
          .required(),
      allow_pipe_row(),
  };
}

Flag allow_pipe_row() {
  return {"", "--allow-pipe", base::TakenSwitch{data::allow_pipe_in_lists}, "", "Let a list of shards (@file) run commands (pipe:…)"};
}

Flag read_workers_row(int& workers) {
  return Flag{"", "--workers", &workers, "", "Shards read at a time (0: one for each core)"}.zero_or_more();
}

Flag lines_or_json_row(bool& json) { return {"", "--json", &json, "", "One JSON document instead of lines"}; }

std::vector<Flag> memory_rows() {
  constexpr std::int64_t kMaxOfFlag = 1 << 20;
  const auto take_sample = [](std::int64_t mib) { data::memory_limits().sample = static_cast<std::uint64_t>(mib) << 20; };
  const auto take_readers = [](std::int64_t gib) { data::memory_limits().readers = static_cast<std::uint64_t>(gib) << 30; };
  const auto take_pixels = [](std::int64_t millions) { data::memory_limits().pixels = millions * 1'000'000; };
  return {
      Flag{"", "--max-sample", base::TakenNumber{take_sample}, "", "Memory in MiB that one sample's members and decoding may claim (default: 1024)", {1, kMaxOfFlag}},
      Flag{"", "--max-buffered", base::TakenNumber{take_readers}, "", "Memory in GiB that the windows of all zstd streams may take (default: 8)", {1, kMaxOfFlag}},
      Flag{"", "--max-pixels", base::TakenNumber{take_pixels}, "", "Pixels of an image at most, in millions (default: 100)", {1, kMaxOfFlag}},
  };
}

Flag where_row(std::vector<std::string>& conditions) {
  return {"", "--where", RepeatedText{&conditions}, "", "Only samples for which this holds, such as 'cls in 0,3' or 'json:split = train' (may be repeated)"};
}
// clang-format on

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
