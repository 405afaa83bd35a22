#include "sluice/train/tracking/mlflow_spool.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/exact_integer.h"
#include "sluice/train/log/lines.h"

namespace sluice::train {
namespace mlflow_spool_detail {

using Json = nlohmann::json;

constexpr std::size_t kReadAtOnce = 256 << 10;

std::string lines_path(const std::string& folder) { return base::join_path(folder, "mlflow.jsonl"); }
std::string state_path(const std::string& folder) { return base::join_path(folder, "mlflow.json"); }

std::string text_of(const Json& line) {
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Returns a number of at least 0 and below 2^53, which other programs keep exactly; 0 for any other value.
int64_t number_at(const Json& state, const char* name) {
  const auto found = state.find(name);
  const bool good = found != state.end() && found->is_number_unsigned() &&
                    found->get<uint64_t>() < uint64_t{base::kMaxExactInteger};
  return good ? found->get<int64_t>() : 0;
}

bool are_texts(const Json& line, const char* name) {
  const auto found = line.find(name);
  return found == line.end() ||
         (found->is_object() &&
          std::all_of(found->begin(), found->end(), [](const Json& value) { return value.is_string(); }));
}

// Whether a line has one of the forms of mlflow_spool.h: the sender does not check further.
bool is_line(const Json& line) {
  if (!line.is_object() || number_at(line, "n") == 0) return false;
  const auto is_whole = [&](const char* name) {
    return line.contains(name) && line[name].is_number_integer();
  };
  const auto metrics = line.find("metrics");
  const bool good_metrics =
      metrics == line.end() || (metrics->is_object() && is_whole("step") && is_whole("time") &&
                                std::all_of(metrics->begin(), metrics->end(), [](const Json& value) {
                                  return value.is_number() || value.is_string();
                                }));
  const bool good_status = !line.contains("status") || (line["status"].is_string() && is_whole("time"));
  return good_metrics && good_status && are_texts(line, "params") && are_texts(line, "tags");
}

// Returns the whole lines of a text, and their bytes.
std::vector<Json> lines_in(std::string_view text, std::size_t* bytes) {
  std::vector<Json> lines;
  *bytes = 0;
  for (std::size_t end; (end = text.find('\n', *bytes)) != std::string_view::npos; *bytes = end + 1) {
    Json line = base::parse_json(text.substr(*bytes, end - *bytes));
    if (is_line(line)) lines.push_back(std::move(line));
  }
  return lines;
}

base::Result<Json> read_state(const std::string& folder) {
  SLUICE_TRY(const std::string text, base::read_file(state_path(folder)));
  Json state = base::parse_json(text);
  if (!state.is_object())
    return base::fail(Code::kDataLoss, state_path(folder),
                      ": expected a JSON object: without the file the next start makes a new run in MLflow");
  return state;
}

std::string text_at(const Json& state, const char* name) {
  const auto found = state.find(name);
  return found != state.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace mlflow_spool_detail

std::string MlflowSpool::lines_path() const { return mlflow_spool_detail::lines_path(folder_); }
std::string MlflowSpool::refused_path() const { return base::join_path(folder_, "mlflow-refused.jsonl"); }

int64_t MlflowSpool::left_in(const std::string& folder) {
  namespace detail = mlflow_spool_detail;
  if (!base::path_exists(detail::state_path(folder))) return 0;
  const auto state = detail::read_state(folder);
  if (!state || !base::path_exists(detail::lines_path(folder))) return 0;
  const int64_t sent = detail::number_at(*state, "sent");
  int64_t left = 0;
  const auto pass = each_line(detail::lines_path(folder), [&](const std::string& text) -> base::Status {
    const auto line = base::parse_json(text);
    if (detail::is_line(line) && detail::number_at(line, "n") > sent) ++left;
    return {};
  });
  return pass ? left : 0;
}

base::Result<std::unique_ptr<MlflowSpool>> MlflowSpool::create(const std::string& folder,
                                                               const MlflowPlace& place) {
  std::unique_ptr<MlflowSpool> spool(new MlflowSpool(folder));
  SLUICE_OK(base::make_directories(folder));
  SLUICE_OK(spool->lock());
  // Clears the lines first: they belong to the run that the other file still names.
  SLUICE_OK(base::write_file_atomically(spool->lines_path(), ""));
  SLUICE_OK(spool->set_place(place));
  return spool;
}

base::Result<std::unique_ptr<MlflowSpool>> MlflowSpool::open(const std::string& folder, int64_t last_step) {
  std::unique_ptr<MlflowSpool> spool(new MlflowSpool(folder));
  if (!base::path_exists(mlflow_spool_detail::state_path(folder)))
    return base::fail(Code::kNotFound, folder, " has no mlflow.json");
  SLUICE_OK(spool->lock());
  SLUICE_OK(spool->load(last_step));
  return spool;
}

base::Status MlflowSpool::lock() {
  SLUICE_TRY(lock_, base::FolderLock::take(folder_));
  if (lock_) return {};
  return base::fail(
      Code::kFailedPrecondition, folder_,
      ": a training that runs in it, or `sluice mlflow`, sends its rows to MLflow at the moment; "
      "when that has ended, start this again if rows are left");
}

base::Status MlflowSpool::load(int64_t last_step) {
  namespace detail = mlflow_spool_detail;
  SLUICE_TRY(const auto state, detail::read_state(folder_));
  place_ = {.uri = detail::text_at(state, "uri"),
            .experiment = detail::text_at(state, "experiment"),
            .run_name = detail::text_at(state, "run_name"),
            .key = detail::text_at(state, "key"),
            .began = detail::number_at(state, "began"),
            .asked = state.contains("asked") && state["asked"] == true,
            .run_id = detail::text_at(state, "run_id"),
            .parameters = {}};
  if (const auto parameters = state.find("params"); parameters != state.end() && parameters->is_object())
    for (const auto& [name, value] : parameters->items())
      if (value.is_string()) place_.parameters[name] = value.get<std::string>();
  sent_ = last_ = detail::number_at(state, "sent");
  if (!base::path_exists(lines_path())) return base::write_file_atomically(lines_path(), "");
  SLUICE_TRY(
      [[maybe_unused]] const auto pass,
      rewrite_lines(lines_path(), [&](const std::string& text, std::string& out) -> base::Status {
        const auto line = base::parse_json(text);
        if (!detail::is_line(line)) return {};
        const int64_t number = detail::number_at(line, "n");
        last_ = std::max(last_, number);
        if (number <= sent_ || (line.contains("metrics") && detail::number_at(line, "step") > last_step))
          return {};
        out += detail::text_of(line);
        ++left_;
        return {};
      }));
  return {};
}

base::Status MlflowSpool::set_place(MlflowPlace place) {
  place_ = std::move(place);
  return save();
}

base::Status MlflowSpool::save() const {
  const nlohmann::json state = {
      {"uri", place_.uri},       {"experiment", place_.experiment}, {"run_name", place_.run_name},
      {"key", place_.key},       {"began", place_.began},           {"asked", place_.asked},
      {"run_id", place_.run_id}, {"params", place_.parameters},     {"sent", sent_}};
  return base::write_file_atomically(
      mlflow_spool_detail::state_path(folder_),
      state.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

base::Status MlflowSpool::append(nlohmann::json line) {
  const std::lock_guard lock(mutex_);
  line["n"] = last_ + 1;
  std::ofstream out(lines_path(), std::ios::app);
  out << mlflow_spool_detail::text_of(line) << std::flush;
  if (!out) return base::fail_errno(errno, "write", lines_path());
  ++last_;
  ++left_;
  return {};
}

int64_t MlflowSpool::left() const {
  const std::lock_guard lock(mutex_);
  return left_;
}

base::Result<const nlohmann::json*> MlflowSpool::peek(std::size_t index) {
  if (index < ahead_.size()) return &ahead_[index];
  std::ifstream in(lines_path(), std::ios::binary);
  in.seekg(static_cast<std::streamoff>(read_));
  std::string text;
  for (std::string line; text.size() < mlflow_spool_detail::kReadAtOnce && std::getline(in, line);) {
    if (in.eof()) break;  // the line is being written
    text += line + "\n";
  }
  if (in.bad()) return base::fail_errno(errno, "read", lines_path());
  std::size_t bytes = 0;
  for (auto& line : mlflow_spool_detail::lines_in(text, &bytes)) ahead_.push_back(std::move(line));
  read_ += bytes;
  return index < ahead_.size() ? &ahead_[index] : nullptr;
}

base::Status MlflowSpool::arrived(std::size_t count) {
  sent_ = ahead_[count - 1]["n"].get<int64_t>();
  ahead_.erase(ahead_.begin(), ahead_.begin() + static_cast<std::ptrdiff_t>(count));
  {
    const std::lock_guard lock(mutex_);
    left_ -= static_cast<int64_t>(count);
  }
  return save();
}

base::Status MlflowSpool::refuse_first() {
  std::ofstream out(refused_path(), std::ios::app);
  out << mlflow_spool_detail::text_of(ahead_.front()) << std::flush;
  if (!out) return base::fail_errno(errno, "write", refused_path());
  return arrived(1);
}

}  // namespace sluice::train
