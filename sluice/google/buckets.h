// Buckets of Cloud Storage as resources; cloud::Storage has their objects.
#pragma once

#include <string>
#include <vector>

#include "sluice/google/api.h"

namespace sluice::google {

struct Bucket {
  std::string name, location, storage_class;
  Texts labels;
  double created = 0;
};
Bucket bucket_of(const Json& json);

// Threads: all members from any thread.
class Buckets {
 public:
  Buckets(Api& api, std::string project) : api_(api), project_(std::move(project)) {}

  Outcome<Bucket> get(const std::string& name);
  Outcome<std::vector<Bucket>> list();
  // `body`: as for buckets.insert, with the name. kExists if anybody in the world has a bucket of that name.
  Outcome<Bucket> create(const Json& body);
  Outcome<Bucket> patch(const std::string& name, const Json& body);
  // kWrongState while it contains objects.
  Done remove(const std::string& name);
  // Returns the names of up to `limit` objects (0: all); remove_object deletes one, which may already be
  // gone.
  Outcome<std::vector<std::string>> objects(const std::string& name, int limit = 0);
  Done remove_object(const std::string& name, const std::string& object);

 private:
  Api& api_;
  const std::string project_;
};

}  // namespace sluice::google
