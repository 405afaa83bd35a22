#include "sluice/provision/environment/settings.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"
#include "sluice/provision/compute_slices.h"
#include "sluice/provision/environment/names.h"
#include "sluice/provision/environment/script_file.h"
#include "sluice/provision/environment/toml_section.h"

namespace sluice::provision {
namespace {

// The folder and the rules by which the sections of a file read scripts.
struct Scripts {
  std::string folder;
  const ScriptRules& rules;
};

base::Status read_script(Section& section, const std::string& key, const Scripts& scripts,
                         std::optional<Script>& script) {
  std::string path;
  SLUICE_OK(section.read(key, path));
  if (path.empty()) return {};
  script = Script{path, ""};
  if (!scripts.rules.read) return {};
  auto text = read_script_file(path, scripts.folder, scripts.rules.allowed);
  if (!text) return section.wrong(key, text.error().what());
  script->text = std::move(*text);
  return {};
}

base::Status read_names(const Section& section, Variables& variables) {
  SLUICE_OK(section.read("variables", variables));
  static const std::regex rule("[A-Za-z_][A-Za-z0-9_]*");
  for (const auto& [name, value] : variables) {
    if (!std::regex_match(name, rule))
      return section.wrong("variables", base::str("'", name,
                                                  "' is not a name of a variable: it has letters, digits and "
                                                  "underscores, and begins with no digit"));
    if (value.find('\0') != std::string::npos)
      return section.wrong("variables", base::str("the value of ", name, " has a zero byte"));
  }
  return {};
}

// Checks the path where hosts mount something.
base::Status check_mount(const Section& section, const std::string& mount) {
  const bool plain = std::none_of(mount.begin(), mount.end(), [](unsigned char c) { return c < 0x20; });
  if (mount.starts_with("/") && plain) return {};
  return section.wrong("mount", base::str("'", mount, "': expected an absolute path, /mnt/data"));
}

base::Status read_span(Section& section, const std::string& key, double& seconds) {
  std::string text;
  SLUICE_OK(section.read(key, text));
  if (text.empty()) return {};
  const auto span = base::parse_span(text, key);
  if (!span) return section.wrong(key, span.error().what());
  seconds = *span;
  return {};
}

// Returns whether the text is a range that the firewall accepts, "203.0.113.7/32".
bool is_range(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return false;
  const bool six = text.find(':') != std::string::npos;
  const auto bits = base::number_of<int>(text.substr(slash + 1));
  unsigned char address[16];
  return ::inet_pton(six ? AF_INET6 : AF_INET, text.substr(0, slash).c_str(), address) == 1 && bits &&
         *bits >= 0 && *bits <= (six ? 128 : 32);
}

base::Status read_ranges(const Section& section, const std::string& key, std::vector<std::string>& ranges) {
  SLUICE_OK(section.read(key, ranges));
  for (const std::string& range : ranges)
    if (!is_range(range))
      return section.wrong(key, base::str("'", range,
                                          "': expected addresses and how many of their bits count, "
                                          "203.0.113.7/32"));
  return {};
}

// Reads scopes: "devstorage.read_only" or a whole URL.
base::Status read_scopes(const Section& section, std::vector<std::string>& scopes) {
  if (!section.has("scopes")) return {};
  SLUICE_OK(section.read("scopes", scopes));
  static const std::regex rule("[a-z0-9._-]+");
  const std::string start = "https://www.googleapis.com/auth/";
  for (std::string& scope : scopes) {
    if (scope.starts_with(start)) scope = scope.substr(start.size());
    if (!std::regex_match(scope, rule))
      return section.wrong("scopes", base::str("'", scope,
                                               "': expected the end of a scope's URL, cloud-platform or "
                                               "devstorage.read_only"));
    scope = start + scope;
  }
  if (scopes.empty()) return section.wrong("scopes", "at least one, cloud-platform or devstorage.read_only");
  return {};
}

base::Status read_identity(const Section& section, Settings& settings) {
  SLUICE_OK(section.read("service_account", settings.service_account));
  static const std::regex rule("[-a-z0-9._]+@[-a-z0-9.]+");
  if (!settings.service_account.empty() && !std::regex_match(settings.service_account, rule))
    return section.wrong("service_account",
                         base::str("'", settings.service_account,
                                   "': expected its address, trainer@my-project.iam.gserviceaccount.com"));
  return read_scopes(section, settings.scopes);
}

base::Status read_env(Section section, Settings& settings) {
  SLUICE_OK(section.known({"name", "project", "zones", "network", "owner", "ttl", "max_cost", "idle",
                           "ssh_from", "service_account", "scopes"}));
  SLUICE_OK(section.read("name", settings.name));
  SLUICE_OK(section.read("project", settings.project));
  SLUICE_OK(section.read("zones", settings.zones));
  SLUICE_OK(section.read("network", settings.network));
  SLUICE_OK(section.read("owner", settings.owner));
  SLUICE_OK(section.read("ttl", settings.ttl));
  SLUICE_OK(section.read("max_cost", settings.max_cost));
  SLUICE_OK(read_ranges(section, "ssh_from", settings.ssh_from));
  SLUICE_OK(read_identity(section, settings));
  SLUICE_OK(read_span(section, "idle", settings.idle));
  if (const auto good = check_name(settings.name, "env.name", kLongestEnvironmentName); !good)
    return section.wrong("name", good.error().what());
  if (settings.zones.empty()) return section.wrong("zones", "at least one zone: zones = [\"us-central1-a\"]");
  for (const std::string& zone : settings.zones)
    if (const auto good = check_zone(zone); !good) return section.wrong("zones", good.error().what());
  if (!settings.ttl.empty() && google::seconds_of_time(settings.ttl) == 0)
    if (const auto span = base::parse_span(settings.ttl, "env.ttl"); !span)
      return section.wrong("ttl", span.error().what());
  if (settings.max_cost < 0) return section.wrong("max_cost", "dollars, above 0");
  if (settings.max_cost > 0 && settings.ttl.empty())
    return section.wrong("max_cost", "needs a ttl: without an end there is no sum to compare with");
  return {};
}

base::Status check_word(const Section& section, const std::string& key, const std::string& word,
                        const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return {};
  const std::string near = base::nearest(word, known);
  return section.wrong(key,
                       base::str("'", word, "': ", near.empty() ? "" : base::str("did you mean ", near, "? "),
                                 "Known are ", base::join(known, ", ")));
}

base::Status read_capacity(Section& section, TpuSettings& tpu) {
  std::string capacity = "on-demand";
  SLUICE_OK(section.read("capacity", capacity));
  SLUICE_OK(section.read("reservation", tpu.reservation));
  SLUICE_OK(read_span(section, "duration", tpu.flex_duration));
  SLUICE_OK(read_span(section, "wait", tpu.wait));
  for (const Capacity kind :
       {Capacity::kOnDemand, Capacity::kSpot, Capacity::kReservation, Capacity::kFlexStart})
    if (capacity == capacity_name(kind)) {
      tpu.capacity = kind;
      if (kind == Capacity::kReservation && tpu.reservation.empty())
        return section.wrong("capacity", "needs tpu.reservation, the reservation's name");
      if (kind == Capacity::kFlexStart && tpu.flex_duration <= 0)
        return section.wrong("capacity", "needs tpu.duration, at most 7d");
      return {};
    }
  return section.wrong("capacity",
                       base::str("'", capacity, "': expected on-demand, spot, reservation or flex-start"));
}

// Refuses settings that only nodes of the Cloud TPU API have, before the rest of the environment is created.
base::Status check_group(const Section& section, const TpuSettings& tpu, const Settings& settings) {
  if (tpu.runtime.empty())
    return section.wrong("type", base::str(tpu.type,
                                           " is a group of Compute Engine machines: say their image, runtime "
                                           "= \"projects/P/global/images/family/F\""));
  if (tpu.slices > 1)
    return section.wrong("slices", base::str("1: several slices of ", tpu.type, " are made one by one"));
  if (settings.idle > 0)
    return section.wrong("type", base::str(tpu.type,
                                           " has no timer that env.idle could go by: give env.ttl, which "
                                           "Compute Engine holds"));
  return {};
}

base::Status read_tpu(Section section, const Scripts& scripts, Settings& settings) {
  TpuSettings tpu;
  SLUICE_OK(section.known(
      {"type", "runtime", "capacity", "reservation", "duration", "wait", "slices", "setup", "variables"}));
  SLUICE_OK(section.read("type", tpu.type));
  const auto slice = estimate::find_tpu_slice(tpu.type);
  if (!slice) return section.wrong("type", slice.error().what());
  tpu.type = slice->name;
  SLUICE_OK(section.read("runtime", tpu.runtime));
  SLUICE_OK(read_capacity(section, tpu));
  SLUICE_OK(section.read("slices", tpu.slices));
  if (tpu.slices < 1) return section.wrong("slices", "1 or more");
  if (is_compute_type(*slice)) SLUICE_OK(check_group(section, tpu, settings));
  SLUICE_OK(read_script(section, "setup", scripts, tpu.setup));
  SLUICE_OK(read_names(section, tpu.variables));
  settings.tpu = std::move(tpu);
  return {};
}

base::Status read_machines(Section section, const Scripts& scripts, Settings& settings) {
  MachineSettings machines;
  SLUICE_OK(section.known({"type", "count", "image", "boot_disk", "spot", "setup", "variables"}));
  SLUICE_OK(section.read("type", machines.type));
  SLUICE_OK(section.read("image", machines.image));
  SLUICE_OK(section.read("boot_disk", machines.boot_disk_gb));
  SLUICE_OK(section.read("spot", machines.spot));
  machines.automatic = !section.has("count") || section.is_text("count", "auto");
  if (!machines.automatic) {
    SLUICE_OK(section.read("count", machines.count));
    if (machines.count < 0 || machines.count > 1000) return section.wrong("count", "0 to 1000, or \"auto\"");
  } else {
    if (!settings.tpu)
      return section.wrong("count", "\"auto\" follows the TPU, and there is no [tpu]: give a number");
    SLUICE_TRY(const auto slice, estimate::find_tpu_slice(settings.tpu->type));
    machines.count = slice.hosts * settings.tpu->slices;
  }
  SLUICE_OK(read_script(section, "setup", scripts, machines.setup));
  SLUICE_OK(read_names(section, machines.variables));
  settings.machines = std::move(machines);
  return {};
}

base::Status read_nfs(Section section, Settings& settings) {
  NfsSettings nfs;
  SLUICE_OK(section.known({"tier", "size", "share", "mount", "clients", "root_from"}));
  SLUICE_OK(section.read("tier", nfs.tier));
  SLUICE_OK(check_word(section, "tier", nfs.tier,
                       {"BASIC_HDD", "BASIC_SSD", "HIGH_SCALE_SSD", "ENTERPRISE", "ZONAL", "REGIONAL",
                        "STANDARD", "PREMIUM"}));
  SLUICE_OK(section.read("size", nfs.size_gb));
  SLUICE_OK(section.read("share", nfs.share));
  SLUICE_OK(section.read("mount", nfs.mount));
  const double least = nfs.tier == "BASIC_SSD" || nfs.tier == "PREMIUM" ? 2560 : 1024;
  if (nfs.size_gb < least)
    return section.wrong("size",
                         base::str(nfs.size_gb, " GiB: a share of ", nfs.tier, " has at least ", least));
  static const std::regex name("[A-Za-z0-9_]{1,16}");
  if (!std::regex_match(nfs.share, name))
    return section.wrong("share", "1 to 16 letters, digits and underscores");
  SLUICE_OK(check_mount(section, nfs.mount));
  SLUICE_OK(read_ranges(section, "clients", nfs.clients));
  SLUICE_OK(read_ranges(section, "root_from", nfs.root_from));
  settings.nfs = std::move(nfs);
  return {};
}

bool takes_hyperdisk(const std::string& machine) {
  return !machine.starts_with("n1-") && !machine.starts_with("e2-");
}

// Hyperdisk, which v6e and tpu7x require, does not work with the older machines.
base::Status check_hyperdisk(const Section& section, Settings& settings) {
  const std::string type = disk_type(settings);
  if (!type.starts_with("hyperdisk")) return {};
  if (!section.has("machine")) settings.disk->machine = "c3-standard-8";
  const bool of_machines = settings.machines && !takes_hyperdisk(settings.machines->type);
  if (!of_machines && takes_hyperdisk(settings.disk->machine)) return {};
  return section.wrong(of_machines ? "type" : "machine",
                       base::str("a ", type, " cannot be attached to the ",
                                 of_machines ? settings.machines->type : settings.disk->machine, " of ",
                                 of_machines ? "machines.type" : "disk.machine",
                                 ": N1 and E2 have no Hyperdisk; c3-standard-8 has"));
}

base::Status read_disk(Section section, const Scripts& scripts, Settings& settings) {
  DiskSettings disk;
  SLUICE_OK(section.known(
      {"type", "size", "mount", "snapshot", "script", "variables", "machine", "image", "timeout"}));
  SLUICE_OK(section.read("type", disk.type));
  SLUICE_OK(section.read("size", disk.size_gb));
  SLUICE_OK(section.read("mount", disk.mount));
  SLUICE_OK(check_mount(section, disk.mount));
  SLUICE_OK(section.read("snapshot", disk.snapshot));
  SLUICE_OK(section.read("machine", disk.machine));
  SLUICE_OK(section.read("image", disk.image));
  SLUICE_OK(read_names(section, disk.variables));
  SLUICE_OK(read_span(section, "timeout", disk.timeout));
  SLUICE_OK(read_script(section, "script", scripts, disk.script));
  if (disk.size_gb < 10) return section.wrong("size", "GiB, 10 or more");
  if (disk.script.has_value() == !disk.snapshot.empty())
    return section.wrong("script",
                         "the disk is read-only for all who use it, so that it must be filled: "
                         "give a script that does, or a snapshot");
  if (settings.tpu && settings.zones.size() > 1)
    return section.wrong("size",
                         "a disk is in one zone, so the TPU must be there too: leave one zone in "
                         "env.zones, or use nfs or a bucket instead of the disk");
  settings.disk = std::move(disk);
  return check_hyperdisk(section, settings);
}

base::Status read_bucket(Section section, Settings& settings) {
  BucketSettings bucket;
  SLUICE_OK(section.known({"name", "location", "class"}));
  SLUICE_OK(section.read("name", bucket.name));
  static const std::regex rule("[a-z0-9][-a-z0-9._]{1,61}[a-z0-9]");
  if (!bucket.name.empty() && !std::regex_match(bucket.name, rule))
    return section.wrong("name", base::str("'", bucket.name,
                                           "': a bucket has 3 to 63 lower-case letters, digits, -, _ and ., "
                                           "and begins and ends with a letter or digit"));
  SLUICE_OK(section.read("location", bucket.location));
  SLUICE_OK(section.read("class", bucket.storage_class));
  if (!bucket.storage_class.empty())
    SLUICE_OK(
        check_word(section, "class", bucket.storage_class, {"STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE"}));
  settings.bucket = std::move(bucket);
  return {};
}

base::Status read_tasks(Section section, Settings& settings) {
  const std::vector<std::string> names = {"install", "test", "update", "run", "resume"};
  SLUICE_OK(section.known(names));
  for (const std::string& name : names)
    if (section.has(name)) SLUICE_OK(section.read(name, settings.tasks[name]));
  return {};
}

}  // namespace

base::Result<Settings> settings_of(const std::string& toml, const std::string& path,
                                   const std::string& folder, const ScriptRules& rules) {
  const Scripts scripts{folder, rules};
  SLUICE_TRY(const Section all, Section::parse(toml, path));
  SLUICE_OK(all.known({"env", "tpu", "machines", "nfs", "disk", "bucket", "tasks"}));
  Settings settings;
  settings.path = path;
  if (!all.has("env"))
    return base::fail(Code::kInvalidArgument, path,
                      ": the section [env] is missing (sluice env init writes "
                      "a file to begin with)");
  SLUICE_TRY(Section env, all.section("env"));
  SLUICE_OK(read_env(env, settings));
  if (settings.owner.empty()) settings.owner = default_owner();
  settings.owner = label_value(settings.owner);
  const auto read = [&](const std::string& name, auto reader) -> base::Status {
    if (!all.has(name)) return {};
    SLUICE_TRY(Section section, all.section(name));
    return reader(section);
  };
  SLUICE_OK(read("tpu", [&](Section& s) { return read_tpu(s, scripts, settings); }));
  SLUICE_OK(read("machines", [&](Section& s) { return read_machines(s, scripts, settings); }));
  SLUICE_OK(read("nfs", [&](Section& s) { return read_nfs(s, settings); }));
  SLUICE_OK(read("disk", [&](Section& s) { return read_disk(s, scripts, settings); }));
  SLUICE_OK(read("bucket", [&](Section& s) { return read_bucket(s, settings); }));
  SLUICE_OK(read("tasks", [&](Section& s) { return read_tasks(s, settings); }));
  return settings;
}

base::Result<Settings> read_settings(const std::string& path, const ScriptRules& rules) {
  auto text = base::read_file(path);
  if (!text)
    return base::fail(text.error().code(), text.error().what(),
                      " (sluice env init writes a file to begin with)");
  return settings_of(*text, path, base::parent_path(path), rules);
}

std::string disk_type(const Settings& settings) {
  if (settings.disk && !settings.disk->type.empty()) return settings.disk->type;
  // The newer generations accept no other type.
  const bool newer =
      settings.tpu && (settings.tpu->type.starts_with("v6e") || settings.tpu->type.starts_with("tpu7x"));
  return newer ? "hyperdisk-ml" : "pd-balanced";
}

std::string settings_template(const std::string& name, const std::string& project, const std::string& zone,
                              const std::string& type) {
  return base::str(
      "# What `sluice env apply` makes, and `sluice env destroy` takes away. All keys:\n",
      "# docs/environments.md. What is commented out is not made.\n\n[env]\nname = \"", name,
      "\"\nproject = \"", project, "\"\nzones = [\"", zone,
      "\"]\nttl = \"8h\"          # it says so on all that it makes; machines and TPU end then\n",
      "# max_cost = 500     # dollars until then, by list prices: more is refused\n",
      "# idle = \"1h\"        # unused for so long: worker 0 deletes the TPU\n\n[tpu]\ntype = \"", type,
      "\"\ncapacity = \"on-demand\"   # spot, reservation or flex-start\n",
      "# setup = \"tpu_setup.sh\"   # run by every worker host\n\n",
      "# [machines]         # that prepare data for the TPU\n# type = \"n1-standard-16\"\n",
      "# count = \"auto\"\n# setup = \"machine_setup.sh\"\n\n",
      "# [nfs]              # written by all\n# size = 1024\n# mount = \"/mnt/nfs\"\n\n",
      "# [disk]             # filled once by the script, then read by all\n# size = 500\n",
      "# script = \"fill_disk.sh\"\n# mount = \"/mnt/data\"\n\n[bucket]\n\n[tasks]\n",
      "# run = \"sluice train …\"\n# resume = \"sluice train --resume …\"\n");
}

}  // namespace sluice::provision
