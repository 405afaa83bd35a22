#include "sluice/base/files/user_folders.h"

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"

namespace sluice::base {

std::string user_cache_folder() {
  if (const auto cache = environment("XDG_CACHE_HOME")) return join_path(*cache, "sluice");
  if (const auto home = environment("HOME")) return join_path(*home, ".cache/sluice");
  return "";
}

std::string user_state_folder() {
  const auto state = environment("XDG_STATE_HOME");
  return join_path(state.value_or(expand_home("~/.local/state")), "sluice");
}

}  // namespace sluice::base
