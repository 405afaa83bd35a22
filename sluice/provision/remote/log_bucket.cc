#include "sluice/provision/remote/log_bucket.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/cloud/stores/growing_object.h"
#include "sluice/pod/record.h"

namespace sluice::provision {
namespace {

constexpr double kUnattendedSeconds = 600;
constexpr int kTries = 8;              // to append a piece to an object that another copier changes meanwhile
constexpr double kWholeSeconds = 300;  // a log that is uploaded as a whole may lag this long
constexpr double kLook = 0.5;          // seconds between two checks whether the run is over

// Returns whether the request's objects are not the ones seen before: another copier was faster, or the
// request was carried out but its answer lost, so that it was sent again.
bool is_overtaken(Code code) { return code == Code::kFailedPrecondition || code == Code::kNotFound; }

}  // namespace

base::Status LogBucket::copy(bool all) {
  SLUICE_TRY(const auto files, base::list_directory(folder_));
  for (const std::string& file : files)
    if (file.ends_with(".log")) SLUICE_OK(copy(file, all));
  return {};
}

base::Status LogBucket::copy(const std::string& file, bool all) {
  const std::string path = base::join_path(folder_, file);
  const cloud::ObjectName name = target_.beside(base::str(target_.object, '/', file));
  Object& object = objects_[file];
  SLUICE_TRY(const std::uint64_t size, base::file_size(path));
  if (size == 0) return {};
  for (int failed = 0;;) {
    if (!object.is_known) {
      SLUICE_TRY(const bool has_grown, ask_for(name, object, path));
      if (has_grown) failed = 0;  // another copier was faster
    }
    if (object.facts.size >= size) return {};
    base::Status sent;
    const bool appends = can_append(object);
    if (appends) {
      auto facts = store_.append(path, size, name, object.facts);
      if (facts) object.facts = std::move(*facts);
      if (!facts) sent = tl::unexpected<Error>(facts.error());
    } else {
      const std::uint64_t held = object.facts.size;
      const bool soon = base::monotonic_seconds() - object.replaced < kWholeSeconds;
      if (!all && soon && !cloud::has_grown_enough(store_, held, size)) return {};
      sent = replace(name, object, path, size);
    }
    if (sent) continue;
    const Code code = sent.error().code();
    object.is_known = false;  // ask the bucket again
    if (appends && !is_overtaken(code) && code != Code::kUnavailable) {
      object.refuses = true;  // the whole log may still be accepted
      continue;
    }
    if (!is_overtaken(code) || ++failed == kTries) return sent;
  }
}

bool LogBucket::can_append(const Object& object) const {
  const auto least = store_.least_appended();
  return least && !object.refuses && object.facts.size >= *least;
}

// The run's logs are only ever appended to, so the bucket has their beginning. The local size is taken after
// the bucket's, which another copier may have increased meanwhile.
base::Result<bool> LogBucket::ask_for(const cloud::ObjectName& name, Object& object,
                                      const std::string& path) {
  auto facts = store_.stat(name);
  if (!facts && facts.error().code() != Code::kNotFound) return tl::unexpected<Error>(facts.error());
  SLUICE_TRY(const std::uint64_t local_size, base::file_size(path));
  const std::uint64_t before = object.facts.size;
  object = {.refuses = object.refuses};
  if (facts && facts->size <= local_size)
    object.facts = std::move(*facts);
  else if (facts)
    object.facts.generation = facts->generation;
  object.is_known = true;
  return object.facts.size > before;
}

base::Status LogBucket::replace(const cloud::ObjectName& name, Object& object, const std::string& path,
                                std::uint64_t size) {
  cloud::UploadOptions options;
  options.if_generation = object.facts.generation;
  options.grows = true;
  SLUICE_TRY(object.facts, store_.upload_part(path, 0, size, name, options));
  object.replaced = base::monotonic_seconds();
  return {};
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
