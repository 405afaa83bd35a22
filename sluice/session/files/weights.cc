#include "sluice/session/files/weights.h"

#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/session/files/remote_checkpoint.h"
#include "sluice/session/pretrained/weight_files.h"
#include "sluice/session/stored/source_files.h"
#include "sluice/session/stored/stored_tensors.h"

namespace sluice::sessions {
namespace weights_detail {

base::Result<NamedTensors> download(const std::string& url) {
  SLUICE_TRY(const auto folder, base::TemporaryDirectory::create("sluice-weights"));
  SLUICE_TRY(const std::string path, fetch_weights(url, folder.path()));
  auto tensors = base::ends_with(path, ".json") ? read_all_stored(path) : read_tensors(path);
  if (!tensors) return base::fail(tensors.error().code(), url, ": ", tensors.error().what());
  return tensors;
}

}  // namespace weights_detail

tl::unexpected<Error> no_weights(const std::string& folder) {
  std::vector<std::string> within;
  for (const char* const name : {"best", "last"})
    if (const std::string path = base::join_path(folder, name); !find_checkpoint(path).empty())
      within.push_back(path);
  if (within.empty())
    return base::fail(Code::kNotFound, "there is no checkpoint in ", folder,
                      " (expected model.safetensors or pytorch_model.bin, or the index.json of several)");
  return base::fail(Code::kNotFound, "there is no checkpoint in ", folder, " itself, but in ",
                    base::join(within, " and "), ": give ", within.size() == 1 ? "that" : "one of them");
}

base::Result<NamedTensors> read_weights(const std::string& from) {
  if (is_elsewhere(from)) return weights_detail::download(from);
  if (!base::is_directory(from)) return read_tensors(from);
  const std::string found = find_checkpoint(from);
  if (found.empty() && !find_weight_files(from).empty()) return read_weight_files(from);
  if (found.empty()) return no_weights(from);
  return read_model(found);
}

}  // namespace sluice::sessions
