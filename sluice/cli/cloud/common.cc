#include "sluice/cli/cloud/common.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>

#include "sluice/base/formats/json_text.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/table.h"
#include "sluice/cli/cloud/reach_flags.h"
#include "sluice/cli/verb.h"
#include "sluice/provision/price.h"

namespace sluice::cli {
namespace {

using provision::Thing;

std::atomic<bool> g_interrupted{false};

void on_signal(int signal) {
  g_interrupted = true;
  std::signal(signal, SIG_DFL);  // a second signal ends the program at once
}

std::string short_time(double seconds) {
  return seconds > 0 ? google::time_of_seconds(seconds).substr(0, 16) + "Z" : "-";
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

}  // namespace

Flag project_row(CloudFlags& flags, bool several) {
  return {"", "--project", TextList{&flags.projects}, "",
          several ? "Projects to look in, p1,p2; default: $SLUICE_GOOGLE_PROJECT, else gcloud's"
                  : "The project; default: $SLUICE_GOOGLE_PROJECT, else gcloud's"};
}
Flag zone_row(CloudFlags& flags) {
  return {"", "--zone", &flags.zone, "", "Its zone; default: it is looked for in all"};
}
Flag json_row(CloudFlags& flags) { return {"", "--json", &flags.json, "", "Print JSON"}; }
Flag dry_run_row(CloudFlags& flags) {
  return {"", "--dry-run", &flags.dry_run, "",
          "Print the requests that would change something, and send none of them"};
}
Flag yes_row(CloudFlags& flags) { return {"", "--yes", &flags.yes, "", "Do not ask"}; }

CloudSession::CloudSession(const CloudFlags& flags) {
  google::ApiOptions options = base::value_or_throw(google::api_options_of_environment());
  options.dry_run = flags.dry_run;
  options.cancelled = &g_interrupted;
  std::vector<std::string> projects;
  for (const std::string& project : flags.projects) projects.push_back(project_or_default(project));
  if (projects.empty()) projects.push_back(project_or_default(""));
  api_ = std::make_unique<google::Api>(options);
  for (const std::string& project : projects) {
    clouds_.push_back(provision::make_cloud(*api_, project));
    clouds_.back().say = [](const std::string& line) {
      std::fprintf(stderr, "%s\n", base::printable(line).c_str());
    };
  }
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

CloudSession::~CloudSession() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool interrupted() { return g_interrupted; }

void throw_failure(const google::Failure& failure) { throw_error(failure.code(), failure.what()); }

int guard_interrupt(const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    if (!interrupted()) throw;
    std::fprintf(stderr, "sluice: interrupted: %s. What was begun continues: sluice tpu list\n",
                 base::printable(error.what()).c_str());
    return 130;
  }
}

bool confirmed(const CloudFlags& flags, const std::string& question) {
  if (flags.yes || flags.dry_run) return true;
  if (isatty(STDIN_FILENO) == 0) throw Usage(question + " Nothing was done: say --yes");
  std::fprintf(stderr, "%s [y/N] ", question.c_str());
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

bool confirmed_on_terminal(const CloudFlags& flags, const std::string& question) {
  return isatty(STDIN_FILENO) == 0 || confirmed(flags, question);
}

google::Json json_of(const Thing& thing) {
  google::Json json = {
      {"kind", provision::kind_word(thing.kind)},
      {"name", thing.name},
      {"project", thing.project},
      {"place", thing.place},
      {"type", thing.type},
      {"capacity", thing.capacity},
      {"state", thing.state},
      {"created", thing.created > 0 ? google::Json(google::time_of_seconds(thing.created)) : google::Json()},
      {"dollars_an_hour", thing.hourly ? google::Json(*thing.hourly) : google::Json()},
      {"dollars_since_made", thing.spent ? google::Json(*thing.spent) : google::Json()},
      {"dollars_are_upper_bound", thing.upper_bound},
      {"prices", provision::price_date()},
      {"ours", thing.mark.has_value()}};
  if (thing.mark) {
    json["env"] = thing.mark->environment;
    json["owner"] = thing.mark->owner;
    if (thing.mark->expires > 0) json["expires"] = google::time_of_seconds(thing.mark->expires);
  }
  if (thing.kind != provision::ThingKind::kTpu) return json;
  json["slices"] = thing.slice.slices;
  json["queued"] = thing.slice.queue.has_value();
  json["hosts"] = google::Json::array();
  for (const google::Endpoint& host : thing.slice.hosts())
    json["hosts"].push_back({{"internal_ip", host.internal_ip}, {"external_ip", host.external_ip}});
  for (const google::Node& node : thing.slice.nodes)
    if (!node.health.empty()) json["health"].push_back({{"node", node.id}, {"health", node.health}});
  return json;
}

std::vector<std::vector<std::string>> rows_of(const std::vector<Thing>& things, bool kinds) {
  std::vector<std::vector<std::string>> rows = {{"NAME", "TYPE", "CAPACITY", "STATE", "PLACE", "PROJECT",
                                                 "ENV", "OWNER", "EXPIRES", "$/H", "$ SO FAR"}};
  if (kinds) rows[0].insert(rows[0].begin(), "KIND");
  for (const Thing& thing : things) {
    const provision::Mark mark = thing.mark.value_or(provision::Mark{"(not ours)", "", 0, 0});
    std::vector<std::string> row = {
        thing.name,
        or_dash(thing.type),
        or_dash(thing.capacity),
        or_dash(thing.state),
        or_dash(thing.place),
        thing.project,
        mark.environment,
        or_dash(mark.owner),
        short_time(mark.expires),
        provision::dollars(thing.hourly),
        (thing.upper_bound && thing.spent.value_or(0) > 0 ? "<= " : "") + provision::dollars(thing.spent)};
    if (kinds) row.insert(row.begin(), provision::kind_word(thing.kind));
    rows.push_back(std::move(row));
  }
  return rows;
}

void print_line(const std::string& line) { std::printf("%s\n", base::printable(line).c_str()); }

void print_document(const google::Json& json) { std::printf("%s\n", base::json_text(json).c_str()); }

int say_unreachable(const std::vector<std::string>& unreachable) {
  for (const std::string& place : unreachable)
    std::fprintf(stderr, "sluice: did not answer, so that something there may be missing from the list: %s\n",
                 base::printable(place).c_str());
  return unreachable.empty() ? 0 : 1;
}

void say_not_enabled(const std::vector<std::string>& not_enabled) {
  for (const std::string& service : not_enabled)
    std::fprintf(stderr, "sluice: nothing is listed of a service that the project has not enabled: %s\n",
                 base::printable(service).c_str());
}

int say_gaps(const provision::Gaps& gaps) {
  say_not_enabled(gaps.not_enabled);
  return say_unreachable(gaps.unreachable);
}

void say_price_note() {
  std::printf("List prices in US dollars (%s), not the bill.\n", provision::price_date().c_str());
}

}  // namespace sluice::cli
