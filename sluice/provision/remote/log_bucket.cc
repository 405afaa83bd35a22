#include "sluice/provision/remote/log_bucket.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/log.h"
#include "sluice/base/text/quantity.h"
#include "sluice/pod/record.h"

namespace sluice::provision {
namespace {

constexpr double kUnattendedSeconds = 600;
constexpr double kLook = 0.5;  // seconds between two checks whether the run is over

constexpr std::string_view kSuffix = ".log", kFrom = ".from-";  // as pod::log_parts has them

// Returns the name of the log that this file is a part of, without its suffix.
std::string log_of(const std::string& file) {
  return file.substr(0, std::min(file.rfind(kFrom), file.size() - kSuffix.size()));
}

// Returns the file of each log that grows. `files`: sorted.
std::map<std::string, std::string> latest_files(const std::vector<std::string>& files) {
  std::map<std::string, std::string> latest;
  for (const std::string& file : files) {
    if (!file.ends_with(kSuffix)) continue;
    const bool is_first = file.find(kFrom) == std::string::npos;
    if (is_first)
      latest.try_emplace(log_of(file), file);  // sorted after the others
    else
      latest[log_of(file)] = file;
  }
  return latest;
}

}  // namespace

base::Status LogBucket::copy(bool all) {
  SLUICE_TRY(const auto files, base::list_directory(folder_));
  const auto latest = latest_files(files);
  for (const std::string& file : files)
    if (file.ends_with(kSuffix)) SLUICE_OK(copy(file, all || latest.at(log_of(file)) != file));
  forget_removed(files);
  return {};
}

base::Status LogBucket::copy(const std::string& file, bool all) {
  const std::string path = base::join_path(folder_, file);
  const auto size = base::file_size(path);
  if (!size)
    return base::path_exists(path) ? base::Status(tl::unexpected<Error>(size.error())) : base::Status();
  if (*size == 0) return {};
  const cloud::ObjectName name = target_.beside(base::str(target_.object, '/', file));
  auto found = logs_.find(file);
  if (found == logs_.end())
    found =
        logs_.try_emplace(file, Log{{store_, name, base::monotonic_seconds, cloud::Writers::kCopiers}}).first;
  Log& log = found->second;
  log.seen = *size;
  const auto sent = send(log, path, all);
  return sent || base::path_exists(path) ? sent : base::Status();  // else it was removed meanwhile
}

base::Status LogBucket::send(Log& log, const std::string& path, bool all) {
  if (!all && log.copied > 0) {
    SLUICE_TRY(const bool due, log.object.is_due(path, log.seen));
    if (!due) return {};
  }
  SLUICE_OK(log.object.send(path, log.seen));
  log.copied = log.seen;
  return {};
}

void LogBucket::forget_removed(const std::vector<std::string>& files) {
  for (auto log = logs_.begin(); log != logs_.end();) {
    if (std::binary_search(files.begin(), files.end(), log->first)) {
      ++log;
      continue;
    }
    if (log->second.copied < log->second.seen)
      base::warn("--log-bucket: ", log->first, " was removed (--log-size) before its last ",
                 base::size_text(log->second.seen - log->second.copied), " were copied");
    log = logs_.erase(log);
  }
}

base::Result<cloud::ObjectName> log_target(const std::string& url, const std::string& run) {
  const auto name = cloud::parse_object_url(url);
  if (!name || name->scheme == "hf")
    return base::fail(Code::kInvalidArgument, "--log-bucket ", url,
                      ": expected gs://BUCKET/PREFIX, s3://BUCKET/PREFIX or az://ACCOUNT/CONTAINER/PREFIX");
  std::string prefix = name->object;
  while (prefix.ends_with('/')) prefix.pop_back();
  return name->beside(prefix.empty() ? run : base::str(prefix, '/', run));
}

base::Status begin_log_bucket(const std::string& url, const std::string& run, int workers) {
  SLUICE_TRY(cloud::ObjectName target, log_target(url, run));
  SLUICE_TRY(const cloud::Store* store, cloud::store_of(target));
  target.object += "/run.json";
  const nlohmann::json facts = {{"run", run}, {"workers", workers}, {"started", base::wall_seconds()}};
  const auto sent = store->upload_text(facts.dump(2) + "\n", target);
  if (!sent) return base::fail_at(sent, "--log-bucket ", url);
  return {};
}

base::Status copy_logs(const std::string& url, const std::string& run, double seconds) {
  SLUICE_TRY(const cloud::ObjectName target, log_target(url, run));
  SLUICE_TRY(const cloud::Store* store, cloud::store_of(target));
  LogBucket bucket(*store, pod::run_folder(run), target);
  double copied = base::monotonic_seconds(), attended = copied, asked = copied;
  bool has_complained = false;
  while (true) {
    const auto record = pod::load(run);
    const double now = base::monotonic_seconds();
    // Checks seldom: the check holds the run's lock for a moment, during which no client could take it.
    if (now - asked > kUnattendedSeconds / 10) {
      asked = now;
      if (pod::is_attended(run)) attended = now;
    }
    if ((record && record->is_over()) || now - attended > kUnattendedSeconds) return bucket.copy();
    if (now - copied >= seconds) {
      copied = now;
      const auto done = bucket.copy(/*all=*/false);
      if (!done && !has_complained)
        std::fprintf(stderr, "sluice run: the logs do not get into the bucket at the moment: %s\n",
                     done.error().what());
      has_complained = !done;
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(kLook, seconds)));
  }
}

}  // namespace sluice::provision
