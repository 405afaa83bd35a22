// Making and deleting one resource so that it may be done again: what is there has the last word, not an
// operation.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "sluice/provision/environment/names.h"

namespace sluice::provision {

// One resource by its calls.
struct Resource {
  std::string what;  // "the disk x in us-central1-a", for messages
  // What there is of it; kNotFound: nothing.
  std::function<google::Outcome<google::Json>()> look;
  std::function<google::Outcome<google::Operation>()> create, remove;
  std::function<std::optional<Mark>(const google::Json&)> mark;
  // Whether it can be used; an error when it never will be.
  std::function<google::Outcome<bool>(const google::Json&)> ready;
};

// It exists, is of this environment, and is ready. In a dry run: the request is printed, {} is the answer.
// `begun`: the first request for it was sent already.
google::Outcome<google::Json> make(Cloud& cloud, const std::string& environment, const Resource& resource,
                                   bool begun = false);
// It does not exist (any more). What is not of this environment is refused.
google::Done unmake(Cloud& cloud, const std::string& environment, const Resource& resource);
// Changes that are refused while something else is being done are tried again.
google::Done change(Cloud& cloud, const std::string& what,
                    const std::function<google::Outcome<google::Operation>()>& request,
                    const std::function<bool()>& changed);

Resource compute_resource(Cloud& cloud, const google::Scope& scope, const std::string& collection,
                          const std::string& name, const google::Json& body = nullptr);
Resource share_resource(Cloud& cloud, const std::string& zone, const std::string& id,
                        const google::Json& body = nullptr);

}  // namespace sluice::provision
