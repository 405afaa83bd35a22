#include "sluice/train/top_checkpoints.h"

#include <algorithm>
#include <filesystem>

#include "sluice/base/file.h"
#include "sluice/base/number.h"
#include "sluice/base/strings.h"
#include "sluice/session/checkpoint.h"

namespace sluice::train {
namespace top_checkpoints_detail {

constexpr const char* kPrefix = "top-";

base::Status remove(const std::string& folder) {
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  if (error) return base::fail_errno(error.value(), "remove", folder);
  return {};
}

}  // namespace top_checkpoints_detail

std::string TopCheckpoints::folder(int64_t step) const {
  const std::string number = std::to_string(step);
  const std::string zeros(number.size() < 9 ? 9 - number.size() : 0, '0');
  return base::join_path(logdir_, base::str(top_checkpoints_detail::kPrefix, zeros, number));
}

base::Result<TopCheckpoints> TopCheckpoints::open(const std::string& logdir, int64_t keep,
                                                  const Monitor& monitor, int64_t step) {
  TopCheckpoints top(logdir, keep, monitor);
  SLUICE_TRY(const auto names, base::list_directory(logdir));
  for (const std::string& name : names) {
    if (!base::starts_with(name, top_checkpoints_detail::kPrefix)) continue;
    const std::string path = base::join_path(logdir, name);
    if (!base::is_directory(path)) continue;
    const auto progress = sessions::read_progress(path);
    const bool is_ours = progress && progress->value && progress->monitor == monitor.name &&
                         progress->step <= step && path == top.folder(progress->step);
    if (is_ours)
      top.best_.push_back({*progress->value, progress->step});
    else
      top.displaced_.push_back(path);
  }
  top.rank();
  SLUICE_OK(top.remove_displaced());
  return top;
}

void TopCheckpoints::rank() {
  std::sort(best_.begin(), best_.end(), [this](const One& a, const One& b) {
    if (a.value == b.value) return a.step < b.step;
    return monitor_.is_better(a.value, b.value);
  });
  for (; static_cast<int64_t>(best_.size()) > keep_; best_.pop_back())
    displaced_.push_back(folder(best_.back().step));
}

std::optional<std::string> TopCheckpoints::add(double value, int64_t step) {
  best_.push_back({value, step});
  rank();
  const std::string own = folder(step);
  const auto refused = std::find(displaced_.begin(), displaced_.end(), own);
  if (refused == displaced_.end()) return own;
  displaced_.erase(refused);
  return std::nullopt;
}

base::Status TopCheckpoints::remove_displaced() {
  while (!displaced_.empty()) {
    SLUICE_OK(top_checkpoints_detail::remove(displaced_.back()));
    displaced_.pop_back();
  }
  return {};
}

}  // namespace sluice::train
