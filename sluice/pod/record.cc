#include "sluice/pod/record.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "sluice/base/files/file.h"
#include "sluice/base/files/private_file.h"
#include "sluice/base/files/user_folders.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"

namespace sluice::pod {
using nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Worker, host, address, host_index, local_index, local_count,
                                                slice)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(SshOptions, user, config, options, parallel)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Program, path, sha256, bytes, tar_sha256, tar_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Job, id, command, workers, coordinator, port, tpu_chips,
                                                slices, slice_type, environment, folder, sync, sync_exclude,
                                                sync_bucket, program, setup, ssh, max_restarts,
                                                heartbeat_timeout, lease, grace, join_timeout, log_size,
                                                detached, raw)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Ending, status, time, reason, detail)

namespace {

constexpr off_t kReserve = 256 << 10;  // bytes: enough for a record of some thousand workers

std::string reserve_of(const std::string& id) { return base::join_path(run_folder(id), "reserve"); }

json endings_json(const RunRecord& record) {
  json endings = json::array();
  for (const auto& ending : record.endings) endings.push_back(ending ? json(*ending) : json());
  return endings;
}

json to_document(const RunRecord& record) {
  return {{"job", record.job},
          {"state", record.state},
          {"attempt", record.attempt},
          {"port", record.port},
          {"started", record.started},
          {"ended", record.ended},
          {"cause", record.cause},
          {"exit_status", record.exit_status},
          {"client", record.client},
          {"client_host", record.client_host},
          {"endings", endings_json(record)}};
}

RunRecord from_document(const json& document) {
  RunRecord record;
  record.job = document.at("job").get<Job>();
  record.state = document.at("state").get<std::string>();
  record.attempt = document.at("attempt").get<int>();
  record.port = document.at("port").get<int>();
  record.started = document.at("started").get<double>();
  record.ended = document.at("ended").get<double>();
  record.cause = document.at("cause").get<std::string>();
  record.exit_status = document.at("exit_status").get<int>();
  record.client = document.at("client").get<int>();
  record.client_host = document.at("client_host").get<std::string>();
  for (const json& ending : document.at("endings"))
    record.endings.push_back(ending.is_null() ? std::nullopt : std::optional(ending.get<Ending>()));
  return record;
}

// Commands and values may contain any bytes, but JSON only UTF-8. They are stored as Latin-1 letters of the
// same value.
std::string widened(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text += c;
    } else {
      text += static_cast<char>(0xC0 | (byte >> 6));
      text += static_cast<char>(0x80 | (byte & 0x3F));
    }
  }
  return text;
}

std::string narrowed(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80 || i + 1 == text.size()) {
      bytes += text[i];
    } else {
      bytes += static_cast<char>(((byte & 0x03) << 6) | (static_cast<unsigned char>(text[++i]) & 0x3F));
    }
  }
  return bytes;
}

// Applies `change` to all texts of the document.
void change_texts(json& value, std::string (*change)(const std::string&)) {
  if (value.is_string()) {
    value = change(value.get<std::string>());
  } else if (value.is_structured()) {
    for (auto& inner : value) change_texts(inner, change);
  }
}

std::string ids_of(const std::vector<RunRecord>& runs) {
  if (runs.empty()) return base::str("there is no run in ", runs_folder());
  std::vector<std::string> ids;
  for (size_t i = 0; i < std::min<size_t>(runs.size(), 5); ++i) ids.push_back(runs[i].job.id);
  return base::str("the latest are ", base::join(ids, ", "));
}

}  // namespace

std::string runs_folder() { return base::join_path(base::user_state_folder(), "runs"); }

std::string run_folder(const std::string& id) { return base::join_path(runs_folder(), id); }

std::string worker_log(const std::string& id, int worker, int attempt) {
  const std::string again = attempt == 0 ? "" : base::str(".restart-", attempt);
  return base::join_path(run_folder(id), base::str("worker-", worker, again, ".log"));
}

base::Status save(const RunRecord& record) {
  json document = to_document(record);
  change_texts(document, widened);
  const std::string path = base::join_path(run_folder(record.job.id), "run.json");
  const std::string text = document.dump(2) + "\n";
  const std::string reserve = reserve_of(record.job.id);
  auto saved = base::write_private_file(path, text);  // variables of --env may be secrets
  if (!saved && ::unlink(reserve.c_str()) == 0) saved = base::write_private_file(path, text);
  if (record.is_over()) ::unlink(reserve.c_str());
  return saved;
}

base::Status reserve_space(const std::string& id) {
  const std::string path = reserve_of(id);
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return base::fail_errno(errno, "write", path);
  const int error = ::posix_fallocate(file, 0, kReserve);
  ::close(file);
  if (error != 0) return base::fail_errno(error, "keep room for the run's record in", path);
  return {};
}

base::Result<RunRecord> load(const std::string& id) {
  const std::string path = base::join_path(run_folder(id), "run.json");
  SLUICE_TRY(const std::string text, base::read_file(path));
  try {
    json document = base::parse_json(text);
    change_texts(document, narrowed);
    RunRecord record = from_document(document);
    if (record.job.workers.empty()) return base::fail(Code::kDataLoss, path, " names no worker");
    record.endings.resize(record.job.workers.size());
    return record;
  } catch (const json::exception& error) {
    return base::fail(Code::kDataLoss, path, " is not what `sluice run` writes: ", error.what());
  }
}

std::vector<RunRecord> list_runs() {
  std::vector<RunRecord> runs;
  const auto names = base::list_directory(runs_folder());
  if (!names) return runs;
  for (const std::string& name : *names)
    if (auto record = load(name)) runs.push_back(std::move(*record));
  std::stable_sort(runs.begin(), runs.end(),
                   [](const RunRecord& a, const RunRecord& b) { return a.started > b.started; });
  return runs;
}

base::Result<RunRecord> find_run(const std::string& name) {
  auto runs = list_runs();
  std::vector<RunRecord> found;
  for (RunRecord& run : runs) {
    if (run.job.id == name) return std::move(run);
    if (base::starts_with(run.job.id, name)) found.push_back(run);
  }
  if (!found.empty() && (name.empty() || found.size() == 1)) return std::move(found.front());
  if (found.empty())
    return base::fail(Code::kNotFound, name.empty() ? "no run is known" : "no run is named " + name, "; ",
                      ids_of(runs));
  return base::fail(Code::kInvalidArgument, found.size(), " runs have names that begin with ", name, ": ",
                    ids_of(found));
}

base::Result<std::optional<RunLock>> RunLock::take(const std::string& id) {
  const std::string path = base::join_path(run_folder(id), "lock");
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) return base::fail_errno(errno, "open", path);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return std::optional(RunLock(descriptor));
  const int number = errno;
  ::close(descriptor);
  if (number != EWOULDBLOCK) return base::fail_errno(number, "lock", path);
  return std::optional<RunLock>();
}

RunLock::RunLock(RunLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

RunLock& RunLock::operator=(RunLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

RunLock::~RunLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void RunLock::touch() const { ::futimens(descriptor_, nullptr); }

double last_attended(const std::string& id) {
  struct stat lock {};
  if (::stat(base::join_path(run_folder(id), "lock").c_str(), &lock) != 0) return 0;
  return static_cast<double>(lock.st_mtim.tv_sec);
}

bool is_attended(const std::string& id) {
  const auto lock = RunLock::take(id);
  return lock && !*lock;
}

}  // namespace sluice::pod
