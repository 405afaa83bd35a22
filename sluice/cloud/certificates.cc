#include "sluice/cloud/certificates.h"

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"

namespace sluice::cloud {

std::optional<std::string> certificate_file() {
  return certificate_file({"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"});
}

std::optional<std::string> certificate_file(const std::vector<std::string>& places) {
  for (const char* variable : {"SSL_CERT_FILE", "CURL_CA_BUNDLE"}) {
    if (const auto chosen = base::environment(variable)) return base::expand_home(*chosen);
  }
  for (const std::string& place : places) {
    if (base::path_exists(place)) return place;
  }
  return std::nullopt;
}

std::string certificate_advice() {
  if (const auto file = certificate_file())
    return base::str("; trusted are the authorities in ", *file, ": SSL_CERT_FILE names another file");
  return "; this machine has no file of certificate authorities: install the package ca-certificates, or set "
         "SSL_CERT_FILE to such a file";
}

}  // namespace sluice::cloud
