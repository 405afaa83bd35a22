// Buckets of Cloud Storage as resources; their objects are cloud::Storage's.
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
  // The body as of buckets.insert, with its name. kExists when anybody in the world has one of that name.
  Outcome<Bucket> create(const Json& body);
  Outcome<Bucket> patch(const std::string& name, const Json& body);
  // kWrongState while there are objects in it.
  Done remove(const std::string& name);
  // The names of up to `limit` objects (0: of all), and deleting one, which may be gone already.
  Outcome<std::vector<std::string>> objects(const std::string& name, int limit = 0);
  Done remove_object(const std::string& name, const std::string& object);

 private:
  Api& api_;
  const std::string project_;
};

}  // namespace sluice::google
