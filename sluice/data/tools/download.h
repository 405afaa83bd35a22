// Fetching a published file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "sluice/base/result.h"

namespace sluice::data {

// Downloads http(s)://… into a file, which appears when it is whole. Redirects are followed; a server that
// sends nothing for 30 seconds, a certificate that does not fit and any status but 200 are errors.
base::Status download(const std::string& url, const std::string& path,
                      const std::function<void(std::int64_t done, std::int64_t total)>& progress = nullptr);

// Returns the MD5 sum in lower-case hexadecimal digits.
base::Result<std::string> md5_of_file(const std::string& path);

}  // namespace sluice::data
