#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/cli/data/common.h"
#include "sluice/data/shards/urls.h"
#include "sluice/data/tools/copy.h"

namespace sluice::cli {
namespace {

struct CpFlags {
  std::vector<std::string> places;  // SOURCE… TARGET
  data::CopyOptions options;
};

// Shows what was copied so far: on one line of a terminal, else on a new line now and then.
class CopyProgress {
 public:
  void show(std::int64_t files, std::int64_t total, std::uint64_t bytes) {
    if (clock_.seconds() - last_ < (terminal_ ? 0.1 : 10) && files < total) return;
    last_ = clock_.seconds();
    if (!terminal_ && files == total) return;
    const double rate = static_cast<double>(bytes) / std::max(clock_.seconds(), 1e-3);
    std::fprintf(stderr, "%s%s of %s, %s, %s/s%s", terminal_ ? "\r\033[K" : "", grouped(files).c_str(),
                 counted(total, "file").c_str(), size_text(bytes).c_str(),
                 size_text(static_cast<std::uint64_t>(rate)).c_str(), terminal_ ? "" : "\n");
    if (terminal_ && files == total) std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
  }

 private:
  const bool terminal_ = ::isatty(STDERR_FILENO) != 0;
  base::Stopwatch clock_;
  double last_ = 0;
};

base::Status copy(CpFlags& flags) {
  if (flags.places.size() < 2)
    return base::fail(Code::kInvalidArgument,
                      "expected what to copy and where to: sluice data cp SOURCE… TARGET");
  flags.options.to = flags.places.back();
  flags.options.from.clear();
  for (std::size_t i = 0; i + 1 < flags.places.size(); ++i) {
    SLUICE_TRY(const auto urls, data::expand_urls(flags.places[i]));
    flags.options.from.insert(flags.options.from.end(), urls.begin(), urls.end());
  }
  CopyProgress progress;
  flags.options.progress = [&](std::int64_t files, std::int64_t total, std::uint64_t bytes) {
    progress.show(files, total, bytes);
  };
  SLUICE_TRY(const auto report, data::copy_files(flags.options));
  std::printf("%s, %s: %s\n", counted(report.files, "file").c_str(), size_text(report.bytes).c_str(),
              flags.options.to.c_str());
  return {};
}

}  // namespace

Verb cp_verb() {
  auto flags = std::make_shared<CpFlags>();
  return {.name = "cp",
          .help = "Copy files to, from and between buckets",
          .footer =
              "SOURCE: paths, gs://, s3://, az:// and hf:// names with braces and globs, http(s)://, @file "
              "(a list). TARGET: a "
              "name, or a "
              "folder when there\n"
              "are several sources or it ends in a slash. Each file appears when it is whole; copies from "
              "and to a "
              "bucket are compared\n"
              "by their checksums.\n"
              "Example: sluice data cp 'shards/train-*.tar' gs://bucket/set/",
          .add_flags =
              [flags](CLI::App& app) {
                add_flags(
                    app,
                    {Flag{"", "SOURCE TARGET", Words{&flags->places, 2}, "", "Copy these to the last one"}
                         .required(),
                     allow_pipe_row(),
                     {"", "--overwrite", &flags->options.overwrite, "", "Replace what is there"},
                     Flag{"", "--workers", &flags->options.workers, "", "Files at a time"}.above_zero()});
              },
          .run = guarded("cp", [flags] { return copy(*flags); })};
}

}  // namespace sluice::cli
