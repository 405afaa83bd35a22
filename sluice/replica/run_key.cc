#include "sluice/replica/run_key.h"

#include <algorithm>

#include "sluice/base/environment.h"
#include "sluice/base/files/secret.h"
#include "sluice/base/formats/sha256.h"
#include "sluice/base/text/join.h"

namespace sluice::replica {
namespace {

constexpr size_t kShortestKey = 32;  // characters

// Returns the number's bytes, the lowest first.
std::string little_endian(uint64_t number, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i) & 0xFF);
  return text;
}

size_t length_of(std::string_view received) {
  size_t length = 0;
  for (size_t i = Seal::kLengthBytes; i-- > 0;)
    length = length << 8 | static_cast<unsigned char>(received[i]);
  return length;
}

}  // namespace

base::Result<std::string> run_key() {
  const std::string key = base::environment("SLUICE_RUN_KEY").value_or("");
  if (key.empty() || key.size() >= kShortestKey) return key;
  return base::fail(Code::kInvalidArgument, "SLUICE_RUN_KEY has ", key.size(), " characters: expected ",
                    kShortestKey, " or more that nobody can guess, as `openssl rand -hex 32` makes them");
}

Handshake::Handshake(const std::string& key, std::string purpose)
    : key_(base::sha256("sluice run key " + key)), purpose_(std::move(purpose)) {}

std::string Handshake::greeting() {
  of_server_ = base::random_bytes(kNumberBytes);
  return kGreeting + of_server_;
}

std::string Handshake::answer(std::string_view reply) {
  if (reply.size() != kReplyBytes) return "";
  of_client_ = reply.substr(0, kNumberBytes);
  return base::same_secret(reply.substr(kNumberBytes), tag("client")) ? tag("server") : "";
}

std::string Handshake::reply(std::string_view greeting) {
  constexpr std::string_view kBegin = kGreeting;
  if (greeting.size() != kGreetingBytes || !greeting.starts_with(kBegin)) return "";
  of_server_ = greeting.substr(kBegin.size());
  of_client_ = base::random_bytes(kNumberBytes);
  return of_client_ + tag("client");
}

bool Handshake::accepts(std::string_view answer) const { return base::same_secret(answer, tag("server")); }

std::string Handshake::tag(std::string_view label) const {
  return base::hmac_sha256(key_, base::str(label, '\n', of_server_, of_client_, purpose_));
}

std::string Seal::tag(std::string_view message) const {
  return base::hmac_sha256(key_, base::str(little_endian(number_, 8), message)).substr(0, kTagBytes);
}

std::string Seal::close(std::string_view message) {
  std::string sealed = base::str(little_endian(message.size(), kLengthBytes), message, tag(message));
  ++number_;
  return sealed;
}

size_t Seal::missing(std::string_view received) {
  if (received.size() < kLengthBytes) return kLengthBytes - received.size();
  const size_t whole = kLengthBytes + std::min(length_of(received), kMaxBytes) + kTagBytes;
  return whole - std::min(whole, received.size());
}

base::Result<bool> Seal::open(std::string& received, std::string& message) {
  if (received.size() < kLengthBytes) return false;
  const size_t length = length_of(received);
  if (length > kMaxBytes)
    return base::fail(Code::kDataLoss, "a message of ", length, " bytes: expected at most ", kMaxBytes);
  if (missing(received) > 0) return false;
  message = received.substr(kLengthBytes, length);
  if (!base::same_secret(std::string_view(received).substr(kLengthBytes + length, kTagBytes), tag(message)))
    return base::fail(Code::kDataLoss, "a message that was changed on its way");
  received.erase(0, kLengthBytes + length + kTagBytes);
  ++number_;
  return true;
}

}  // namespace sluice::replica
