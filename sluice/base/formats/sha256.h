// SHA-256, and bytes as text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace sluice::base {

// The hash of bytes that come in pieces. One thread at a time.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  void add(std::string_view bytes);
  // Returns the 32 bytes of the hash; nothing may be added after it.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns the 32 bytes of the hash of all these bytes.
std::string sha256(std::string_view bytes);

// Writes two digits (0-9, a-f) for each byte.
std::string hexadecimal(std::string_view bytes);

}  // namespace sluice::base
