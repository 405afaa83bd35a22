#include "sluice/session/files/weights.h"

#include "sluice/base/files/file.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/store.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/session/files/export_weights.h"
#include "sluice/session/files/remote_checkpoint.h"
#include "sluice/session/pretrained/weight_files.h"

namespace sluice::sessions {
namespace weights_detail {

bool is_elsewhere(const std::string& from) {
  return cloud::is_object_url(from) || base::starts_with(from, "http://") ||
         base::starts_with(from, "https://");
}

base::Result<NamedTensors> download(const std::string& url) {
  SLUICE_TRY(const auto folder, base::TemporaryDirectory::create("sluice-weights"));
  SLUICE_TRY(const std::string path, fetch_weights(url, folder.path()));
  auto tensors = read_tensors(path);
  if (!tensors) return base::fail(tensors.error().code(), url, ": ", tensors.error().what());
  return tensors;
}

base::Status write(const std::string& to, const NamedTensors& tensors) {
  if (!cloud::is_object_url(to)) return write_tensors(to, tensors);
  SLUICE_TRY(const cloud::ObjectName name, cloud::parse_object_url(to));
  SLUICE_TRY(const cloud::Store* store, cloud::store_to_write(name));
  SLUICE_TRY(const auto folder, base::TemporaryDirectory::create("sluice-weights"));
  const std::string path = folder.path(to.substr(to.rfind('/') + 1));  // the name's ending gives the kind
  SLUICE_OK(write_tensors(path, tensors));
  SLUICE_TRY([[maybe_unused]] const auto facts, store->upload_file(path, name));
  return {};
}

// Returns an error for a folder without a checkpoint; for a run's log folder it names the folders to use
// instead.
tl::unexpected<Error> no_checkpoint(const std::string& folder) {
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

}  // namespace weights_detail

base::Result<NamedTensors> read_weights(const std::string& from) {
  if (weights_detail::is_elsewhere(from)) return weights_detail::download(from);
  if (!base::is_directory(from)) return read_tensors(from);
  const std::string found = find_checkpoint(from);
  if (found.empty() && !find_weight_files(from).empty()) return read_weight_files(from);
  if (found.empty()) return weights_detail::no_checkpoint(from);
  return read_tensors(base::join_path(found, "model.safetensors"));
}

ExportReport export_weights(const std::string& from, const std::string& to) {
  const NamedTensors tensors = base::value_or_throw(read_weights(from));
  base::value_or_throw(weights_detail::write(to, tensors));
  ExportReport report;
  for (const auto& [name, tensor] : tensors) report.bytes += static_cast<int64_t>(tensor.nbytes());
  report.tensors = static_cast<int64_t>(tensors.size());
  return report;
}

}  // namespace sluice::sessions
