#include "sluice/train/checkpoints/top_checkpoints.h"

#include <algorithm>
#include <filesystem>

#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"

namespace sluice::train {
namespace top_checkpoints_detail {

class Folder final : public TopPlace {
 public:
  explicit Folder(std::string logdir) : logdir_(std::move(logdir)) {}
  base::Result<std::vector<std::string>> names() const override {
    SLUICE_TRY(const auto all, base::list_directory(logdir_));
    std::vector<std::string> names;
    for (const std::string& name : all)
      if (base::starts_with(name, kPrefix) && base::is_directory(base::join_path(logdir_, name)))
        names.push_back(name);
    return names;
  }
  base::Result<std::optional<sessions::Progress>> progress(const std::string& name) const override {
    auto found = sessions::read_progress(base::join_path(logdir_, name));
    return found ? std::optional(std::move(*found)) : std::nullopt;
  }
  base::Status remove(const std::string& name) const override {
    const std::string folder = base::join_path(logdir_, name);
    std::error_code error;
    std::filesystem::remove_all(folder, error);
    if (error) return base::fail_errno(error.value(), "remove", folder);
    return {};
  }

 private:
  const std::string logdir_;
};

std::string name_at(int64_t step) {
  const std::string number = std::to_string(step);
  const std::string zeros(number.size() < 9 ? 9 - number.size() : 0, '0');
  return base::str(TopPlace::kPrefix, zeros, number);
}

}  // namespace top_checkpoints_detail

std::unique_ptr<TopPlace> top_in_folder(const std::string& logdir) {
  return std::make_unique<top_checkpoints_detail::Folder>(logdir);
}

base::Result<TopCheckpoints> TopCheckpoints::open(std::unique_ptr<TopPlace> place, int64_t keep,
                                                  const Monitor& monitor, int64_t step, bool test_due) {
  TopCheckpoints top(std::move(place), keep, monitor);
  SLUICE_TRY(const auto names, top.place_->names());
  for (const std::string& name : names) {
    SLUICE_TRY(const auto progress, top.place_->progress(name));
    const bool is_ours = progress && progress->value && progress->monitor == monitor.name &&
                         progress->step <= (test_due ? step - 1 : step) &&
                         name == top_checkpoints_detail::name_at(progress->step);
    if (is_ours)
      top.best_.push_back({*progress->value, progress->step});
    else
      top.displaced_.push_back(name);
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
    displaced_.push_back(top_checkpoints_detail::name_at(best_.back().step));
}

std::optional<std::string> TopCheckpoints::add(double value, int64_t step) {
  best_.push_back({value, step});
  rank();
  const std::string own = top_checkpoints_detail::name_at(step);
  const auto refused = std::find(displaced_.begin(), displaced_.end(), own);
  if (refused == displaced_.end()) return own;
  displaced_.erase(refused);
  return std::nullopt;
}

base::Status TopCheckpoints::remove_displaced() {
  while (!displaced_.empty()) {
    SLUICE_OK(place_->remove(displaced_.back()));
    displaced_.pop_back();
  }
  return {};
}

}  // namespace sluice::train
