#include "sluice/provision/environment/import.h"

#include <algorithm>
#include <cctype>

#include "sluice/base/text/join.h"
#include "sluice/base/text/lower_case.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"
#include "sluice/estimate/tpu_slice.h"
#include "sluice/provision/environment/names.h"

namespace sluice::provision {
namespace {

using Values = std::map<std::string, std::string>;

bool is_name(const std::string& text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

// Expands $NAME or ${NAME} at `at` and moves `at` past it; an unset variable is empty, as in sh.
std::string expanded(const std::string& line, size_t& at, const Values& values) {
  size_t begin = at + 1, end = begin;
  const bool braces = begin < line.size() && line[begin] == '{';
  if (braces) end = ++begin;
  while (end < line.size() && (std::isalnum(static_cast<unsigned char>(line[end])) != 0 || line[end] == '_'))
    ++end;
  at = end + (braces ? 1 : 0);
  const auto found = values.find(line.substr(begin, end - begin));
  return found == values.end() ? "" : found->second;
}

// Reads the value after "NAME=" as sh does, without running anything; returns false if it is not valid.
bool value_of(const std::string& line, size_t at, const Values& values, std::string& value) {
  char quote = 0;
  while (at < line.size()) {
    const char c = line[at];
    if (quote != '\'' && (c == '`' || (c == '$' && at + 1 < line.size() && line[at + 1] == '(')))
      return false;
    if (quote == 0 && (c == ' ' || c == '\t' || c == ';' || c == '#' || c == '\r')) return true;
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == '$' && quote != '\'') {
      value += expanded(line, at, values);
      continue;
    } else if (c == '\\' && quote != '\'' && at + 1 < line.size()) {
      value += line[++at];
    } else {
      value += c;
    }
    ++at;
  }
  return quote == 0;
}

std::string toml_string(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

// Writes the file section by section, and notes what became of each variable.
class Writer {
 public:
  Writer(Values values, std::string path) : values_(std::move(values)), path_(std::move(path)) {}

  std::string get(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? "" : found->second;
  }
  // Returns the first of these that is set: older versions of the module had other names.
  std::string any(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      if (!get(name).empty()) return get(name);
    return "";
  }
  base::Result<std::string> needed(std::initializer_list<const char*> names) const {
    if (std::string value = any(names); !value.empty()) return value;
    return base::fail(Code::kInvalidArgument, path_, ": ", *names.begin(), " is not set");
  }
  void line(const std::string& key, const std::string& value) {
    toml_ += key + " = " + toml_string(value) + "\n";
  }
  void plain(const std::string& text) { toml_ += text + "\n"; }
  base::Status number(const std::string& key, const char* variable, const std::string& value) {
    if (value.empty()) return {};
    if (!base::number_of<double>(value))
      return base::fail(Code::kInvalidArgument, path_, ": ", variable, " is not a number: ", value);
    toml_ += key + " = " + value + "\n";
    return {};
  }
  void note(const std::string& text) { notes_.push_back(text); }

  base::Result<ImportedFile> file();

 private:
  base::Status env();
  base::Status tpu();
  base::Status machines();
  base::Status nfs();
  base::Status disk();
  void variables(const char* key);
  void rest();

  const Values values_;
  const std::string path_;
  std::string toml_;
  std::vector<std::string> notes_;
};

base::Status Writer::env() {
  SLUICE_TRY(const std::string build, needed({"ENV_BUILD_NAME", "TRAINING_RUN_NAME"}));
  SLUICE_TRY(const std::string project, needed({"PROJECT_ID"}));
  SLUICE_TRY(const std::string zone, needed({"ZONE"}));
  std::string name;
  for (const char c : build) {
    const char lower = base::lower_case(c);
    name += std::isalnum(static_cast<unsigned char>(lower)) != 0 ? lower : '-';
  }
  if (std::isalpha(static_cast<unsigned char>(name[0])) == 0) name = "env-" + name;
  name.resize(std::min<size_t>(name.size(), kLongestEnvironmentName));
  while (name.back() == '-') name.pop_back();
  if (name != build)
    note("ENV_BUILD_NAME " + build + " becomes " + name +
         ": names begin with a letter and have lower-case letters, digits and -");
  plain("[env]");
  line("name", name);
  line("project", project);
  plain("zones = [" + toml_string(zone) + "]");
  if (const std::string network = get("NETWORK"); !network.empty()) line("network", network);
  if (const std::string user = get("USERNAME"); !user.empty()) line("owner", user);
  plain("ttl = \"1d\"");
  note("env.ttl is new: the module knew no end of an environment. It is set to one day; look at it");
  if (const std::string ranges = get("SOURCE_RANGES"); ranges == "0.0.0.0/0") {
    note(
        "SOURCE_RANGES 0.0.0.0/0 is left out: port 22 was open to the whole world. Now ssh comes through "
        "Identity-Aware Proxy; env.ssh_from opens it for ranges of yours");
  } else if (!ranges.empty()) {
    plain("ssh_from = [" + toml_string(ranges) + "]");
  }
  return {};
}

base::Status Writer::tpu() {
  SLUICE_TRY(const std::string type, needed({"TPU_ACCELERATOR_TYPE", "ACCELERATOR_TYPE"}));
  if (const auto slice = estimate::find_tpu_slice(type); !slice)
    return base::fail(Code::kInvalidArgument, path_, ": TPU_ACCELERATOR_TYPE: ", slice.error().what());
  plain("\n[tpu]");
  line("type", type);
  return {};
}

// Scripts read values.env by `source`: here they get the same values in their environment.
void Writer::variables(const char* key) {
  std::vector<std::string> pairs;
  for (const auto& [name, value] : values_) {
    const auto& rows = import_rows();
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const ImportRow& r) { return name == r.variable; });
    const bool own = row == rows.end();
    if ((own || std::string(row->key).find("variables") != std::string::npos) && !value.empty())
      pairs.push_back(name + " = " + toml_string(value));
  }
  if (!pairs.empty()) plain(std::string(key) + " = {" + base::join(pairs, ", ") + "}");
}

base::Status Writer::machines() {
  plain("\n[machines]");
  if (const std::string type = get("MACHINE_TYPE"); !type.empty()) line("type", type);
  plain("count = \"auto\"");
  const std::string project = get("SOURCE_IMAGE_PROJECT"), version = get("GCE_IMAGE_VERSION");
  const std::string base = get("SOURCE_IMAGE_BASE"), family = get("SOURCE_IMAGE_FAMILY");
  if (!project.empty() && !base.empty() && !version.empty()) {
    line("image", "projects/" + project + "/global/images/" + base + "-v" + version);
  } else if (!project.empty() && !family.empty()) {
    line("image", "projects/" + project + "/global/images/family/" + family);
  }
  if (project == "ml-images")
    note("machines.image names an image of 2020, which may be gone: without the key it is Ubuntu 22.04");
  SLUICE_OK(
      number("boot_disk", "BOOT_DISK_SIZE_GB", any({"BOOT_DISK_SIZE_GB", "GCE_DISK_SIZE", "DISK_SIZE_GB"})));
  if (const std::string script = get("MIG_SETUP_SCRIPT"); !script.empty()) {
    line("setup", script);
    note("machines.setup " + script +
         " is found from the folder of the new file. What it did to mount the share and the disk is done "
         "before it runs");
  }
  variables("variables");
  return {};
}

base::Status Writer::nfs() {
  const std::string mount = get("MOUNT_POINT");
  plain("\n[nfs]");
  if (const std::string share = get("SHARED_FS"); !share.empty()) line("share", share);
  SLUICE_OK(number("size", "SHARED_FS_CAPACITY", get("SHARED_FS_CAPACITY")));
  if (const std::string tier = get("SHARED_FS_TIER"); !tier.empty())
    line("tier", tier == "STANDARD" ? "BASIC_HDD" : tier == "PREMIUM" ? "BASIC_SSD" : tier);
  if (!mount.empty()) line("mount", mount + "/nfs_share");
  return {};
}

base::Status Writer::disk() {
  const std::string size = any({"SHARED_PD_DISK_SIZE", "SHARED_PD_SIZE"});
  const std::string script = get("MIG_SEED_DATA_PREP_SCRIPT"), mount = get("MOUNT_POINT");
  const bool wanted = any({"SHARED_PD_DISK_ATTACH", "SHARED_PD_DISK_CREATE", "SHARED_PD_CREATE"}) == "true";
  if (size.empty() || script.empty()) {
    if (wanted)
      note("SHARED_PD_DISK_ATTACH is true, but the disk's size or its script is missing: no [disk]");
    return {};
  }
  // A disk that is not attached is written as a comment: one edit enables it.
  const size_t begin = toml_.size();
  plain("\n[disk]");
  SLUICE_OK(number("size", "SHARED_PD_DISK_SIZE", size));
  if (const std::string type = get("SHARED_PD_DISK_TYPE"); !type.empty()) line("type", type);
  line("script", script);
  if (!mount.empty()) line("mount", mount + "/shared_pd");
  variables("variables");
  if (wanted) return {};
  std::string commented;
  for (const std::string& one : base::split(toml_.substr(begin), '\n'))
    commented += one.empty() ? "\n" : "# " + one + "\n";
  commented.pop_back();
  toml_.resize(begin);
  toml_ += commented;
  note("SHARED_PD_DISK_ATTACH is not true: [disk] is written as a comment");
  return {};
}

void Writer::rest() {
  for (const auto& [name, value] : values_) {
    const auto& rows = import_rows();
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const ImportRow& r) { return name == r.variable; });
    if (row == rows.end()) {
      note(name + " does not belong to the module: it is kept in the variables of the scripts");
    } else if (*row->key == 0) {
      note(name + " is not needed: " + row->because);
    }
  }
}

base::Result<ImportedFile> Writer::file() {
  toml_ = "# From " + path_ + ", by sluice env import.\n";
  SLUICE_OK(env());
  SLUICE_OK(tpu());
  SLUICE_OK(machines());
  SLUICE_OK(nfs());
  SLUICE_OK(disk());
  plain("\n[bucket]");
  rest();
  return ImportedFile{toml_, notes_};
}

}  // namespace

const std::vector<ImportRow>& import_rows() {
  constexpr const char* kFound = "it is found in the cloud, nothing is written down between two calls";
  constexpr const char* kColour = "it coloured the output of the build";
  static const auto& rows = *new std::vector<ImportRow>{
      {"ENV_BUILD_NAME", "env.name", ""},
      {"TRAINING_RUN_NAME", "env.name", "an older name of ENV_BUILD_NAME"},
      {"PROJECT_ID", "env.project", ""},
      {"ZONE", "env.zones", ""},
      {"REGION", "", "it is the zone's"},
      {"USERNAME", "env.owner", ""},
      {"NETWORK", "env.network", ""},
      {"SOURCE_RANGES", "env.ssh_from", "0.0.0.0/0 is left out"},
      {"PROTOCOL", "", "ssh is TCP"},
      {"PORTS", "", "ssh is port 22; other ports are open inside the network only"},
      {"TAGS", "", "the firewall's tag comes from the environment's name"},
      {"MOUNT_POINT", "nfs.mount, disk.mount", "with /nfs_share and /shared_pd after it"},
      {"GCS_DATASET", "machines.variables, disk.variables", "the scripts read it"},
      {"GCS_RAW_DATASET", "machines.variables, disk.variables", "the scripts read it"},
      {"CODE_REPO", "machines.variables, disk.variables", "the scripts read it"},
      {"TPU_ACCELERATOR_TYPE", "tpu.type", ""},
      {"ACCELERATOR_TYPE", "tpu.type", "an older name"},
      {"TPU_PYTORCH_VERSION", "", "Sluice needs no PyTorch on the TPU; tpu.runtime follows the generation"},
      {"PYTORCH_VERSION", "", "Sluice needs no PyTorch on the TPU; tpu.runtime follows the generation"},
      {"TPU_CIDR_BLOCK", "", "a TPU's hosts are machines of the network and need no range of their own"},
      {"MACHINE_TYPE", "machines.type", ""},
      {"DOCKER_CONTAINER", "", "Sluice is one program: there is no container to pull"},
      {"DOCKER_IMAGE_VERSION", "", "Sluice is one program: there is no container to pull"},
      {"GCE_IMAGE_VERSION", "machines.image", ""},
      {"SOURCE_IMAGE_FAMILY", "machines.image", ""},
      {"SOURCE_IMAGE_PROJECT", "machines.image", ""},
      {"SOURCE_IMAGE_BASE", "machines.image", ""},
      {"BOOT_DISK_SIZE_GB", "machines.boot_disk", ""},
      {"GCE_DISK_SIZE", "machines.boot_disk", "an older name"},
      {"DISK_SIZE_GB", "machines.boot_disk", "an older name"},
      {"MIG_SETUP_SCRIPT", "machines.setup", ""},
      {"MIG_MASTER", "", kFound},
      {"SHARED_FS", "nfs.share", ""},
      {"SHARED_FS_CAPACITY", "nfs.size", ""},
      {"SHARED_FS_TIER", "nfs.tier", "STANDARD is BASIC_HDD now, PREMIUM is BASIC_SSD"},
      {"SHARED_NFS_IP", "", kFound},
      {"SHARED_PD_DISK_ATTACH", "disk", "without true the section is a comment"},
      {"SHARED_PD_DISK_CREATE", "disk", "an older name"},
      {"SHARED_PD_CREATE", "disk", "an older name"},
      {"SHARED_PD_DISK_SIZE", "disk.size", ""},
      {"SHARED_PD_SIZE", "disk.size", "an older name"},
      {"SHARED_PD_DISK_TYPE", "disk.type", ""},
      {"SHARED_PD_DISK_NAME", "", "names come from the environment's"},
      {"MIG_SEED_DATA_PREP_SCRIPT", "disk.script", ""},
      {"NFS_IP", "", kFound},
      {"GCE_IMAGE_NAME", "", kFound},
      {"GCE_SLAVE_0", "", kFound},
      {"RED", "", kColour},
      {"GREEN", "", kColour},
      {"NC", "", kColour},
  };
  return rows;
}

base::Result<std::map<std::string, std::string>> read_variables(const std::string& text,
                                                                const std::string& path) {
  Values values;
  int number = 0;
  for (const std::string& whole : base::split(text, '\n')) {
    ++number;
    std::string line(base::trim(whole));
    if (line.starts_with("export ")) line = std::string(base::trim(line.substr(7)));
    if (line.empty() || line[0] == '#') continue;
    const size_t equals = line.find('=');
    std::string value;
    if (equals == std::string::npos || !is_name(line.substr(0, equals)) ||
        !value_of(line, equals + 1, values, value))
      return base::fail(Code::kInvalidArgument, path, ":", number,
                        ": expected NAME=value without commands, found: ", line);
    values[line.substr(0, equals)] = value;
  }
  return values;
}

base::Result<ImportedFile> import_values(const std::string& text, const std::string& path) {
  SLUICE_TRY(Values values, read_variables(text, path));
  return Writer(std::move(values), path).file();
}

}  // namespace sluice::provision
