#include "sluice/session/ahead/remote_programs.h"

#include <utility>

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

namespace remote_programs_detail {

base::Result<std::string> write_lock(const std::string& url, const std::string& text,
                                     const std::string& generation) {
  SLUICE_TRY(const cloud::ObjectName name, cloud::parse_object_url(url));
  SLUICE_TRY(const cloud::Store* store, cloud::store_to_write(name));
  cloud::UploadOptions options;
  options.if_generation = generation;
  SLUICE_TRY(cloud::ObjectFacts facts, store->upload_text(text, name, options));
  return std::move(facts.generation);
}

base::Result<std::string> generation_of(const std::string& url) {
  SLUICE_TRY(const cloud::ObjectName name, cloud::parse_object_url(url));
  SLUICE_TRY(const cloud::Store* store, cloud::store_of(name));
  SLUICE_TRY(cloud::ObjectFacts facts, store->stat(name));
  return std::move(facts.generation);
}

base::Status remove_lock(const std::string& url, const std::string& generation) {
  SLUICE_TRY(const cloud::ObjectName name, cloud::parse_object_url(url));
  SLUICE_TRY(const cloud::Store* store, cloud::store_to_write(name));
  return store->remove(name, generation);
}

}  // namespace remote_programs_detail

void keep_programs_in_buckets() {
  pjrt::set_remote_cache({cloud::download, store_program, remote_programs_detail::write_lock,
                          remote_programs_detail::generation_of, remote_programs_detail::remove_lock});
}

}  // namespace sluice::sessions
