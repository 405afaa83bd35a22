// Whom TLS trusts. A libcurl that was packed with the program has the place of another distribution compiled
// in, so the file of certificate authorities is looked for when it is needed.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sluice::cloud {

// The value of SSL_CERT_FILE or CURL_CA_BUNDLE (whether or not the file is there), else the first of the
// files where Debian and Ubuntu, Fedora, openSUSE and Alpine keep them. Nothing where there is none: libcurl
// then tries its own.
std::optional<std::string> certificate_file();
// The same, with the places that are looked through.
std::optional<std::string> certificate_file(const std::vector<std::string>& places);

// What to do about a certificate that was not accepted; begins with "; ".
std::string certificate_advice();

}  // namespace sluice::cloud
