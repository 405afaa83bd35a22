// Creates and deletes one resource so that a call can be repeated: the existing resource decides, not an
// operation.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "sluice/provision/environment/names.h"

namespace sluice::provision {

// A resource, described by its calls.
struct Resource {
  std::string what;  // "the disk x in us-central1-a", for messages
  // Returns the resource as it is; kNotFound if it does not exist.
  std::function<google::Outcome<google::Json>()> look;
  std::function<google::Outcome<google::Operation>()> create, remove;
  std::function<std::optional<Mark>(const google::Json&)> mark;
  // Returns whether it can be used; an error if it never will be.
  std::function<google::Outcome<bool>(const google::Json&)> ready;
};

// Returns when the resource exists, belongs to this environment and is ready. A dry run prints the request
// and returns {}. `begun`: the first request for it was already sent.
google::Outcome<google::Json> make(Cloud& cloud, const std::string& environment, const Resource& resource,
                                   bool begun = false);
// Returns when the resource does not exist. A resource of another environment is refused.
google::Done unmake(Cloud& cloud, const std::string& environment, const Resource& resource);
// Tries again while the service refuses the change because of another operation.
google::Done change(Cloud& cloud, const std::string& what,
                    const std::function<google::Outcome<google::Operation>()>& request,
                    const std::function<bool()>& changed);

Resource compute_resource(Cloud& cloud, const google::Scope& scope, const std::string& collection,
                          const std::string& name, const google::Json& body = nullptr);
Resource share_resource(Cloud& cloud, const std::string& zone, const std::string& id,
                        const google::Json& body = nullptr);

}  // namespace sluice::provision
