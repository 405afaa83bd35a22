#include "sluice/data/tools/copy.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>

#include "sluice/base/files/file.h"
#include "sluice/base/files/safe_join.h"
#include "sluice/base/text/strings.h"
#include "sluice/base/thread.h"
#include "sluice/cloud/store.h"
#include "sluice/data/shards/remote_source.h"

namespace sluice::data {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

struct Job {
  std::string from, to;
};

std::string last_part(const std::string& url) {
  const std::string path =
      is_on_network(url) && !cloud::is_object_url(url) ? url.substr(0, url.find('?')) : url;
  return path.substr(path.rfind('/') + 1);
}

bool is_bucket(const std::string& url) {
  const auto name = cloud::parse_object_url(url);
  return name && name->object.empty();
}

bool is_folder(const CopyOptions& options) {
  return options.from.size() > 1 || base::ends_with(options.to, "/") ||
         (!is_on_network(options.to) && base::is_directory(options.to)) ||
         (cloud::is_object_url(options.to) && is_bucket(options.to));
}

base::Result<std::vector<Job>> plan(const CopyOptions& options) {
  if (options.from.empty()) return base::fail(Code::kInvalidArgument, "nothing to copy");
  const bool object = cloud::is_object_url(options.to);
  const bool scheme = options.to.find("://") != std::string::npos;
  if (is_pipe(options.to) || (!object && (scheme || is_on_network(options.to))))
    return base::fail(Code::kInvalidArgument, "cannot copy to '", options.to,
                      "': expected a path, gs://…, s3://… or az://…");
  // Without this check the target gs://, which has no bucket, would take the first file's name as its bucket.
  if (object) {
    SLUICE_TRY([[maybe_unused]] const auto target, cloud::parse_object_url(options.to));
  }
  const bool folder = is_folder(options);
  std::vector<Job> jobs;
  std::set<std::string> targets;
  for (const std::string& from : options.from) {
    const std::string name = last_part(from);
    if (is_pipe(from) || from == "-" || name.empty() || (!is_on_network(from) && base::is_directory(from)))
      return base::fail(Code::kInvalidArgument, "cannot copy '", from, "': expected a file or an object");
    const std::string slash = base::ends_with(options.to, "/") ? "" : "/";
    Job job{from, folder ? options.to + slash + name : options.to};
    // Check the name: a store may call its objects "..".
    if (folder) SLUICE_OK(base::safe_join(options.to, name));
    if (!targets.insert(job.to).second)
      return base::fail(Code::kInvalidArgument, "two of the files would become '", job.to,
                        "': copy them into folders of their own");
    jobs.push_back(std::move(job));
  }
  if (folder && !is_on_network(options.to)) SLUICE_OK(base::make_directories(options.to));
  return jobs;
}

tl::unexpected<Error> exists(const std::string& to) {
  return base::fail(Code::kAlreadyExists, to, " is there already: --overwrite replaces it");
}

template <typename Sink>
base::Result<std::uint64_t> pump(const std::string& from, Sink& sink) {
  SLUICE_TRY(const auto source, open_stored_source(from));
  std::vector<char> piece(kPieceBytes);
  std::uint64_t bytes = 0;
  while (true) {
    SLUICE_TRY(const std::size_t got, source->read(piece.data(), piece.size()));
    if (got == 0) return bytes;
    SLUICE_OK(sink.write(piece.data(), got));
    bytes += got;
  }
}

base::Result<std::uint64_t> copy_to_disk(const Job& job, bool overwrite) {
  if (!overwrite && base::path_exists(job.to)) return exists(job.to);
  SLUICE_TRY(auto file, base::AtomicFile::create(job.to));
  SLUICE_TRY(const std::uint64_t bytes, pump(job.from, file));
  SLUICE_OK(file.commit());
  return bytes;
}

base::Result<std::uint64_t> copy_to_bucket(const Job& job, bool overwrite) {
  SLUICE_TRY(const cloud::ObjectName to, cloud::parse_object_url(job.to));
  SLUICE_TRY(const cloud::Store* store, cloud::store_to_write(to));
  cloud::UploadOptions upload;
  if (!overwrite) {
    // Checked before anything is sent, and again by the server when the object is made.
    const auto there = store->stat(to);
    if (there) return exists(job.to);
    if (there.error().code() != Code::kNotFound) return tl::unexpected<Error>(there.error());
    upload.if_generation = "0";
  }
  const auto finish = [&](base::Result<cloud::ObjectFacts> facts) -> base::Result<std::uint64_t> {
    if (facts) return facts->size;
    if (!overwrite && facts.error().code() == Code::kFailedPrecondition) return exists(job.to);
    return tl::unexpected<Error>(facts.error());
  };
  if (cloud::is_object_url(job.from)) {
    SLUICE_TRY(const cloud::ObjectName from, cloud::parse_object_url(job.from));
    if (store->copies(from, to)) return finish(store->copy(from, to, upload));
  }
  if (!is_on_network(job.from)) return finish(store->upload_file(job.from, to, upload));
  SLUICE_TRY(const auto sink, store->start_upload(to, upload));
  SLUICE_TRY([[maybe_unused]] const std::uint64_t bytes, pump(job.from, *sink));
  return finish(sink->finish());
}

base::Result<CopyReport> run(const std::vector<Job>& jobs, const CopyOptions& options) {
  CopyReport report;
  std::optional<Error> error;
  std::mutex mutex;
  std::atomic<bool> failed{false};
  const std::size_t threads =
      std::min<std::size_t>(jobs.size(), static_cast<std::size_t>(std::max(options.workers, 1)));
  base::ThreadPool pool("sluice-cp", threads);
  base::parallel_for(pool, jobs.size(), [&](std::size_t i) {
    if (failed) return;
    const Job& job = jobs[i];
    const auto bytes = cloud::is_object_url(job.to) ? copy_to_bucket(job, options.overwrite)
                                                    : copy_to_disk(job, options.overwrite);
    const std::lock_guard lock(mutex);
    if (!bytes) {
      failed = true;
      if (!error) error = bytes.error();
      return;
    }
    ++report.files;
    report.bytes += *bytes;
    if (options.progress)
      options.progress(report.files, static_cast<std::int64_t>(jobs.size()), report.bytes);
  });
  if (!error) return report;
  if (report.files == 0) return tl::unexpected<Error>(*error);
  return base::fail(error->code(), error->what(), " (", report.files, " of ", jobs.size(),
                    " files were copied before)");
}

}  // namespace

base::Result<CopyReport> copy_files(const CopyOptions& options) {
  SLUICE_TRY(const auto jobs, plan(options));
  return run(jobs, options);
}

}  // namespace sluice::data
