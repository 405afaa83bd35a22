#include "sluice/session/files/remote_checkpoint.h"

#include "sluice/base/files/file.h"
#include "sluice/base/files/safe_join.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/object_reader.h"
#include "sluice/cloud/store.h"
#include "sluice/session/pieces/piece_files.h"
#include "sluice/session/pieces/stored_pieces.h"

namespace sluice::sessions {

std::string without_slash(std::string url) {
  while (base::ends_with(url, "/")) url.pop_back();
  return url;
}

base::Result<std::string> object_text(const std::string& url) {
  SLUICE_TRY(const cloud::ObjectName name, cloud::parse_object_url(url));
  SLUICE_TRY(const cloud::Store* store, cloud::store_of(name));
  const auto text = store->read_text(name);
  if (text) return std::string(base::trim(*text));
  if (text.error().code() == Code::kNotFound) return std::string();
  return tl::unexpected<Error>(text.error());
}

base::Result<bool> object_exists(const std::string& url) {
  SLUICE_TRY(const cloud::ObjectName name, cloud::parse_object_url(url));
  SLUICE_TRY(const cloud::Store* store, cloud::store_of(name));
  const auto facts = store->stat(name);
  if (!facts && facts.error().code() != Code::kNotFound) return tl::unexpected<Error>(facts.error());
  return facts.has_value();
}

namespace {

// Whether an object of this name contains the name of a checkpoint's folder.
bool is_pointer(const std::string& name) {
  return name == "last" || name == "best" || base::starts_with(name, "top-");
}

// Returns the folder next to `url` whose name, `name`, an object holds.
base::Result<std::string> named_folder(const std::string& url, const std::string& name) {
  const auto joined = base::safe_join(url, name);
  if (!joined) return base::fail_at(joined, "the checkpoint's name in ", url);
  return joined;
}

// Returns the folder of the files that `url` leads to.
base::Result<std::string> resolve(const std::string& url) {
  SLUICE_TRY(const bool itself, object_exists(url + "/state.json"));
  if (itself) return url;
  const std::string name = url.substr(url.rfind('/') + 1);
  if (is_pointer(name)) {
    SLUICE_TRY(const std::string target, object_text(url));
    if (!target.empty()) return named_folder(url.substr(0, url.rfind('/')), target);
  }
  SLUICE_TRY(const std::string target, object_text(url + "/last"));
  if (!target.empty()) return named_folder(url, target);
  return base::fail(Code::kNotFound, "there is no checkpoint in ", url, " (expected the object ", url,
                    "/last, or ", url, "/state.json)");
}

}  // namespace

base::Result<std::string> weights_object(const std::string& url) {
  const std::string name = url.substr(url.rfind('/') + 1);
  if (!is_pointer(name)) {
    SLUICE_TRY(const bool itself, object_exists(url));
    if (itself) return url;
  }
  const auto folder = resolve(url);
  if (folder) {
    SLUICE_TRY(const bool one, object_exists(*folder + "/model.safetensors"));
    SLUICE_TRY(const bool index, object_exists(*folder + "/" + index_name(kModel)));
    return *folder + "/" + (!one && index ? index_name(kModel) : "model.safetensors");
  }
  if (folder.error().code() != Code::kNotFound) return tl::unexpected<Error>(folder.error());
  return base::fail(Code::kNotFound, "there is neither a file of weights nor a checkpoint at ", url,
                    " (expected this object, ", url, "/last, or ", url, "/state.json)");
}

base::Result<std::string> checkpoint_folder(const std::string& url) { return resolve(without_slash(url)); }

base::Status fetch_checkpoint(const std::string& url, const std::string& folder) {
  SLUICE_TRY(const std::string from, checkpoint_folder(url));
  SLUICE_TRY(const cloud::ObjectName root, cloud::parse_object_url(from + "/"));
  SLUICE_TRY(const cloud::Store* store, cloud::store_of(root));
  SLUICE_TRY(const auto objects, store->list(root.bucket, root.object, /*flat=*/true));
  for (const auto& object : objects) {
    if (!base::starts_with(object.name, root.object))
      return base::fail(Code::kDataLoss, "the listing of ", from, "/ names an object that is not in it");
    SLUICE_TRY(const std::string path, base::safe_join(folder, object.name.substr(root.object.size())));
    SLUICE_OK(cloud::download(root.beside(object.name).url(), path));
  }
  return {};
}

base::Result<std::string> fetch_weights(const std::string& url, const std::string& folder) {
  std::string from = url;
  if (cloud::is_object_url(url)) {
    SLUICE_TRY(from, weights_object(without_slash(url)));
  }
  const bool pieces = base::ends_with(from, "/" + index_name(kModel));
  const std::string path = base::join_path(folder, pieces ? index_name(kModel) : "weights");
  SLUICE_OK(cloud::download(from, path));
  if (!pieces) return path;
  SLUICE_TRY(const PieceIndex index, read_index(path));
  for (const std::string& file : files_of(index))
    SLUICE_OK(cloud::download(from.substr(0, from.rfind('/') + 1) + file, base::join_path(folder, file)));
  return path;
}

}  // namespace sluice::sessions
