// The certificate authorities that TLS trusts. A libcurl that was packaged with the program has another
// distribution's path compiled in, so the file is searched for when it is needed.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sluice::cloud {

// Returns the value of SSL_CERT_FILE or CURL_CA_BUNDLE (even if that file does not exist), else the first
// existing file of Debian and Ubuntu, Fedora, openSUSE and Alpine. Nothing if there is no such file: libcurl
// then tries its own.
std::optional<std::string> certificate_file();
// Searches these places instead of the distributions' files.
std::optional<std::string> certificate_file(const std::vector<std::string>& places);

// Returns what to do about a certificate that was not accepted; begins with "; ".
std::string certificate_advice();

}  // namespace sluice::cloud
