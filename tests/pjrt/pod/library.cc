#include "tests/pjrt/pod/library.h"

namespace emulated_pod {

Result<std::shared_ptr<Program>> Library::compile(std::string_view text, std::string_view options) {
  return once(Engine::key(text, options), [&] { return engine_.compile(text, options); });
}

Result<std::shared_ptr<Program>> Library::load(std::string_view serialized) {
  SLUICE_TRY(const std::string key, Engine::key_of(serialized));
  return once(key, [&] { return engine_.load(serialized); });
}

Library::Made Library::once(const std::string& key, const std::function<Made()>& make) {
  std::promise<Made> promise;
  std::shared_future<Made> other;
  {
    std::lock_guard lock(mutex_);
    if (auto found = made_[key].lock()) return found;
    const auto [place, first] = making_.try_emplace(key);
    if (first) {
      place->second = promise.get_future().share();
    } else {
      other = place->second;
    }
  }
  if (other.valid()) return other.get();
  Made made = make();
  std::lock_guard lock(mutex_);
  if (made) made_[key] = *made;
  making_.erase(key);
  promise.set_value(made);
  return made;
}

}  // namespace emulated_pod
