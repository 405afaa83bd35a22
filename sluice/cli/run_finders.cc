// sluice run ls | attach | logs | stop
#include <functional>
#include <memory>
#include <optional>

#include "sluice/cli/run_verb.h"
#include "sluice/pod/runs.h"

namespace sluice::cli {
namespace {

struct FindFlags {
  std::string name;
  std::optional<int> worker;
  bool follow = false, json = false, raw = false;
};

using Find = std::function<base::Result<int>(const FindFlags&)>;

// Makes a verb that finds a run again.
Verb finder(std::string name, std::string help, Find find,
            std::function<std::vector<Flag>(FindFlags&)> rows) {
  auto flags = std::make_shared<FindFlags>();
  return {.name = std::move(name),
          .help = std::move(help),
          .add_flags = [flags, rows = std::move(rows)](CLI::App& app) { add_flags(app, rows(*flags)); },
          .run = [flags, find = std::move(find)] { return base::value_or_throw(find(*flags)); }};
}

Flag name_row(FindFlags& flags) {
  return {"", "RUN", &flags.name, "", "Name of the run or its beginning; default: the latest"};
}

}  // namespace

Flag raw_row(bool& raw, const char* group) {
  return {group, "--raw", &raw, "",
          "Show what the workers write byte for byte; else only their colours, and other control characters "
          "visibly"};
}

Flag one_worker_row(std::optional<int>& worker) {
  return Flag{"", "--worker", &worker, "", "Print only this worker's output, without a prefix"}.shown(
      "all, merged");
}

Flag follow_row(bool& follow) {
  return {"", "--follow", &follow, "", "Keep printing until the run ends; Ctrl-C does not stop the run"};
}

std::vector<Verb> run_finders() {
  using Rows = std::vector<Flag>;
  return {finder(
              "ls", "List runs, the latest first", [](const FindFlags& f) { return pod::show_runs(f.json); },
              [](FindFlags& f) {
                return Rows{{"", "--json", &f.json, "", "As one JSON array"}};
              }),
          finder(
              "attach", "Show a run's output from now on; Ctrl-C ends the run",
              [](const FindFlags& f) { return pod::attach_run(f.name, f.raw); },
              [](FindFlags& f) {
                return Rows{name_row(f), raw_row(f.raw)};
              }),
          finder(
              "logs", "Print what the workers wrote",
              [](const FindFlags& f) { return pod::show_logs(f.name, f.worker, f.follow, f.raw); },
              [](FindFlags& f) {
                return Rows{name_row(f), one_worker_row(f.worker), follow_row(f.follow), raw_row(f.raw)};
              }),
          finder(
              "stop", "End a run: SIGINT first, SIGKILL in the end; twice kills at once",
              [](const FindFlags& f) { return pod::stop_run(f.name); },
              [](FindFlags& f) { return Rows{name_row(f)}; })};
}

}  // namespace sluice::cli
