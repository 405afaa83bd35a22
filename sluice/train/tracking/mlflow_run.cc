#include "sluice/train/tracking/mlflow_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>

#include "sluice/base/clock.h"
#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/formats/json_bytes.h"
#include "sluice/base/log.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/thread.h"
#include "sluice/cloud/credentials/token_request.h"
#include "sluice/train/checkpoints/remote_folder.h"
#include "sluice/train/log/metrics_writer.h"

namespace sluice::train {
namespace mlflow_run_detail {

using Json = nlohmann::json;

constexpr std::size_t kMaxLines = 1000;
constexpr std::size_t kValuesInLine = 500;  // so that every line fits into a request
constexpr char kKeyTag[] = "sluice.run_key";

int64_t milliseconds(double wall) { return std::llround(wall * 1e3); }

std::string random_key() {
  std::random_device source;
  std::string key;
  for (int i = 0; i < 4; ++i) {
    char part[9];
    std::snprintf(part, sizeof part, "%08x", source());
    key += part;
  }
  return key;
}

// Values in the form of Protocol Buffers' JSON, which MLflow reads.
Json number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

std::string text_of(const HyperParameter& parameter) {
  if (const auto* number = std::get_if<double>(&parameter.second)) return number_text(*number);
  if (const auto* flag = std::get_if<bool>(&parameter.second)) return *flag ? "true" : "false";
  return cut_text(base::json_of_bytes(std::get<std::string>(parameter.second)), kMlflowValueBytes);
}

// A body of runs/log-batch that grows up to the limits.
class Batch {
 public:
  // Returns false if the line must go into the next request.
  bool add(const Json& line) {
    Json more = {{"metrics", Json::array()}, {"params", Json::array()}, {"tags", Json::array()}};
    if (const auto metrics = line.find("metrics"); metrics != line.end())
      for (const auto& [name, value] : metrics->items())
        more["metrics"].push_back(
            {{"key", name}, {"value", value}, {"timestamp", line["time"]}, {"step", line["step"]}});
    for (const char* kind : {"params", "tags"})
      if (const auto texts = line.find(kind); texts != line.end())
        for (const auto& [name, value] : texts->items())
          more[kind].push_back({{"key", name}, {"value", value}});
    const std::size_t bytes = more.dump(-1, ' ', false, Json::error_handler_t::replace).size();
    const auto count = [&](const char* name) { return body_[name].size() + more[name].size(); };
    const bool fits = bytes_ + bytes <= kMlflowBytes && count("metrics") <= kMlflowMetrics &&
                      count("params") <= kMlflowParameters && count("tags") <= kMlflowTags &&
                      count("metrics") + count("params") + count("tags") <= kMlflowItems;
    if (!fits && lines_ > 0) return false;
    for (const char* name : {"metrics", "params", "tags"})
      body_[name].insert(body_[name].end(), more[name].begin(), more[name].end());
    bytes_ += bytes;
    ++lines_;
    return true;
  }
  std::size_t lines() const { return lines_; }
  const Json& body() const { return body_; }

 private:
  Json body_ = {{"metrics", Json::array()}, {"params", Json::array()}, {"tags", Json::array()}};
  std::size_t lines_ = 0, bytes_ = 200;  // including the run's id
};

}  // namespace mlflow_run_detail

MlflowRun::MlflowRun(MlflowOptions options, std::unique_ptr<MlflowSpool> spool)
    : options_(std::move(options)),
      spool_(std::move(spool)),
      server_(options_.uri, options_.authorization, cancelled_, options_.limits),
      max_lines_(mlflow_run_detail::kMaxLines) {}

base::Result<std::unique_ptr<MlflowRun>> MlflowRun::open(const MlflowOptions& options,
                                                         const std::string& folder,
                                                         std::optional<int64_t> last_step) {
  SLUICE_OK(check_mlflow_uri(options.uri));
  SLUICE_OK(check_mlflow_secret(options.uri, options.authorization));
  std::unique_ptr<MlflowSpool> spool;
  if (last_step) {
    auto found = MlflowSpool::open(folder, *last_step);
    if (!found && found.error().code() != Code::kNotFound) return tl::unexpected<Error>(found.error());
    if (found) spool = std::move(*found);
  }
  const bool goes_on = spool != nullptr;
  if (!goes_on) {
    if (const int64_t left = MlflowSpool::left_in(folder); left > 0)
      base::warn(options.shown_folder, " had ", base::counted(left, "row"),
                 " of an earlier run that MLflow never got: they go with that run's other files");
    SLUICE_TRY(spool,
               MlflowSpool::create(folder, {.uri = options.uri,
                                            .experiment = base::json_of_bytes(options.experiment),
                                            .run_name = base::json_of_bytes(options.run_name),
                                            .key = mlflow_run_detail::random_key(),
                                            .began = mlflow_run_detail::milliseconds(base::wall_seconds()),
                                            .asked = false,
                                            .run_id = "",
                                            .parameters = {}}));
  } else if (spool->place().uri != options.uri) {
    MlflowPlace place = spool->place();
    place.uri = options.uri;  // the server may have another address now
    SLUICE_OK(spool->set_place(std::move(place)));
  }
  std::unique_ptr<MlflowRun> run(new MlflowRun(options, std::move(spool)));
  if (goes_on)
    SLUICE_OK(
        run->add({{"status", "RUNNING"}, {"time", mlflow_run_detail::milliseconds(base::wall_seconds())}}));
  return run;
}

base::Result<std::unique_ptr<MlflowRun>> MlflowRun::reopen(MlflowOptions options, const std::string& folder) {
  auto spool = MlflowSpool::open(folder, std::numeric_limits<int64_t>::max());
  if (!spool && spool.error().code() == Code::kNotFound)
    return base::fail(Code::kNotFound, options.shown_folder,
                      " is not the log folder of a run with --mlflow: it has no mlflow.json");
  if (!spool) return tl::unexpected<Error>(spool.error());
  const bool named_by_folder = options.uri.empty();
  if (named_by_folder) options.uri = (*spool)->place().uri;
  SLUICE_OK(check_mlflow_uri(options.uri));
  if (named_by_folder) {
    // Anybody may have written the folder: its server gets this user's secret only if the environment names
    // it, too.
    SLUICE_TRY(const std::string host, cloud::host_of_url(options.uri));
    const auto own = base::environment("MLFLOW_TRACKING_URI");
    const auto own_host = own ? cloud::host_of_url(*own) : base::Result<std::string>("");
    if (!options.authorization.empty() && (!own_host || *own_host != host)) {
      options.authorization.clear();
      base::warn("MLflow: ", host, " is named only by ", options.shown_folder,
                 ", so it gets no token and no password: give --mlflow ", options.uri,
                 " or MLFLOW_TRACKING_URI if it is yours");
    }
  }
  SLUICE_OK(check_mlflow_secret(options.uri, options.authorization));
  std::unique_ptr<MlflowRun> run(new MlflowRun(std::move(options), std::move(*spool)));
  run->start();
  return run;
}

MlflowRun::~MlflowRun() {
  if (!thread_.joinable()) return;
  if (const auto left = end("FAILED", 5); !left) base::warn("MLflow: ", left.error().what());
}

base::Status MlflowRun::add(nlohmann::json line) {
  SLUICE_OK(spool_->append(std::move(line)));
  {
    const std::lock_guard lock(mutex_);
    more_ = true;
  }
  wake_.notify_all();
  return {};
}

void MlflowRun::start() {
  thread_ = std::thread([this] { work(); });
}

base::Status MlflowRun::begin(const std::vector<HyperParameter>& parameters, const MlflowTexts& tags) {
  namespace detail = mlflow_run_detail;
  MlflowPlace place = spool_->place();
  MlflowTexts added, texts;
  for (const auto& [name, value] : tags)
    texts.emplace_back(mlflow_name(name), cut_text(base::json_of_bytes(value), kMlflowTagBytes));
  for (const HyperParameter& parameter : parameters) {
    const std::string name = mlflow_name(parameter.first), value = detail::text_of(parameter);
    const auto [known, is_new] = place.parameters.emplace(name, value);
    if (is_new)
      added.emplace_back(name, value);
    else if (known->second != value)
      texts.emplace_back(mlflow_name("resumed." + name), cut_text(value, kMlflowTagBytes));
  }
  // The lines are written first: a parameter may be sent twice, but must not be lost.
  SLUICE_OK(add_texts("params", added));
  SLUICE_OK(add_texts("tags", texts));
  SLUICE_OK(spool_->set_place(std::move(place)));
  start();
  return {};
}

base::Status MlflowRun::add_texts(const char* kind, const MlflowTexts& texts) {
  constexpr std::size_t kInLine = 20;
  for (std::size_t begin = 0; begin < texts.size(); begin += kInLine) {
    nlohmann::json named = nlohmann::json::object();
    for (std::size_t i = begin; i < std::min(texts.size(), begin + kInLine); ++i)
      named[texts[i].first] = texts[i].second;
    SLUICE_OK(add({{kind, std::move(named)}}));
  }
  return {};
}

base::Status MlflowRun::metrics(const std::vector<std::pair<std::string, double>>& values, int64_t step,
                                double wall) {
  namespace detail = mlflow_run_detail;
  for (std::size_t begin = 0; begin < values.size(); begin += detail::kValuesInLine) {
    nlohmann::json named = nlohmann::json::object();
    for (std::size_t i = begin; i < std::min(values.size(), begin + detail::kValuesInLine); ++i)
      named[mlflow_name(values[i].first)] = detail::number(values[i].second);
    SLUICE_OK(add({{"metrics", std::move(named)}, {"step", step}, {"time", detail::milliseconds(wall)}}));
  }
  return {};
}

base::Result<int64_t> MlflowRun::end(const std::string& status, double seconds) {
  if (!thread_.joinable()) return spool_->left();
  base::Status written;
  if (!status.empty())
    written = add({{"status", status}, {"time", mlflow_run_detail::milliseconds(base::wall_seconds())}});
  {
    std::unique_lock lock(mutex_);
    ending_ = true;
    wake_.notify_all();
    over_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return is_over_; });
    cancelled_ = true;
  }
  wake_.notify_all();
  thread_.join();
  spool_->close();
  SLUICE_OK(std::move(written));
  const int64_t left = spool_->left();
  if (left > 0)
    base::warn(base::counted(left, "row"), " for MLflow at ", options_.uri, " ", left == 1 ? "is" : "are",
               " still in ", base::join_path(options_.shown_folder, "mlflow.jsonl"), ": `sluice mlflow ",
               options_.shown_folder, "` sends them; a run that continues with --resume sends them too");
  return left;
}

// Waits the right time after the last try. Returns false to end.
bool MlflowRun::pause(After after, double seconds) {
  std::unique_lock lock(mutex_);
  const auto wait = [&](double most, const auto& condition) {
    wake_.wait_for(lock, std::chrono::duration<double>(most), condition);
  };
  const auto is_end = [this] { return ending_ || cancelled_; };
  if (after == After::kNothing) {
    wake_.wait(lock, [&] { return more_ || is_end(); });
    if (!more_) return false;
  }
  if (after == After::kSent) wait(seconds, is_end);
  if (after == After::kFailed) {
    wait(seconds, is_end);
    if (ending_) wait(std::min(seconds, 0.5), [this] { return cancelled_.load(); });
  }
  more_ = false;
  return !cancelled_;
}

void MlflowRun::work() {
  base::name_thread("sluice-mlflow");
  After after = After::kSent;
  int failures = 0;
  for (double seconds = 0; pause(after, seconds);) {
    const auto sent = send_some();
    after = !sent ? After::kFailed : *sent ? After::kSent : After::kNothing;
    seconds = options_.every;
    if (!sent) {
      tell(sent.error());
      seconds = std::min(options_.every * std::ldexp(1.0, std::min(failures++, 10)), options_.longest);
      // At the end, do not wait for a problem that will not pass by itself.
      const std::lock_guard lock(mutex_);
      if (ending_ && sent.error().code() != Code::kUnavailable) break;
    } else if (*sent) {
      failures = 0;
      if (std::exchange(told_, std::nullopt)) base::info("MLflow at ", options_.uri, " takes the rows again");
    }
  }
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  over_.notify_all();
}

base::Result<bool> MlflowRun::send_some() {
  SLUICE_TRY(const nlohmann::json* first, spool_->peek(0));
  if (first == nullptr) return false;
  if (!run_known_) SLUICE_OK(find_run());
  const std::string& run = spool_->place().run_id;
  if (first->contains("status")) {
    const auto done = server_.update_run(run, first->value("status", ""), first->value("time", int64_t{0}));
    if (!done) SLUICE_OK(refused(done.error(), 1));
    if (done) SLUICE_OK(spool_->arrived(1));
    return true;
  }
  mlflow_run_detail::Batch batch;
  while (batch.lines() < max_lines_) {
    SLUICE_TRY(const nlohmann::json* next, spool_->peek(batch.lines()));
    if (next == nullptr || next->contains("status") || !batch.add(*next)) break;
  }
  const auto done = server_.log_batch(run, batch.body());
  if (!done) SLUICE_OK(refused(done.error(), batch.lines()));
  if (done) {
    SLUICE_OK(spool_->arrived(batch.lines()));
    max_lines_ = std::min(2 * max_lines_, mlflow_run_detail::kMaxLines);
  }
  return true;
}

base::Status MlflowRun::find_run() {
  MlflowPlace place = spool_->place();
  if (place.run_id.empty()) {
    SLUICE_TRY(const std::string experiment, server_.experiment(place.experiment));
    if (place.asked) {
      SLUICE_TRY(place.run_id, server_.find_run(experiment, mlflow_run_detail::kKeyTag, place.key));
    }
    if (place.run_id.empty()) {
      place.asked = true;
      SLUICE_OK(spool_->set_place(place));
      SLUICE_TRY(place.run_id, server_.create_run(experiment, place.run_name, place.began,
                                                  {{mlflow_run_detail::kKeyTag, place.key}}));
    }
    SLUICE_OK(spool_->set_place(place));
    base::info("MLflow: ", options_.uri, "/#/experiments/", experiment, "/runs/", place.run_id);
  }
  run_known_ = true;
  return {};
}

// Handles a refusal: one line that the server refuses must not block the lines after it.
base::Status MlflowRun::refused(const Error& error, std::size_t lines) {
  if (error.code() == Code::kNotFound)
    return base::fail(Code::kNotFound, error.what(), " (the run is the one in ",
                      base::join_path(options_.shown_folder, "mlflow.json"),
                      "; without this file the next start makes a new one)");
  if (error.code() != Code::kInvalidArgument) return tl::unexpected<Error>(error);
  if (lines > 1) {
    max_lines_ = lines / 2;
    return {};
  }
  SLUICE_OK(server_.check_run(spool_->place().run_id));  // a deleted run takes no line at all
  if (refused_++ == 0)
    base::warn("MLflow refuses a row, which goes to ",
               base::join_path(options_.shown_folder, "mlflow-refused.jsonl"),
               ", as others will: ", error.what());
  return spool_->refuse_first();
}

void MlflowRun::tell(const Error& error) {
  if (error.code() == Code::kCancelled || told_ == error.code()) return;
  // One outage shows as different errors: refused, cut off, too slow, status 503 or 429. Warn only of the
  // first one.
  if (told_ && (error.code() == Code::kUnavailable || error.code() == Code::kResourceExhausted)) return;
  told_ = error.code();
  base::warn(
      "MLflow: ", error.what(),
      error.code() == Code::kPermissionDenied
          ? " (MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, say who "
            "you are)"
          : "",
      ". The rows stay in ", base::join_path(options_.shown_folder, "mlflow.jsonl"),
      " until it takes them; the training does not wait for it");
}

base::Result<int64_t> send_to_mlflow(const std::string& folder, const std::string& uri, double seconds) {
  std::unique_ptr<RemoteFolder> remote;
  if (RemoteFolder::is_remote(folder)) {
    SLUICE_TRY(remote, RemoteFolder::open(folder, /*leader=*/true));
  }
  SLUICE_TRY(const auto run, MlflowRun::reopen({.uri = uri,
                                                .experiment = "",
                                                .run_name = "",
                                                .authorization = mlflow_authorization(),
                                                .shown_folder = folder},
                                               remote ? remote->local() : folder));
  SLUICE_TRY(const int64_t left, run->end("", seconds));
  if (remote) SLUICE_OK(remote->finish());
  return left;
}

}  // namespace sluice::train
