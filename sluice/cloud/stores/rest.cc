#include "sluice/cloud/stores/rest.h"

#include <utility>

#include "sluice/base/text/number.h"
#include "sluice/base/text/shown_url.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/credentials/secret.h"

namespace sluice::cloud {

base::Result<pugi::xml_document> parse_xml(const std::string& body, const char* root,
                                           const std::string& what) {
  pugi::xml_document document;
  if (!document.load_buffer(body.data(), body.size()) || !document.child(root))
    return base::fail(Code::kUnknown, what, ": expected XML with <", root,
                      ">, the server sent something else");
  return document;
}

base::Result<pugi::xml_document> parse_answer(const std::string& body, const std::string& what) {
  pugi::xml_document document;
  if (!document.load_buffer(body.data(), body.size()) || !document.document_element())
    return base::fail(Code::kUnknown, what, ": expected XML, the server sent something else");
  return document;
}

ServiceError service_error(const std::string& body) {
  pugi::xml_document document;
  if (!document.load_buffer(body.data(), body.size())) return {};
  pugi::xml_node error = document.child("Error");
  if (!error) error = document.child("ErrorResponse").child("Error");  // AWS' token service
  return {error.child_value("Code"), error.child_value("Message")};
}

Error service_status_error(const HttpResponse& response, const std::string& what) {
  const ServiceError error = service_error(response.body);
  if (error.code.empty()) return status_error(response, what);
  HttpResponse short_response = response;
  // The first line has the reason; Azure's other lines are an id and a time.
  short_response.body = error.code + ": " + error.message.substr(0, error.message.find('\n'));
  return status_error(short_response, what);
}

ObjectFacts facts_of_head(const ObjectName& name, const HttpResponse& head) {
  ObjectFacts facts;
  facts.name = name.object;
  facts.size = base::number_of<std::uint64_t>(head.header("content-length").value_or("")).value_or(0);
  facts.generation = head.header("etag").value_or("");
  return facts;
}

Remote remote_of(const ObjectName& name, std::string address, const ObjectFacts& facts, Access access) {
  Remote remote;
  remote.name = name.url();
  remote.address = std::move(address);
  remote.size = facts.size;
  remote.version = facts.generation;
  remote.condition = "If-Match: " + facts.generation;
  remote.access = std::move(access);
  return remote;
}

std::vector<std::string> condition_headers(const UploadOptions& options) {
  if (!options.if_generation) return {};
  if (*options.if_generation == "0") return {"If-None-Match: *"};
  return {"If-Match: " + *options.if_generation};
}

base::Result<Store*> SharedStore::get(
    const std::function<base::Result<Store*>(std::shared_ptr<Http>)>& open) {
  const std::lock_guard lock(mutex_);
  if (store_ == nullptr) {
    HttpOptions options;
    SLUICE_TRY(options.retry, retry_policy_of_environment());
    SLUICE_TRY(store_, open(std::make_shared<Http>(options)));
  }
  return store_;
}

base::Status check_endpoint(const std::string& endpoint, const std::string& setting) {
  if (endpoint.empty()) return {};
  const bool known = base::starts_with(endpoint, "http://") || base::starts_with(endpoint, "https://");
  const auto host = host_of_url(endpoint);
  if (known && host && !host->empty()) return {};
  return base::fail(
      Code::kInvalidArgument, setting, " is '", base::shown_urls(endpoint),
      "': expected the address of a service, http://HOST:PORT or https://HOST, with brackets around "
      "an IPv6 address, http://[::1]:9000");
}

}  // namespace sluice::cloud
