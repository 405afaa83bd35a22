// sluice keep
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "sluice/base/clock.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/cli/cloud/keep_plan.h"
#include "sluice/cli/cloud/reach_flags.h"
#include "sluice/cli/run_verb.h"
#include "sluice/cli/verbs.h"
#include "sluice/provision/remote/kept_slice.h"

namespace sluice::cli {
namespace {

struct KeepFlags {
  TpuFlags tpu;
  std::string zones, type, runtime, ttl, owner;
  bool spot = false;
  provision::KeepLimits limits;
  double notice = 300;
  std::vector<std::string> words;
  bool dry_run = false;
};

// clang-format off
std::vector<Flag> what_rows(KeepFlags& f) {
  return {
      tpu_row(f.tpu),
      Flag{"", "RUN", Words{&f.words}, "", "After --: run, flags of `sluice run`, --, and the command"}
          .required(),
  };
}

// These come after the rows of the TPU's place.
std::vector<Flag> how_rows(KeepFlags& f) {
  return {
      Flag{"", "--dry-run", &f.dry_run, "", "Show what would be created, run and re-created, and when, and do nothing"},
      Flag{"", "--zones", &f.zones, "", "Re-create it in these zones: a,b or any; default: where it was"},
      Flag{"Making", "--type", &f.type, "", "Make it of this type if it is not there: v4-32"},
      Flag{"Making", "--runtime", &f.runtime, "", "Its runtime version; default: the generation's. Of tpu7x the machines' image"},
      Flag{"Making", "--spot", &f.spot, "", "Spot capacity"},
      Flag{"Making", "--ttl", &f.ttl, "", "Its end, at the latest: 3d, or a time"},
      Flag{"Limits", "--max-restarts", &f.limits.max_restarts, "", "Start the run again at most N times, for any reason"}
          .zero_or_more(),
      Flag{"Limits", "--max-cost", &f.limits.max_cost, "US$", "Save, delete the TPU and end when it has cost this much since keep began, at list prices"}
          .above_zero().shown("none"),
      Flag{"Limits", "--min-slices", &f.limits.min_slices, "", "When some of several slices are lost, continue with the others if there are at least N; default: create all again"}
          .above_zero().shown("all"),
      Flag{"Limits", "--save-time", &f.limits.save, "s", "From SIGTERM, at which workers save, to SIGKILL"}
          .above_zero(),
      Flag{"Limits", "--notice", &f.notice, "s", "Replace the TPU this long before maintenance begins"}
          .zero_or_more(),
      Flag{"Limits", "--patience", &f.limits.patience, "s", "Count a TPU as lost after this long in REPAIRING, RESTARTING or UNKNOWN"}
          .zero_or_more(),
      Flag{"Limits", "--poll", &f.limits.poll, "s", "Between two looks at the TPU"}
          .above_zero(),
  };
}
// clang-format on

// Returns the words after `run`: its flags and the command. Throws Usage for flags that keep decides itself.
std::vector<std::string> run_arguments(const std::vector<std::string>& words) {
  if (words.empty() || words.front() != "run")
    throw Usage("what is to be kept going? sluice keep NAME -- run FLAGS… -- COMMAND…");
  const auto end = std::find(words.begin(), words.end(), "--");
  if (end == words.end() || end + 1 == words.end())
    throw Usage("which command? sluice keep NAME -- run FLAGS… -- COMMAND…");
  for (auto word = words.begin(); word != end; ++word) {
    const std::string flag = word->substr(0, word->find('='));
    for (const char* own :
         {"--tpu", "--zone", "--project", "--hosts", "--processes", "--slices", "--use-slices", "--detach",
          "--dry-run", "--max-restarts", "--sbatch", "--jobset"})
      if (flag == own)
        throw Usage(base::str(own, " is not for a run that is kept: `sluice keep` decides it"));
  }
  return {words.begin() + 1, words.end()};
}

std::vector<std::string> zones_of(const std::string& text) {
  std::vector<std::string> zones;
  for (const std::string& zone : base::split(text, ','))
    if (!base::trim(zone).empty()) zones.emplace_back(base::trim(zone));
  return zones;
}

// Throws Usage for flags of a TPU that keep creates, if it creates none.
void check_making(const KeepFlags& flags) {
  if (!flags.type.empty()) return;
  for (const auto& [given, flag] :
       {std::pair{flags.spot, "--spot"}, std::pair{!flags.runtime.empty(), "--runtime"},
        std::pair{!flags.ttl.empty(), "--ttl"}})
    if (given)
      throw Usage(
          base::str(flag,
                    " is for a TPU that keep creates: give --type too. keep re-creates an existing TPU as it "
                    "was"));
}

// Returns the TPU to create if none exists; nullopt without --type.
std::optional<provision::SliceWish> wish_of(const KeepFlags& flags, double now) {
  if (flags.type.empty()) return std::nullopt;
  provision::SliceWish wish;
  wish.name = flags.tpu.name;
  wish.type = flags.type;
  wish.zones = zones_of(flags.zones.empty() ? flags.tpu.zone : flags.zones);
  if (wish.zones.empty()) throw Usage("--type: in which zones? --zones a,b or --zones any");
  wish.capacity = flags.spot ? provision::Capacity::kSpot : provision::Capacity::kOnDemand;
  wish.runtime = flags.runtime;
  wish.mark.environment = "tpu-" + flags.tpu.name;
  wish.mark.owner = provision::default_owner();
  wish.mark.created = now;
  if (!flags.ttl.empty())
    wish.mark.expires = value_or_usage(provision::parse_expiry(flags.ttl, now, "--ttl"));
  value_or_usage(provision::check_wish(wish, now));
  return wish;
}

// The project that a dry run shows if none is known.
constexpr char kSomeProject[] = "your-project";

// Runs --dry-run: asks the cloud, if it can, for what cannot be known otherwise.
int show(const KeepFlags& flags, const provision::KeptSliceOptions& options) {
  std::string not_asked, project = flags.tpu.project;
  if (project.empty()) {
    const auto found = google::default_project();
    if (!found) not_asked = found.error().what();
    project = found.value_or(kSomeProject);
  }
  WorkerSession session("keep", project, /*dry_run=*/true);
  provision::Cloud& cloud = session.cloud();
  if (not_asked.empty() && !base::value_or_throw(cloud.api->has_credentials())) not_asked = kNoCredentials;
  const bool asks = not_asked.empty();
  KeepPlan plan;
  plan.start = base::value_or_throw(provision::find_start(cloud, options, asks));
  plan.options = options;
  plan.limits = flags.limits;
  plan.not_asked = not_asked;
  plan.project = project;
  plan.now = cloud.now();
  if (asks && plan.start.wish && plan.start.wish->zones == std::vector<std::string>{"any"}) {
    auto zones = provision::zones_with(cloud, plan.start.wish->type, nullptr);
    if (!zones) throw_error(zones.error());
    plan.zones_of_any = std::move(*zones);
  }
  std::fputs(keep_plan_text(plan).c_str(), stdout);
  return 0;
}

int keep(const KeepFlags& flags) {
  provision::KeptSliceOptions options;
  options.arguments = run_arguments(flags.words);
  check_kept_run(flags.tpu.name, options.arguments);
  check_making(flags);
  options.command = {std::filesystem::read_symlink("/proc/self/exe").string(), "run"};
  options.name = flags.tpu.name;
  options.zone = flags.tpu.zone;
  options.zones = zones_of(flags.zones);
  value_or_usage(provision::check_zones(options.zones));
  options.notice_seconds = flags.notice;
  options.needs_price = flags.limits.max_cost > 0;
  options.min_slices = flags.limits.min_slices;
  options.wish = wish_of(flags, base::wall_seconds());
  if (flags.dry_run) return show(flags, options);
  WorkerSession session("keep", flags.tpu.project);
  const auto kept = base::value_or_throw(provision::KeptSlice::open(session.cloud(), std::move(options)));
  return provision::Keeper(*kept, flags.limits).to_end();
}

}  // namespace

Verb keep_verb() {
  auto flags = std::make_shared<KeepFlags>();
  return {.name = "keep",
          .help = "Keep a run going: make its TPU again when it is lost, and resume",
          .footer =
              "sluice keep NAME --zones any -- run --sync . -- ./build/train --logdir gs://… --resume\n"
              "When the TPU is preempted, unhealthy or near its maintenance, or the run fails: SIGTERM "
              "for the workers,\n"
              "which save; keep deletes and re-creates node and queue entry; the run starts again, "
              "with SLUICE_RESTART\n"
              "one higher. The command must resume by itself. Exit status: the run's; 1 at a limit; "
              "130, 143.",
          .add_flags =
              [flags](CLI::App& app) {
                add_flags(app, what_rows(*flags));
                add_flags(app, place_rows(flags->tpu));
                add_flags(app, how_rows(*flags));
              },
          .run = [flags] { return keep(*flags); }};
}

}  // namespace sluice::cli
