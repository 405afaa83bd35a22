#include "sluice/monitor/process_status.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/files/trusted_file.h"
#include "sluice/base/formats/json_bytes.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/process.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/monitor/optional_json.h"
#include "sluice/monitor/status_json.h"

namespace sluice::monitor {
namespace {

using nlohmann::json;

constexpr double kSilentSeconds = 10, kForgetSeconds = 600;
constexpr size_t kMaxRecord = 64 << 10;  // bytes; larger files are not records

// Returns when a process began; 0 if it does not exist or is a zombie.
int64_t start_of(int process) {
  const auto facts = base::look_at_process(process);
  return !facts || facts->state == "Z" || facts->state == "X" ? 0 : facts->began;
}

std::string link_target(const char* path) {
  std::error_code error;
  return std::filesystem::read_symlink(path, error).string();
}

// Makes a folder that only this user can write to; false if another user may have made it first.
bool make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return false;
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == ::geteuid() &&
         (found.st_mode & 022) == 0;
}

// Returns nullopt also for a missing field, as in a record of another version.
template <typename T>
std::optional<T> optional_of(const json& document, const char* name) {
  const auto found = document.find(name);
  return found == document.end() || found->is_null() ? std::nullopt : std::optional(found->template get<T>());
}

}  // namespace

ProcessIdentity own_identity() {
  ProcessIdentity own;
  own.process = ::getpid();
  own.namespaces = link_target("/proc/self/ns/pid");
  own.began = start_of(own.process);
  own.program = std::filesystem::path(link_target("/proc/self/exe")).filename().string();
  own.host = base::host_name();
  own.run = base::environment("SLUICE_RUN_ID").value_or("");
  return own;
}

std::string text_of(const ProcessStatus& status) {
  const ProcessIdentity& who = status.identity;
  json shares;
  if (status.shares)
    shares = {
        {"input", status.shares->input}, {"trace", status.shares->trace}, {"device", status.shares->device}};
  const json document = {{"process", who.process},
                         {"namespaces", who.namespaces},
                         {"began", who.began},
                         {"program", who.program},
                         {"host", who.host},
                         {"run", who.run},
                         {"index", who.index},
                         {"count", who.count},
                         {"slice", who.slice},
                         {"replicas", who.replicas},
                         {"device", who.device},
                         {"coordinator", who.coordinator},
                         {"profiler", who.profiler},
                         {"step", status.step},
                         {"epoch", status.epoch},
                         {"step_ms", status.step_ms},
                         {"rate", status.rate},
                         {"shares", shares},
                         {"mfu", optional_json(status.mfu)},
                         {"time", status.time},
                         {"step_p50_ms", optional_json(status.step_p50_ms)},
                         {"step_p95_ms", optional_json(status.step_p95_ms)},
                         {"tokens_per_second", optional_json(status.tokens_per_second)},
                         {"flops_per_second", optional_json(status.flops_per_second)},
                         {"memory_in_use", optional_json(status.memory_in_use)},
                         {"memory_peak", optional_json(status.memory_peak)}};
  return base::with_json_texts(document).dump();
}

base::Result<ProcessStatus> parse_status(const std::string& text) {
  return status_of(base::with_bytes(base::parse_json(text)));
}

base::Result<ProcessStatus> status_of(const json& document) {
  ProcessStatus status;
  ProcessIdentity& who = status.identity;
  try {
    who.process = document.at("process").get<int>();
    who.namespaces = document.at("namespaces").get<std::string>();
    who.began = document.at("began").get<int64_t>();
    who.program = document.at("program").get<std::string>();
    who.host = document.at("host").get<std::string>();
    who.run = document.at("run").get<std::string>();
    who.index = document.at("index").get<int>();
    who.count = document.at("count").get<int>();
    who.slice = document.value("slice", -1);  // hosts may have an older version
    who.replicas = document.at("replicas").get<int>();
    who.device = document.at("device").get<std::string>();
    who.coordinator = document.at("coordinator").get<std::string>();
    who.profiler = document.at("profiler").get<std::string>();
    status.step = document.at("step").get<int64_t>();
    status.epoch = document.at("epoch").get<int64_t>();
    status.step_ms = document.at("step_ms").get<double>();
    status.rate = document.at("rate").get<double>();
    if (const json& shares = document.at("shares"); !shares.is_null())
      status.shares = {shares.at("input").get<double>(), shares.at("trace").get<double>(),
                       shares.at("device").get<double>()};
    status.mfu = optional_of<double>(document, "mfu");
    status.step_p50_ms = optional_of<double>(document, "step_p50_ms");
    status.step_p95_ms = optional_of<double>(document, "step_p95_ms");
    status.tokens_per_second = optional_of<double>(document, "tokens_per_second");
    status.flops_per_second = optional_of<double>(document, "flops_per_second");
    status.memory_in_use = optional_of<int64_t>(document, "memory_in_use");
    status.memory_peak = optional_of<int64_t>(document, "memory_peak");
    status.time = document.at("time").get<double>();
  } catch (const json::exception& error) {
    return base::fail(Code::kDataLoss, "this is not a record of a training process: ", error.what());
  }
  return status;
}

std::optional<std::string> status_folder() {
  const auto chosen = base::environment("SLUICE_STATUS_DIR");
  // The files are in memory: a file system on a disk may write a file out before a rename replaces it, and
  // the training would wait for that.
  if (!chosen)
    return base::str(base::is_directory("/dev/shm") ? "/dev/shm" : "/tmp", "/sluice-status-", ::geteuid());
  if (base::switch_of(*chosen) == false) return std::nullopt;
  return base::expand_home(*chosen);
}

StatusFile::StatusFile(std::optional<std::string> folder) {
  if (folder && make_private_folder(*folder))
    path_ = base::join_path(*folder, base::str(::getpid(), ".json"));
}

StatusFile::~StatusFile() {
  if (is_on()) ::unlink(path_.c_str());
}

void StatusFile::write(const ProcessStatus& status) {
  if (!is_on()) return;
  const std::string text = text_of(status), unfinished = path_ + ".new";
  const auto open = [&] {
    return ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  };
  int file = open();
  // systemd deletes a user's files in /dev/shm when the user logs out.
  if (file < 0 && errno == ENOENT && make_private_folder(base::parent_path(path_))) file = open();
  if (file < 0) return;
  const bool whole = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(file);
  if (!whole || ::rename(unfinished.c_str(), path_.c_str()) != 0) ::unlink(unfinished.c_str());
}

const char* word_of(SeenProcess::State state) {
  if (state == SeenProcess::State::kGone) return "killed";
  return state == SeenProcess::State::kSilent ? "silent" : "running";
}

std::vector<SeenProcess> read_statuses(const std::string& folder, double now) {
  std::vector<SeenProcess> seen;
  const auto names = base::list_directory(folder);
  if (!names || !base::check_private_folder(folder)) return seen;
  const std::string namespaces = link_target("/proc/self/ns/pid");
  for (const std::string& name : *names) {
    const std::string path = base::join_path(folder, name);
    const auto size = base::file_size(path);
    if (!base::ends_with(name, ".json") || !size || *size > kMaxRecord) continue;
    const auto text = base::read_trusted_file(path);
    auto status = text ? parse_status(*text) : base::fail(Code::kNotFound, path);
    if (!status) continue;
    SeenProcess one{std::move(*status), SeenProcess::State::kRunning, 0};
    const ProcessIdentity& who = one.status.identity;
    one.age = std::max(0.0, now - one.status.time);
    if (one.age > kSilentSeconds) one.state = SeenProcess::State::kSilent;
    // For processes of another container only the age of their records is known.
    if (who.namespaces == namespaces && start_of(who.process) != who.began)
      one.state = SeenProcess::State::kGone;
    if (one.state == SeenProcess::State::kGone && one.age > kForgetSeconds)
      ::unlink(path.c_str());
    else
      seen.push_back(std::move(one));
  }
  std::sort(seen.begin(), seen.end(), [](const SeenProcess& a, const SeenProcess& b) {
    const ProcessIdentity &left = a.status.identity, &right = b.status.identity;
    return std::tie(left.run, left.index, left.process) < std::tie(right.run, right.index, right.process);
  });
  return seen;
}

}  // namespace sluice::monitor
