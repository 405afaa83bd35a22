// Filestore: NFS shares.
#pragma once

#include <string>

#include "sluice/google/tpu.h"

namespace sluice::google {

struct Filestore {
  std::string zone, id, tier;
  std::string state;  // CREATING, READY, REPAIRING, DELETING, ERROR
  double capacity_gb = 0;
  std::string ip;  // in the first network; "" before READY
  Texts labels;
  double created = 0;
  Json json;
};
Filestore filestore_of(const Json& json);

// Threads: all members from any thread.
class Filestores {
 public:
  Filestores(Api& api, std::string project) : api_(api), project_(std::move(project)) {}

  // `location`: a zone, or a region for regional tiers; "-" lists all.
  Outcome<Filestore> get(const std::string& location, const std::string& id);
  Outcome<Listed<Filestore>> list(const std::string& location = "-");
  Outcome<Operation> create(const std::string& location, const std::string& id, const Json& body);
  Outcome<Operation> patch(const std::string& location, const std::string& id, const Json& body,
                           const std::string& mask);
  Outcome<Operation> remove(const std::string& location, const std::string& id, bool force = false);

 private:
  Api& api_;
  const std::string project_;
};

}  // namespace sluice::google
