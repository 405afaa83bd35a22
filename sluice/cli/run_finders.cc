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

// Makes a verb that finds a run again. `add_more` adds its flags, besides the run's name.
Verb finder(std::string name, std::string help, Find find,
            std::function<void(CLI::App&, FindFlags&)> add_more) {
  auto flags = std::make_shared<FindFlags>();
  return {.name = std::move(name),
          .help = std::move(help),
          .add_flags = [flags, add_more = std::move(add_more)](CLI::App& app) { add_more(app, *flags); },
          .run = [flags, find = std::move(find)] { return base::value_or_throw(find(*flags)); }};
}

void add_name(CLI::App& app, FindFlags& flags) {
  app.add_option("RUN", flags.name, "Name of the run or its beginning; default: the latest");
}

}  // namespace

CLI::Option* add_raw(CLI::App& app, bool& raw) {
  return app.add_flag(
      "--raw", raw,
      "Show what the workers write byte for byte; else only their colours, and other control characters "
      "visibly");
}

std::vector<Verb> run_finders() {
  return {finder(
              "ls", "List runs, the latest first", [](const FindFlags& f) { return pod::show_runs(f.json); },
              [](CLI::App& app, FindFlags& f) { app.add_flag("--json", f.json, "As one JSON array"); }),
          finder(
              "attach", "Show a run's output from now on; Ctrl-C ends the run",
              [](const FindFlags& f) { return pod::attach_run(f.name, f.raw); },
              [](CLI::App& app, FindFlags& f) {
                add_name(app, f);
                add_raw(app, f.raw);
              }),
          finder(
              "logs", "Print what the workers wrote",
              [](const FindFlags& f) { return pod::show_logs(f.name, f.worker, f.follow, f.raw); },
              [](CLI::App& app, FindFlags& f) {
                add_name(app, f);
                app.add_option("--worker", f.worker, "Print only this worker's output, without a prefix")
                    ->default_str("all, merged");
                app.add_flag("--follow", f.follow,
                             "Keep printing until the run ends; Ctrl-C does not stop the run");
                add_raw(app, f.raw);
              }),
          finder(
              "stop", "End a run: SIGINT first, SIGKILL in the end; twice kills at once",
              [](const FindFlags& f) { return pod::stop_run(f.name); }, add_name)};
}

}  // namespace sluice::cli
