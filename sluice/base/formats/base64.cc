#include "sluice/base/formats/base64.h"

#include <openssl/evp.h>

#include <algorithm>

#include "sluice/base/text/strings.h"

namespace sluice::base {

std::string base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(size));
  return text;
}

std::optional<std::string> bytes_of_base64(std::string_view text) {
  text = trim(text);
  if (text.size() > size_t{1} << 30) return std::nullopt;
  // OpenSSL reads = as a digit of zeros, wherever it stands, and counts its bytes.
  const size_t padding = text.size() - std::min(text.find('='), text.size());
  if (padding > 2 || !std::all_of(text.end() - static_cast<std::ptrdiff_t>(padding), text.end(),
                                  [](char c) { return c == '='; }))
    return std::nullopt;
  std::string bytes(text.size(), '\0');
  const int size =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (size < static_cast<int>(padding)) return std::nullopt;
  bytes.resize(static_cast<size_t>(size) - padding);
  return bytes;
}

}  // namespace sluice::base
