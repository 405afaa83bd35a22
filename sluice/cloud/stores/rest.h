// What the interfaces of S3 and Azure have in common: XML, ETags, conditions.
#pragma once

#include <pugixml.hpp>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/cloud/http.h"
#include "sluice/cloud/store.h"

namespace sluice::cloud {

// The body's root when it has this name; else kUnknown.
base::Result<pugi::xml_document> parse_xml(const std::string& body, const char* root,
                                           const std::string& what);

// The same where the root may have any name: what counts is in it.
base::Result<pugi::xml_document> parse_answer(const std::string& body, const std::string& what);

// <Error><Code>…</Code><Message>…</Message></Error>; both "" where the body is something else.
struct ServiceError {
  std::string code, message;
};
ServiceError service_error(const std::string& body);
// status_error with the code and message that the service gave.
Error service_status_error(const HttpResponse& response, const std::string& what);

// Size and ETag.
ObjectFacts facts_of_head(const ObjectName& name, const HttpResponse& head);
// "If-Match: …" or "If-None-Match: *", as the options want it.
std::vector<std::string> condition_headers(const UploadOptions& options);

// Whether the address of a service that a setting names can be one: "" (none is named), or a URL with http or
// https and a host. "localhost:9000" is an error that names the setting.
base::Status check_endpoint(const std::string& endpoint, const std::string& setting);

constexpr double kUploadPatience = 120;  // seconds in which a service may say nothing while it takes bytes

}  // namespace sluice::cloud
