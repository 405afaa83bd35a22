#include "sluice/session/ahead/remote_programs.h"

#include "sluice/cloud/object_reader.h"
#include "sluice/cloud/store.h"
#include "sluice/pjrt/cache/remote_cache.h"

namespace sluice::sessions {

base::Status store_program(const std::string& path, const std::string& url, bool replace) {
  SLUICE_TRY(const cloud::ObjectName name, cloud::parse_object_url(url));
  SLUICE_TRY(const cloud::Store* store, cloud::store_to_write(name));
  cloud::UploadOptions options;
  if (!replace) options.if_generation = "0";
  const auto facts = store->upload_file(path, name, options);
  // Another host was first.
  if (!facts && (replace || facts.error().code() != Code::kFailedPrecondition))
    return tl::unexpected<Error>(facts.error());
  return {};
}

void keep_programs_in_buckets() { pjrt::set_remote_cache({cloud::download, store_program}); }

}  // namespace sluice::sessions
