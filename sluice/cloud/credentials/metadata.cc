#include "sluice/cloud/credentials/metadata.h"

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/text/strings.h"

namespace sluice::cloud {
namespace {

HttpRequest request_for(const std::string& path) {
  HttpRequest request;
  request.url = metadata_address(path);
  request.headers = {"Metadata-Flavor: Google"};
  request.direct = true;
  return request;
}

std::string what_of(const std::string& path) { return "the metadata server (" + path + ")"; }

base::Result<std::string> value_of(base::Result<HttpResponse> response, const std::string& what) {
  if (!response) return tl::unexpected<Error>(response.error());
  if (response->status != 200) return tl::unexpected<Error>(status_error(*response, what));
  return std::move(response->body);
}

bool firmware_says_google() {
  const auto name = base::read_file("/sys/class/dmi/id/product_name");
  return name && base::starts_with(*name, "Google");
}

bool answers(Http& http) {
  HttpRequest request = request_for("");
  request.total_timeout = 1;
  const auto response = http.once(request);
  return response && response->header("metadata-flavor") == "Google";
}

}  // namespace

std::string metadata_address(const std::string& path) {
  return "http://" + base::environment("GCE_METADATA_HOST").value_or("169.254.169.254") +
         "/computeMetadata/v1/" + path;
}

bool on_google_cloud(Http& http) {
  if (base::environment("GCE_METADATA_HOST")) return true;
  if (base::environment_flag("NO_GCE_CHECK", false)) return false;
  static const bool there = firmware_says_google() || answers(http);
  return there;
}

base::Result<std::string> metadata(Http& http, const std::string& path) {
  const std::string what = what_of(path);
  return value_of(http.send(request_for(path), what), what);
}

base::Result<std::string> metadata_once(Http& http, const std::string& path) {
  const std::string what = what_of(path);
  return value_of(http.try_once(request_for(path), what), what);
}

std::optional<std::string> own_region(Http& http) {
  if (!on_google_cloud(http)) return std::nullopt;
  const auto zone = metadata(http, "instance/zone");  // projects/123/zones/us-central2-b
  if (!zone) return std::nullopt;
  const std::string name = zone->substr(zone->rfind('/') + 1);
  const std::size_t dash = name.rfind('-');
  if (dash == std::string::npos || name.find('-') == dash) return std::nullopt;
  return name.substr(0, dash);
}

}  // namespace sluice::cloud
