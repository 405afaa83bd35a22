// sluice tpu ps | kill | guard
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "sluice/base/clock.h"
#include "sluice/base/environment.h"
#include "sluice/base/formats/json_text.h"
#include "sluice/base/text/printable.h"
#include "sluice/cli/cloud/chip_holders.h"
#include "sluice/cli/cloud/reach_flags.h"
#include "sluice/cli/cloud/tpu_remote_verbs.h"
#include "sluice/provision/guard.h"
#include "sluice/provision/remote/shell.h"

namespace sluice::cli {
namespace {

constexpr double kGuardSeconds = 60;

HolderHosts hosts_of_workers(const ChosenWorkers& chosen, const TpuFlags& flags, const char* verb) {
  HolderHosts hosts{verb, "worker", job_of(chosen, flags), {}};
  for (const int number : chosen.numbers) hosts.labels.push_back(std::to_string(number));
  return hosts;
}

nlohmann::json holder_json(const provision::Holder& holder) {
  return {{"process", holder.process}, {"user", holder.user},       {"own", holder.own},
          {"started", holder.started}, {"devices", holder.devices}, {"command", holder.command}};
}

int run_ps(const TpuFlags& flags, bool as_json) {
  WorkerSession session("tpu ps", flags.project);
  const ChosenWorkers chosen = reach_workers(session.cloud(), flags);
  const HolderHosts hosts = hosts_of_workers(chosen, flags, "tpu ps");
  const auto uses = look_at_holders(hosts);
  nlohmann::json all = nlohmann::json::array();
  if (!as_json) print_holder_header(hosts);
  bool complete = true, sees_all = true;
  for (size_t i = 0; i < uses.size(); ++i) {
    const int worker = chosen.numbers[i];
    nlohmann::json entry = {{"worker", worker}, {"answered", uses[i].has_value()}};
    complete &= uses[i].has_value();
    if (uses[i]) {
      sees_all &= uses[i]->sees_all;
      entry["holders"] = entry["runs"] = nlohmann::json::array();
      for (const auto& holder : uses[i]->holders) {
        entry["holders"].push_back(holder_json(holder));
        if (!as_json) print_holder(hosts.labels[i], holder);
      }
      for (const auto& run : uses[i]->workers) {
        entry["runs"].push_back({{"run", run.run}, {"place", run.place}});
        if (!as_json)
          std::printf("%-6d %8s %-10s %-9s %-22s run %s, %s\n", worker, "", "", "", "",
                      base::printable(run.run).c_str(), base::printable(run.place).c_str());
      }
    }
    all.push_back(std::move(entry));
  }
  if (as_json) std::printf("%s\n", base::json_text(all).c_str());
  if (!sees_all)
    std::fprintf(stderr, "sluice tpu ps: no sudo there: processes of other users are not seen\n");
  return complete ? 0 : 1;
}

Verb ps_verb() {
  auto flags = std::make_shared<TpuFlags>();
  auto as_json = std::make_shared<bool>(false);
  return {.name = "ps",
          .help = "Which processes hold the chips of each worker, and which runs are there",
          .add_flags =
              [flags, as_json](CLI::App& app) {
                add_flags(app, {tpu_row(*flags), {"", "--json", as_json.get(), "", "As one JSON array"}});
                add_reach_flags(app, *flags, "all");
              },
          .run = [flags, as_json] { return run_ps(*flags, *as_json); }};
}

struct KillFlags {
  bool yes = false;
  int grace = 7;
};

int run_kill(const TpuFlags& flags, const KillFlags& kill) {
  WorkerSession session("tpu kill", flags.project);
  const ChosenWorkers chosen = reach_workers(session.cloud(), flags);
  return end_own_holders(
      hosts_of_workers(chosen, flags, "tpu kill"), [&](size_t) { return kill.yes; }, kill.grace);
}

Verb kill_verb() {
  auto flags = std::make_shared<TpuFlags>();
  auto kill = std::make_shared<KillFlags>();
  return {.name = "kill",
          .help = "End your own processes that hold chips, after showing them",
          .add_flags =
              [flags, kill](CLI::App& app) {
                add_flags(app, {tpu_row(*flags),
                                {"", "--yes", &kill->yes, "", "End them; without it they are only shown"},
                                Flag{"", "--grace", &kill->grace, "s",
                                     "Wait this long from SIGINT to SIGKILL, with SIGTERM in between"}
                                    .above_zero()});
                add_reach_flags(app, *flags, "all");
              },
          .run = [flags, kill] { return run_kill(*flags, *kill); }};
}

struct GuardFlags {
  std::string ttl, idle;
  bool stop = false;
};

provision::GuardSettings guard_settings(const provision::Slice& slice, const GuardFlags& guard) {
  if (slice.compute)
    throw_error(Code::kInvalidArgument,
                base::str("a limit of `sluice tpu guard` holds for nodes of the Cloud TPU API, not for ",
                          slice.type, ": make it with --ttl, which Compute Engine holds"));
  provision::GuardSettings settings;
  settings.node = slice.nodes.front().name();
  if (slice.queue) settings.queued = slice.queue->name();
  if (!guard.ttl.empty())
    settings.deadline = static_cast<int64_t>(
        value_or_usage(provision::parse_expiry(guard.ttl, base::wall_seconds(), "--ttl")));
  if (!guard.idle.empty())
    settings.idle = static_cast<int64_t>(value_or_usage(base::parse_span(guard.idle, "--idle")));
  settings.endpoint = base::environment("SLUICE_GOOGLE_ENDPOINT").value_or("");
  if (!settings.endpoint.empty()) {
    settings.metadata_host = base::environment("GCE_METADATA_HOST").value_or("");
    settings.speed = std::stoi(base::environment("SLUICE_TEST_GUARD_SPEED").value_or("1"));
  }
  return settings;
}

int run_guard(TpuFlags& flags, const GuardFlags& guard) {
  if (guard.stop == !(guard.ttl.empty() && guard.idle.empty()))
    throw Usage("sluice tpu guard takes --ttl, --idle or both; or --stop");
  flags.worker = "0";
  WorkerSession session("tpu guard", flags.project);
  const ChosenWorkers chosen = reach_workers(session.cloud(), flags);
  const auto settings = guard_settings(chosen.reached.slice, guard);
  const auto answers = provision::run_scripts(
      job_of(chosen, flags), provision::guard_script(settings, guard.stop ? "stop" : "start"), kGuardSeconds);
  if (answers.front().unreachable) throw_error(Code::kUnavailable, answers.front().messages);
  if (guard.stop) return answers.front().status == 0 ? 0 : 1;
  const std::string warning = base::value_or_throw(provision::read_guard_answer(answers.front().messages));
  if (warning.empty()) return 0;
  std::fprintf(stderr, "sluice tpu guard: %s\n", base::printable(warning).c_str());
  return 1;
}

Verb guard_verb() {
  auto flags = std::make_shared<TpuFlags>();
  auto guard = std::make_shared<GuardFlags>();
  return {
      .name = "guard",
      .help = "Delete the TPU when its time is over or it is idle, without any client",
      .footer =
          "A timer on worker 0 deletes it with the TPU's own service account, which needs the permission\n"
          "tpu.nodes.delete. Idle: no process holds a chip of worker 0, and no worker of `sluice run` is "
          "there.",
      .add_flags =
          [flags, guard](CLI::App& app) {
            add_flags(app, {tpu_row(*flags),
                            {"", "--ttl", &guard->ttl, "",
                             "From now on, 8h, or until a time, 2026-11-26T08:00:00Z"},
                            {"", "--idle", &guard->idle, "",
                             "Delete it when it was not used for this long, such as 30m"},
                            {"", "--stop", &guard->stop, "", "End the timer"}});
            add_flags(app, place_rows(*flags));
            add_flags(app, ssh_rows(*flags));
          },
      .run = [flags, guard] { return run_guard(*flags, *guard); }};
}

}  // namespace

std::vector<Verb> tpu_process_verbs() { return {ps_verb(), kill_verb(), guard_verb()}; }

}  // namespace sluice::cli
