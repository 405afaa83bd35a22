// sluice profile
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <memory>

#include "sluice/base/clock.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/strings.h"
#include "sluice/cli/monitor/profile_capture.h"
#include "sluice/cli/verbs.h"
#include "sluice/profile/capture.h"

namespace sluice::cli {
namespace {

struct ProfileFlags {
  std::string addresses, run, steps = "3", duration, out = "profile";
  int64_t start_ns = 0;
};

// Reads "3" or "1240:1243".
void read_steps(const std::string& text, ProfileWish& wish) {
  const size_t colon = text.find(':');
  const auto first = base::number_of<int64_t>(text.substr(0, colon));
  if (colon == std::string::npos) {
    if (!first || *first < 1)
      throw Usage("--steps " + text +
                  ": expected how many, such as 3, or which, such as 1240:1243 for 1240, "
                  "1241 and 1242");
    wish.steps = *first;
    return;
  }
  const auto end = base::number_of<int64_t>(text.substr(colon + 1));
  if (!first || !end || *first < 1 || *end <= *first)
    throw Usage("--steps " + text +
                ": expected FIRST:END with 1 <= FIRST < END, such as 1240:1243 for 1240, "
                "1241 and 1242");
  wish.range = {*first, *end};
}

// Reads "2s", "500ms", "1m", or "2", which is seconds.
int64_t milliseconds_of(const std::string& text) {
  double unit = 1000;
  std::string number = text;
  for (const auto& [name, factor] : {std::pair("ms", 1.0), std::pair("s", 1000.0), std::pair("m", 60'000.0)})
    if (base::ends_with(text, name)) {
      unit = factor;
      number = text.substr(0, text.size() - std::string(name).size());
      break;
    }
  const auto value = base::number_of<double>(number);
  if (!value || !(*value * unit >= 1) || *value * unit > 600'000)
    throw Usage("--duration " + text + ": expected 1ms to 10m, such as 500ms, 2s or 1m");
  return std::llround(*value * unit);
}

ProfileWish wish_of(const ProfileFlags& flags) {
  ProfileWish wish;
  if (flags.duration.empty()) {
    read_steps(flags.steps, wish);
  } else {
    wish.duration_ms = milliseconds_of(flags.duration);
    wish.start_ns = flags.start_ns;
  }
  return wish;
}

int run_profile(const ProfileFlags& flags) {
  const ProfileWish wish = wish_of(flags);
  if (flags.addresses.empty() == flags.run.empty())
    throw Usage("say whom: ADDRESS[,ADDRESS…] of a training with --profiler-port, or --run NAME");
  auto targets = flags.run.empty() ? ProfileTargets::at(flags.addresses) : ProfileTargets::of_run(flags.run);
  const bool pipes = flags.out == "-", terminal = !pipes && ::isatty(STDERR_FILENO) == 1;
  const auto say = [&](const std::string& line) {
    if (!pipes) std::fprintf(stderr, "%s%s\n", terminal ? "\r\x1b[K" : "", base::printable(line).c_str());
  };
  const auto progress = [&](const std::string& line) {
    if (terminal) std::fprintf(stderr, "\r\x1b[K%s", base::printable(line).c_str());
  };
  const auto captured = capture_profile(targets, wish, say, progress);
  if (terminal) std::fprintf(stderr, "\r\x1b[K");
  if (!captured && pipes && captured.error().code() == Code::kFailedPrecondition) {
    std::fprintf(stderr, "%s\n", captured.error().what());
    return kBehind;
  }
  if (!captured) throw_error(captured.error());
  const auto& files = captured->files;
  if (pipes) {
    const std::string lines = lines_of(files);
    const bool whole = std::fwrite(lines.data(), 1, lines.size(), stdout) == lines.size();
    return whole && std::fflush(stdout) == 0 ? 0 : 1;
  }
  const std::string folder = profile::run_folder(flags.out, profile::run_name(base::wall_seconds()));
  for (const auto& [name, bytes] : files)
    base::value_or_throw(profile::save(bytes, base::str(folder, "/", name)));
  const size_t count = targets.list().size();
  std::printf(
      "profile of %s, %zu process%s: %s\n"
      "tensorboard --logdir %s shows it, and the .txt file is its summary\n",
      captured->what.c_str(), count, count == 1 ? "" : "es", folder.c_str(), flags.out.c_str());
  return 0;
}

}  // namespace

Verb profile_verb() {
  auto flags = std::make_shared<ProfileFlags>();
  return {
      .name = "profile",
      .help = "Take a profile of a training that runs",
      .footer =
          "sluice profile 9012                    3 steps of the training with --profiler-port 9012\n"
          "sluice profile a:9012,b:9012           the same steps of several processes\n"
          "sluice profile --run NAME              of all processes of a run of `sluice run`\n"
          "sluice profile 9012 --duration 2s      so long instead\n"
          "sluice profile 9012 --steps 1240:1243  these steps",
      .add_flags =
          [flags](CLI::App& app) {
            app.add_option(
                   "ADDRESS", flags->addresses,
                   "Where the processes take profiles: PORT of this machine, or HOST:PORT, with commas")
                ->default_str("");
            app.add_option("--run", flags->run, "A run of `sluice run`: its name or the beginning of it");
            auto* steps =
                app.add_option("--steps", flags->steps, "How many of the steps to come, or FIRST:END");
            app.add_option("--duration", flags->duration, "So long instead: 500ms, 2s, 1m")->excludes(steps);
            app.add_option("--out", flags->out,
                           "The folder, also of a bucket: files go to plugins/profile/TIME in it");
            // For a `sluice profile` that another one asks; it also gets --out -.
            app.add_option("--start-ns", flags->start_ns)->group("");
          },
      .run = [flags] { return run_profile(*flags); }};
}

}  // namespace sluice::cli
