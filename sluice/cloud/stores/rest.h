// Common parts of the interfaces of S3 and Azure: XML, ETags, conditions.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/cloud/http.h"
#include "sluice/cloud/object_reader.h"
#include "sluice/cloud/store.h"

namespace sluice::cloud {

// Parses a body whose root must have this name; else kUnknown.
base::Result<pugi::xml_document> parse_xml(const std::string& body, const char* root,
                                           const std::string& what);

// Parses a body whose root may have any name.
base::Result<pugi::xml_document> parse_answer(const std::string& body, const std::string& what);

// The contents of <Error><Code>…</Code><Message>…</Message></Error>; both "" if the body is something else.
struct ServiceError {
  std::string code, message;
};
ServiceError service_error(const std::string& body);
// Returns status_error with the service's code and message.
Error service_status_error(const HttpResponse& response, const std::string& what);

// Returns size and ETag.
ObjectFacts facts_of_head(const ObjectName& name, const HttpResponse& head);
// Returns the object for a reader that asks for the version of `facts` by If-Match.
Remote remote_of(const ObjectName& name, std::string address, const ObjectFacts& facts, Access access);
// Returns "If-Match: …" or "If-None-Match: *", as the options require.
std::vector<std::string> condition_headers(const UploadOptions& options);

// The one store of a kind in this process. Threads: any.
class SharedStore {
 public:
  // Returns the store that `open` made at the first call that succeeded. The store is kept until the process
  // ends, because threads may still read.
  base::Result<Store*> get(const std::function<base::Result<Store*>(std::shared_ptr<Http>)>& open);

 private:
  std::mutex mutex_;
  Store* store_ = nullptr;
};

// Checks the address of a service in a setting: "" (no address), or a URL with http or https and a host.
// "localhost:9000" is an error that names the setting.
base::Status check_endpoint(const std::string& endpoint, const std::string& setting);

constexpr double kUploadPatience = 120;  // seconds in which a service may be silent while it takes bytes

}  // namespace sluice::cloud
