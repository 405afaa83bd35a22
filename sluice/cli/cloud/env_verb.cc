// sluice env
#include <cstdio>
#include <memory>

#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/table.h"
#include "sluice/cli/cloud/common.h"
#include "sluice/cli/cloud/reach_flags.h"
#include "sluice/cli/verbs.h"
#include "sluice/provision/environment/checks.h"
#include "sluice/provision/environment/execute.h"
#include "sluice/provision/environment/import.h"
#include "sluice/provision/environment/notices.h"
#include "sluice/provision/price.h"

namespace sluice::cli {
namespace {

using base::str;
using provision::Act;
using provision::Piece;
using provision::Plan;
using provision::PlanOptions;
using provision::Settings;
using provision::Step;
using provision::Survey;

struct EnvFlags {
  CloudFlags cloud;
  std::string file = provision::kSettingsFile;
  std::string name, owner;  // for destroy and show without a file
  std::vector<std::string> only, keep, allowed_scripts;
  bool force = false;
  // The flags of init and import.
  std::string zone = "us-central1-a", type = "v5litepod-8", values, out = provision::kSettingsFile;
};

// The project that init writes if it knows none.
constexpr char kNoProject[] = "YOUR-PROJECT";

// Reads the file. The project is the flag's, else the file's, else the machine's default one.
Settings read(EnvFlags& flags, const provision::ScriptRules& rules) {
  Settings settings = value_or_usage(provision::read_settings(flags.file, rules));
  if (!flags.cloud.projects.empty()) settings.project = flags.cloud.projects.front();
  if (settings.project.empty()) settings.project = base::value_or_throw(google::default_project());
  if (settings.project == kNoProject)
    throw Usage(str(flags.file, ": env.project is still ", kNoProject,
                    ": write your project there, or give --project"));
  flags.cloud.projects = {settings.project};
  return settings;
}

// Returns what destroy and show need, from the file or from --name.
Settings read_or_name(EnvFlags& flags) {
  if (flags.name.empty()) return read(flags, {.read = false, .allowed = {}});
  Settings settings;
  settings.name = flags.name;
  settings.owner = flags.owner.empty() ? provision::default_owner() : provision::label_value(flags.owner);
  if (flags.cloud.projects.empty()) flags.cloud.projects = {base::value_or_throw(google::default_project())};
  settings.project = flags.cloud.projects.front();
  return settings;
}

// Returns the options without the time, which the cloud reports.
PlanOptions options_of(const EnvFlags& flags, PlanOptions::Verb verb) {
  PlanOptions options;
  options.verb = verb;
  options.only = value_or_usage(provision::parts_of_words(flags.only, "--only"));
  options.keep = value_or_usage(provision::parts_of_words(flags.keep, "--keep"));
  return options;
}

google::Json number_or_null(const std::optional<double>& number) {
  return number ? google::Json(*number) : google::Json();
}

google::Json plan_json(const std::string& name, const Plan& plan, const std::vector<std::string>& warnings,
                       const std::vector<std::string>& notices, const Survey& survey) {
  google::Json document = {
      {"env", name},
      {"steps", google::Json::array()},
      {"problems", plan.problems},
      {"warnings", warnings},
      {"notices", notices},
      {"dollars_an_hour", number_or_null(plan.hourly)},
      {"dollars_to_end", number_or_null(plan.total)},
      {"expires",
       plan.mark.expires > 0 ? google::Json(google::time_of_seconds(plan.mark.expires)) : google::Json()},
      {"prices", provision::price_date()},
      {"unreachable", survey.gaps.unreachable}};
  for (const Step& step : plan.steps)
    document["steps"].push_back({{"act", provision::act_name(step.act)},
                                 {"part", provision::part_name(step.part)},
                                 {"name", step.name},
                                 {"place", step.zone},
                                 {"why", step.why},
                                 {"dollars_an_hour", number_or_null(step.hourly)}});
  return document;
}

void print_plan(const Plan& plan) {
  std::vector<std::vector<std::string>> rows = {{"", "PART", "NAME", "PLACE", "$/H", "WHY"}};
  for (const Step& step : plan.steps)
    rows.push_back({provision::act_name(step.act), provision::part_name(step.part), step.name,
                    step.zone.empty() ? "-" : step.zone, provision::dollars(step.hourly),
                    step.why.empty() ? "-" : step.why});
  base::print_table(rows);
}

void print_costs(const Plan& plan) {
  std::printf("It will cost $%s an hour", provision::dollars(plan.hourly).c_str());
  if (plan.total)
    std::printf(", $%s until %s", provision::dollars(plan.total).c_str(),
                google::time_of_seconds(plan.mark.expires).c_str());
  std::printf(", and what the bucket holds.%s ",
              plan.mark.expires > 0 ? "" : " There is no env.ttl: nothing ends it.");
  say_price_note();
}

void say_all(const char* what, const std::vector<std::string>& lines) {
  for (const std::string& line : lines)
    std::fprintf(stderr, "sluice: %s%s\n", what, base::printable(line).c_str());
}

// Adds a problem for each zone of the environment that does not answer: what exists there is unknown, so
// nothing is created.
void add_unreachable(const Settings& settings, const Survey& survey, Plan& plan) {
  for (const std::string& zone : survey.gaps.unreachable)
    for (const std::string& wanted : settings.zones)
      if (zone == wanted)
        plan.problems.push_back(str("the zone ", zone,
                                    " does not answer, so that what is there is not known: "
                                    "try again later, or use another zone"));
}

// Throws for a plan that is too expensive, before any request is sent.
void refuse_early(const Settings& settings, const PlanOptions& options) {
  const Plan plan = provision::plan_changes(settings, Survey{}, options);
  if (!plan.problems.empty()) throw_error(Code::kFailedPrecondition, plan.problems.front());
}

int plan_or_do(EnvFlags& flags, PlanOptions::Verb verb, bool only_plan) {
  const Settings settings = read(flags, {.read = true, .allowed = flags.allowed_scripts});
  PlanOptions options = options_of(flags, verb);
  CloudSession session(flags.cloud);
  provision::Cloud& cloud = session.cloud();
  options.now = cloud.now();
  if (google::seconds_of_time(settings.ttl) > 0)
    value_or_usage(provision::parse_expiry(settings.ttl, options.now, "env.ttl"));
  if (settings.max_cost > 0 && !only_plan) refuse_early(settings, options);
  const bool asks = !(only_plan || flags.cloud.dry_run) || base::value_or_throw(cloud.api->has_credentials());
  const Survey survey = asks ? value_or_fail(provision::survey(cloud)) : Survey{};
  Plan plan = provision::plan_changes(settings, survey, options);
  add_unreachable(settings, survey, plan);
  std::vector<std::string> warnings;
  if (!asks) {
    warnings.push_back(
        str(kNoCredentials,
            ", so Google Cloud was not asked: these are the steps for a new project; services, "
            "permissions, quotas and names are not checked"));
  } else if (plan.problems.empty()) {
    auto found = value_or_fail(provision::check_project(cloud, settings, survey, plan));
    plan.problems.insert(plan.problems.end(), found.problems.begin(), found.problems.end());
    warnings = found.warnings;
  }
  const std::vector<std::string> told = provision::notices(settings, plan);
  if (flags.cloud.json) {
    google::Json document = plan_json(settings.name, plan, warnings, told, survey);
    document["asked"] = asks;
    print_document(document);
  } else if (!flags.cloud.dry_run) {
    print_plan(plan);
    print_costs(plan);
  }
  std::fflush(stdout);
  say_all("", plan.problems);
  say_all("note: ", told);
  say_all("note: ", warnings);
  if (!plan.problems.empty()) return 1;
  if (only_plan || !plan.changes()) return 0;
  std::vector<Piece> going;
  for (const Step& step : plan.steps)
    if (step.act == Act::kDelete && step.part != provision::Part::kPrepare) going.push_back(*step.piece);
  if (const auto runs = provision::active_runs(going); !runs.empty() && !flags.force)
    throw_error(Code::kFailedPrecondition,
                str("the run ", base::join(runs, ", "),
                    " is active on what would be deleted: sluice run stop ", runs.front(), ", or --force"));
  if (going.empty() ? !confirmed_on_terminal(flags.cloud, "Go on?")
                    : !confirmed(flags.cloud, str(going.size(), " of these are deleted. Go on?")))
    return 1;
  value_or_fail(provision::execute(cloud, settings, plan));
  if (flags.cloud.dry_run) return 0;
  const bool all = std::none_of(plan.steps.begin(), plan.steps.end(),
                                [](const Step& step) { return step.act == Act::kDiffers; });
  cloud.say(str("the environment ", settings.name, " is as ", flags.file, " says",
                all ? "" : ", but for what differs: sluice env update changes that"));
  if (settings.idle > 0 && settings.tpu)
    cloud.say(str("worker 0 ends the TPU when it is idle for ", settings.idle,
                  " s, if its service account may: sluice tpu guard ", provision::tpu_name(settings.name),
                  " --idle ", settings.idle, " says so"));
  return 0;
}

int destroy(EnvFlags& flags) {
  const Settings settings = read_or_name(flags);
  PlanOptions options = options_of(flags, PlanOptions::kDestroy);
  CloudSession session(flags.cloud);
  provision::Cloud& cloud = session.cloud();
  options.now = cloud.now();
  Survey survey = value_or_fail(provision::survey(cloud));
  value_or_fail(provision::look_into_buckets(cloud, settings.name, survey));
  const Plan plan = provision::plan_destroy(settings.name, settings.owner, survey, options);
  if (flags.cloud.json) {
    print_document(plan_json(settings.name, plan, {}, {}, survey));
  } else if (!flags.cloud.dry_run && !plan.steps.empty()) {
    print_plan(plan);
  }
  std::fflush(stdout);
  say_not_enabled(survey.gaps.not_enabled);
  say_all("", plan.problems);
  if (!plan.problems.empty()) return 1;
  if (plan.steps.empty())
    cloud.say(str("the environment ", settings.name, " does not exist in ", settings.project));
  if (!plan.changes()) return say_unreachable(survey.gaps.unreachable);
  std::vector<Piece> going;
  for (const Step& step : plan.steps)
    if (step.act == Act::kDelete) going.push_back(*step.piece);
  if (const auto runs = provision::active_runs(going); !runs.empty() && !flags.force)
    throw_error(Code::kFailedPrecondition,
                str("the run ", base::join(runs, ", "), " is active there: sluice run stop ", runs.front(),
                    ", or --force"));
  if (!confirmed(flags.cloud, str(going.size(), " of these are deleted, with what is in them. Go on?")))
    return 1;
  value_or_fail(provision::execute(cloud, settings, plan));
  for (const Step& step : plan.steps)
    if (step.act == Act::kKeep)
      cloud.say(str("stays: ", provision::part_name(step.part), " ", step.name, ", $",
                    provision::dollars(step.hourly), " an hour (", step.why, ")"));
  return say_unreachable(survey.gaps.unreachable);
}

google::Json piece_json(const Piece& piece) {
  google::Json json = {
      {"part", provision::part_name(piece.part)},
      {"name", piece.name},
      {"place", piece.zone},
      {"state", piece.state},
      {"type", piece.type},
      {"address", piece.address},
      {"created", piece.created > 0 ? google::Json(google::time_of_seconds(piece.created)) : google::Json()},
      {"dollars_an_hour", number_or_null(piece.hourly)}};
  if (piece.size_gb > 0) json["size_gb"] = piece.size_gb;
  if (piece.mark && piece.mark->expires > 0) json["expires"] = google::time_of_seconds(piece.mark->expires);
  if (!piece.slice) return json;
  json["hosts"] = google::Json::array();
  for (const google::Endpoint& host : piece.slice->hosts())
    json["hosts"].push_back({{"internal_ip", host.internal_ip}, {"external_ip", host.external_ip}});
  return json;
}

double hourly_of(const std::vector<Piece>& pieces, int& unknown) {
  double sum = 0;
  for (const Piece& piece : pieces) {
    sum += piece.hourly.value_or(0);
    if (!piece.hourly && piece.part != provision::Part::kBucket) ++unknown;
  }
  return sum;
}

int show(EnvFlags& flags) {
  const Settings settings = read_or_name(flags);
  CloudSession session(flags.cloud);
  const Survey survey = value_or_fail(provision::survey(session.cloud()));
  const std::vector<Piece> pieces = survey.of(settings.name);
  int unknown = 0;
  const double hourly = hourly_of(pieces, unknown);
  if (flags.cloud.json) {
    google::Json document = {{"env", settings.name},
                             {"project", settings.project},
                             {"dollars_an_hour", hourly},
                             {"without_price", unknown},
                             {"prices", provision::price_date()},
                             {"pieces", google::Json::array()},
                             {"runs", provision::active_runs(pieces)},
                             {"unreachable", survey.gaps.unreachable},
                             {"not_enabled", survey.gaps.not_enabled}};
    for (const Piece& piece : pieces) document["pieces"].push_back(piece_json(piece));
    print_document(document);
    return say_unreachable(survey.gaps.unreachable);
  }
  std::vector<std::vector<std::string>> rows = {{"PART", "NAME", "STATE", "TYPE", "PLACE", "ADDRESS", "$/H"}};
  for (const Piece& piece : pieces)
    rows.push_back({provision::part_name(piece.part), piece.name, piece.state.empty() ? "-" : piece.state,
                    piece.type.empty() ? "-" : piece.type, piece.zone.empty() ? "-" : piece.zone,
                    piece.address.empty() ? "-" : piece.address, provision::dollars(piece.hourly)});
  if (pieces.empty()) {
    std::printf("The environment %s does not exist in %s.\n", settings.name.c_str(),
                settings.project.c_str());
  } else {
    base::print_table(rows);
    std::printf("$%s an hour. ", provision::dollars(hourly).c_str());
    say_price_note();
  }
  std::fflush(stdout);
  return say_gaps(survey.gaps);
}

int list(EnvFlags& flags) {
  CloudSession session(flags.cloud);
  std::vector<std::vector<std::string>> rows = {
      {"ENV", "PROJECT", "OWNER", "PIECES", "TPU", "EXPIRES", "$/H"}};
  google::Json document = {{"environments", google::Json::array()}, {"prices", provision::price_date()}};
  provision::Gaps gaps;
  for (provision::Cloud& cloud : session.clouds()) {
    const Survey survey = value_or_fail(provision::survey(cloud));
    gaps.add(survey.gaps);
    for (const std::string& name : survey.environments()) {
      const std::vector<Piece> pieces = survey.of(name);
      int unknown = 0;
      const double hourly = hourly_of(pieces, unknown);
      std::string tpu, owner;
      double expires = 0;
      for (const Piece& piece : pieces) {
        if (piece.part == provision::Part::kTpu)
          tpu += str(tpu.empty() ? "" : ", ", piece.type, " ", piece.state);
        if (owner.empty()) owner = piece.mark->owner;
        expires = std::max(expires, piece.mark->expires);
      }
      const std::string end = expires > 0 ? google::time_of_seconds(expires) : "-";
      rows.push_back({name, cloud.project, owner, str(pieces.size()), tpu.empty() ? "-" : tpu, end,
                      provision::dollars(hourly)});
      document["environments"].push_back({{"env", name},
                                          {"project", cloud.project},
                                          {"owner", owner},
                                          {"pieces", pieces.size()},
                                          {"tpu", tpu},
                                          {"expires", expires > 0 ? google::Json(end) : google::Json()},
                                          {"dollars_an_hour", hourly},
                                          {"without_price", unknown}});
    }
  }
  document["unreachable"] = gaps.unreachable;
  document["not_enabled"] = gaps.not_enabled;
  flags.cloud.json ? print_document(document) : base::print_table(rows);
  std::fflush(stdout);
  return say_gaps(gaps);
}

void write_new(const EnvFlags& flags, const std::string& path, const std::string& text) {
  if (base::path_exists(path) && !flags.cloud.yes)
    throw Usage(path + " exists: give another name, or --yes to write over it");
  base::value_or_throw(base::write_file_atomically(path, text));
}

int init(EnvFlags& flags) {
  std::string project = flags.cloud.projects.empty() ? "" : flags.cloud.projects.front();
  if (project.empty()) {
    const auto found = google::default_project();
    project = found ? *found : kNoProject;
  }
  const std::string name = flags.name.empty() ? "train" : flags.name;
  const std::string text = provision::settings_template(name, project, flags.zone, flags.type);
  value_or_usage(provision::settings_of(text, flags.out, "."));  // what init writes must be readable
  write_new(flags, flags.out, text);
  std::fprintf(stderr, "%s is written: edit it, then sluice env plan %s\n", flags.out.c_str(),
               flags.out.c_str());
  return 0;
}

int import_file(EnvFlags& flags) {
  const std::string text = value_or_usage(base::read_file(flags.values));
  const provision::ImportedFile file = value_or_usage(provision::import_values(text, flags.values));
  if (flags.out == "-") {
    std::fputs(file.toml.c_str(), stdout);
  } else {
    write_new(flags, flags.out, file.toml);
    std::fprintf(stderr, "%s is written: look at it, then sluice env plan %s\n", flags.out.c_str(),
                 flags.out.c_str());
  }
  say_all("", file.notes);
  return 0;
}

// clang-format off
Flag file_row(EnvFlags& f) { return {"", "FILE", &f.file, "", "The environment's file"}; }

Flag only_row(EnvFlags& f) {
  return {"", "--only", TextList{&f.only}, "", "Only these parts: tpu, machines, disk, nfs, bucket, network; with commas"};
}

Flag scripts_row(EnvFlags& f) {
  return {"", "--allow-script", RepeatedText{&f.allowed_scripts}, "", "A script outside of the file's folder that the file may name; repeatable"};
}

Flag force_row(EnvFlags& f) {
  return {"", "--force", &f.force, "", "Also while a run that this machine started is active there"};
}

Flag name_row(EnvFlags& f) {
  return {"", "--name", &f.name, "", "The environment's name, where its file is not at hand"};
}

Flag owner_row(EnvFlags& f) {
  return {"", "--owner", &f.owner, "", "Name the owner of the environment of --name; default: you"};
}

std::vector<Flag> init_rows(EnvFlags& f) {
  return {
      Flag{"", "FILE", &f.out, "", "The file to write"},
      Flag{"", "--name", &f.name, "", "The environment's name"}.shown("train"),
      Flag{"", "--zone", &f.zone, "", "Its zone"},
      Flag{"", "--type", &f.type, "", "Its TPU"},
      yes_row(f.cloud),
  };
}

std::vector<Flag> import_rows(EnvFlags& f) {
  return {
      Flag{"", "VALUES", &f.values, "", "values.env"}.required(),
      Flag{"", "--out", &f.out, "", "The file to write; -: standard output"},
      yes_row(f.cloud),
  };
}

std::vector<Flag> plan_rows(EnvFlags& f) {
  return {
      file_row(f), only_row(f), scripts_row(f),
      Flag{"", "--update", &f.force, "", "As update does it: what differs is deleted and created"},
      json_row(f.cloud),
  };
}

// The rows that apply and update share.
std::vector<Flag> change_rows(EnvFlags& f) {
  return {file_row(f), only_row(f), scripts_row(f), json_row(f.cloud), dry_run_row(f.cloud), yes_row(f.cloud), force_row(f)};
}

std::vector<Flag> destroy_rows(EnvFlags& f) {
  return {
      file_row(f), name_row(f), owner_row(f), only_row(f),
      Flag{"", "--keep", TextList{&f.keep}, "", "Parts that stay: disk, bucket, nfs …; with commas"},
      json_row(f.cloud), dry_run_row(f.cloud), yes_row(f.cloud), force_row(f),
  };
}

std::vector<Flag> show_rows(EnvFlags& f) { return {file_row(f), name_row(f), owner_row(f), json_row(f.cloud)}; }

std::vector<Flag> list_rows(EnvFlags& f) { return {json_row(f.cloud)}; }
// clang-format on

// Makes a verb with its own rows; --project is common to all.
Verb make_verb(const std::string& name, const std::string& help, std::vector<Flag> (*rows)(EnvFlags&),
               const std::function<int(EnvFlags&)>& run) {
  auto flags = std::make_shared<EnvFlags>();
  return {.name = name,
          .help = help,
          .add_flags =
              [flags, rows](CLI::App& app) {
                add_flags(app, rows(*flags));
                add_flags(app, {project_row(flags->cloud, /*several=*/app.get_name() == "list")});
              },
          .run = [flags, run] { return guard_interrupt([&] { return run(*flags); }); }};
}

// Makes the verbs apply and update.
Verb changing_verb(const std::string& name, const std::string& help, PlanOptions::Verb verb) {
  return make_verb(name, help, change_rows,
                   [verb](EnvFlags& flags) { return plan_or_do(flags, verb, /*only_plan=*/false); });
}

int plan(EnvFlags& flags) {
  return plan_or_do(flags, flags.force ? PlanOptions::kUpdate : PlanOptions::kApply, /*only_plan=*/true);
}

}  // namespace

Verb env_verb() {
  return {
      .name = "env",
      .help = "Make what a training needs from one file: network, share, disk, machines, bucket, TPU",
      .footer =
          "Nothing is written down but the file: what exists is what the cloud lists. A verb that was\n"
          "interrupted is run again. All keys of the file: docs/environments.md.",
      .verbs = {make_verb("init", "Write a file to begin with", init_rows, init),
                make_verb("import", "Write the file from the values.env of the environment module",
                          import_rows, import_file),
                make_verb("plan",
                          "Show what apply (with --update: update) would do and cost, and what is in its way",
                          plan_rows, plan),
                changing_verb("apply", "Make what is missing; what differs is shown and left alone",
                              PlanOptions::kApply),
                changing_verb("update", "Make it as the file says, also by deleting and creating",
                              PlanOptions::kUpdate),
                make_verb("destroy", "Delete what the environment has, the most expensive parts first",
                          destroy_rows, destroy),
                make_verb("show", "Show what the environment has, in which state, and what it costs",
                          show_rows, show),
                make_verb("list", "All environments of a project", list_rows, list)}};
}

}  // namespace sluice::cli
