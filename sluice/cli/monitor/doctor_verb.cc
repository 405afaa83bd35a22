// sluice doctor
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/json_text.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/formats/parse_toml.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/quantity.h"
#include "sluice/cli/cloud/chip_holders.h"
#include "sluice/cli/cloud/common.h"
#include "sluice/cli/config.h"
#include "sluice/cli/monitor/host_flags.h"
#include "sluice/cli/verbs.h"
#include "sluice/cloud/storage.h"
#include "sluice/monitor/doctor/cloud_checks.h"
#include "sluice/monitor/doctor/machine_checks.h"
#include "sluice/monitor/doctor/plugin_checks.h"
#include "sluice/monitor/process_status.h"
#include "sluice/pjrt/cache/compile_cache.h"
#include "sluice/pjrt/plugin.h"
#include "sluice/pod/ssh/quote.h"
#include "sluice/provision/remote/shell.h"

namespace sluice::cli {
namespace {

using monitor::Finding;
using Level = Finding::Level;

constexpr double kHostSeconds = 180;

struct DoctorFlags {
  HostFlags where;
  std::vector<std::string> buckets;
  std::string config, logdir, probe;
  bool json = false, fix = false, yes = false;
  int grace = 7;
};

// What to examine besides the machine; `others` are URLs of services other than Cloud Storage.
struct Subjects {
  std::set<std::string> buckets, folders, others;
};

void add_place(const std::string& place, Subjects& subjects) {
  if (!cloud::is_object_url(place))
    subjects.folders.insert(base::expand_home(place));
  else if (!cloud::is_gs(place))
    subjects.others.insert(place);
  else if (const auto name = cloud::parse_object_url(place))
    subjects.buckets.insert(name->bucket);
}

// Adds the bucket of a --bucket: a name, or a URL of something in the bucket.
void add_bucket(const std::string& text, Subjects& subjects) {
  const bool url = text.find("://") != std::string::npos;
  if (url && !cloud::is_gs(text))
    throw Usage(base::str("--bucket ", text,
                          ": only buckets of Cloud Storage can be examined, gs://BUCKET. Whether "
                          "others can be read: sluice data ls ",
                          text));
  const auto name = cloud::parse_object_url(url ? text : "gs://" + text);
  if (!name) throw Usage(base::str("--bucket ", name.error().what()));
  subjects.buckets.insert(name->bucket);
}

// Adds the buckets and folders that a file for `sluice train --config` names: URLs such as gs:// at any
// depth, and logdir.
void add_config(const toml::table& table, Subjects& subjects) {
  const auto add = [&](const toml::node& value, bool is_folder) {
    const auto text = value.value<std::string>();
    if (text && (is_folder || cloud::is_object_url(*text))) add_place(*text, subjects);
  };
  for (const auto& [key, value] : table) {
    if (value.is_table()) add_config(*value.as_table(), subjects);
    if (const auto* list = value.as_array())
      for (const auto& item : *list) add(item, false);
    add(value, key == "logdir" || key == "cache");
  }
}

Subjects subjects_of(const DoctorFlags& flags) {
  Subjects subjects;
  for (const std::string& bucket : flags.buckets) add_bucket(bucket, subjects);
  if (!flags.config.empty()) {
    check_toml_file(flags.config);
    add_config(value_or_usage(base::parse_toml_file(flags.config)), subjects);
  }
  if (!flags.logdir.empty()) add_place(flags.logdir, subjects);
  if (subjects.folders.empty()) subjects.folders.insert(std::filesystem::current_path().string());
  if (const std::string cache = pjrt::default_cache_directory(); !cache.empty())
    subjects.folders.insert(cache);
  return subjects;
}

void examine(const DoctorFlags& flags, const monitor::Report& report) {
  const Subjects subjects = subjects_of(flags);
  const pjrt::Machine machine = pjrt::find_machine();
  monitor::check_chips(machine, report);
  monitor::check_variables(report);
  monitor::check_ports(machine, report);
  monitor::check_disks({subjects.folders.begin(), subjects.folders.end()}, report);
  monitor::check_limits(machine, report);
  std::error_code error;
  const std::string own = std::filesystem::read_symlink("/proc/self/exe", error).string();
  monitor::check_plugins(machine, pjrt::plugin_search_folders(), {own, "doctor", "--probe-plugin"}, report);
  monitor::check_cloud({subjects.buckets.begin(), subjects.buckets.end()}, report);
  for (const std::string& url : subjects.others)
    report({Level::kNote, "bucket", url + ": not examined, as it is not of Cloud Storage",
            "whether it can be read: sluice data ls " + url});
}

// The text may come from another host, so it is made printable.
void print(const Finding& finding) {
  std::printf("%-8s %-12s %s\n", word_of(finding.level), base::printable_line(finding.check).c_str(),
              base::printable_line(finding.found).c_str());
  if (!finding.advice.empty()) std::printf("%22s%s\n", "", base::printable_line(finding.advice).c_str());
  std::fflush(stdout);
}

// The findings on one machine.
struct HostFindings {
  std::string host;
  std::vector<Finding> findings;
};

bool is_problem(const Finding& finding) { return finding.level == Level::kProblem; }

nlohmann::json to_json(const std::vector<HostFindings>& hosts) {
  nlohmann::json all = nlohmann::json::array();
  for (const HostFindings& host : hosts) {
    nlohmann::json findings = nlohmann::json::array();
    for (const Finding& finding : host.findings)
      findings.push_back({{"level", word_of(finding.level)},
                          {"check", finding.check},
                          {"found", finding.found},
                          {"advice", finding.advice}});
    all.push_back({{"host", host.host}, {"findings", std::move(findings)}});
  }
  return {{"hosts", std::move(all)}};
}

// Parses the output of another host's `sluice doctor --json`.
std::vector<Finding> findings_of(const std::string& text) {
  std::vector<Finding> findings;
  const auto document = base::parse_json(text);
  for (const auto& item : document.at("hosts").at(0).at("findings")) {
    Finding finding;
    const std::string level = item.at("level");
    for (const Level known : {Level::kNote, Level::kProblem})
      if (level == word_of(known)) finding.level = known;
    finding.check = item.at("check");
    finding.found = item.at("found");
    finding.advice = item.at("advice");
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::vector<HostFindings> examine_hosts(const pod::Job& job, const DoctorFlags& flags) {
  std::vector<std::string> words = {"doctor", "--json"};
  const Subjects subjects = subjects_of(flags);
  for (const std::string& bucket : subjects.buckets) words.insert(words.end(), {"--bucket", bucket});
  if (!flags.logdir.empty()) words.insert(words.end(), {"--logdir", flags.logdir});
  const auto answers = provision::run_scripts(job, sluice_script(words), kHostSeconds);
  std::vector<HostFindings> hosts;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (job.workers[i].local_index != 0) continue;
    HostFindings host{job.workers[i].address, {}};
    try {
      host.findings = findings_of(answers[i].output);
    } catch (const nlohmann::json::exception&) {
      const std::string& said = answers[i].messages;
      const std::string why = answers[i].unreachable ? said : pod::in_quotes(said);
      host.findings = {{Level::kProblem, "host", said.empty() ? "its sluice gave no findings" : why,
                        "see that it is reachable, and that the same version of sluice is there"}};
    }
    hosts.push_back(std::move(host));
  }
  return hosts;
}

int summary(const std::vector<HostFindings>& hosts, bool as_json) {
  size_t problems = 0, notes = 0;
  for (const HostFindings& host : hosts) {
    for (const Finding& finding : host.findings) {
      problems += is_problem(finding) ? 1 : 0;
      notes += finding.level == Level::kNote ? 1 : 0;
    }
  }
  if (as_json)
    std::printf("%s\n", base::json_text(to_json(hosts)).c_str());
  else
    std::printf("%s, %s\n", base::counted(static_cast<int64_t>(problems), "problem").c_str(),
                base::counted(static_cast<int64_t>(notes), "note").c_str());
  return problems == 0 ? 0 : 1;
}

// Ends the user's own processes that hold chips, after showing them and asking.
int fix(std::optional<pod::Job> job, const DoctorFlags& flags) {
  HolderHosts hosts{"doctor", "host", job ? std::move(*job) : pod::Job(), {}};
  if (hosts.job.workers.empty()) hosts.job.workers = pod::local_workers(1);
  for (const pod::Worker& worker : hosts.job.workers) hosts.labels.push_back(worker.address);
  CloudFlags asked;
  asked.yes = flags.yes;
  const auto may_end = [&](size_t count) {
    return confirmed(asked,
                     base::str("sluice doctor: end ", base::counted(static_cast<int64_t>(count), "process"),
                               " of yours that hold chips?"));
  };
  return end_own_holders(hosts, may_end, flags.grace);
}

int probe_plugin(const std::string& path) {
  const auto file = base::value_or_throw(pjrt::find_plugin(path, {}));
  std::printf("%s\n", base::value_or_throw(pjrt::Plugin::probe(file)).c_str());
  std::fflush(stdout);
  std::_Exit(0);  // skips the plugin's static destructors
}

int run_doctor(const DoctorFlags& flags) {
  if (!flags.probe.empty()) return probe_plugin(flags.probe);
  if (flags.yes && !flags.fix) throw Usage("--yes is for --fix");
  if (flags.json && flags.fix) throw Usage("--fix shows what it ends, and takes no --json");
  auto job = hosts_of(flags.where, "doctor");
  if (flags.fix) return fix(std::move(job), flags);
  if (job) {
    const auto hosts = examine_hosts(*job, flags);
    for (const HostFindings& host : hosts) {
      if (flags.json) continue;
      std::printf("%s\n", base::printable(host.host).c_str());
      std::for_each(host.findings.begin(), host.findings.end(), print);
    }
    return summary(hosts, flags.json);
  }
  std::vector<HostFindings> here = {{monitor::own_identity().host, {}}};
  examine(flags, [&](const Finding& finding) {
    if (!flags.json) print(finding);
    here[0].findings.push_back(finding);
  });
  return summary(here, flags.json);
}

}  // namespace

Verb doctor_verb() {
  auto flags = std::make_shared<DoctorFlags>();
  return {
      .name = "doctor",
      .help = "Find out what keeps a machine, or hosts, from training, and say what to do",
      .footer =
          "sluice doctor                                   this machine\n"
          "sluice doctor --bucket gs://BUCKET              and whether a bucket can be used from here\n"
          "sluice doctor --hosts a,b | --tpu NAME          hosts, by their own sluice\n"
          "sluice doctor --fix                             end what holds chips and is yours, after asking\n"
          "Exit status: 0 no problem was found (or nothing is left that --fix should end), 1 else.",
      .add_flags =
          [flags](CLI::App& app) {
            app.add_option("--bucket", flags->buckets,
                           "Check whether this bucket of Cloud Storage can be read and written; repeatable")
                ->expected(1)
                ->allow_extra_args(false)
                ->take_all();
            app.add_option("--config", flags->config,
                           "A TOML file of `sluice train`: the buckets and folders in it");
            app.add_option("--logdir", flags->logdir,
                           "The folder of checkpoints and logs: whether it has room")
                ->default_str("this folder");
            app.add_flag("--json", flags->json, "As one JSON object");
            app.add_flag(
                "--fix", flags->fix,
                "End your own processes that hold chips, after showing them and asking; nothing else");
            app.add_flag("--yes", flags->yes, "Do not ask before --fix ends processes");
            app.add_option("--grace", flags->grace,
                           "Let --fix wait this long from SIGINT to SIGKILL, with SIGTERM in between [s]")
                ->check(kAboveZero);
            add_host_flags(app, flags->where);
            // For this verb's own use: the process that loads a plugin, and may crash while it does.
            app.add_option("--probe-plugin", flags->probe)->group("");
          },
      .run = [flags] { return run_doctor(*flags); }};
}

}  // namespace sluice::cli
