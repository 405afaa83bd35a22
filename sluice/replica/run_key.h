// The key of a run: a secret of its processes that the launcher passes on.
#pragma once

#include <string>

#include "sluice/base/result.h"

namespace sluice::replica {

// Returns SLUICE_RUN_KEY, or "": then anyone who reaches the processes' ports may take part. An error if it
// is short enough to be guessed.
base::Result<std::string> run_key();

// Both ends of a new connection prove that they have the key without sending it, each for a random number of
// the other end. `purpose` names the use of the connection, so that no answer fits another use. The server
// begins:
//   server  kGreeting, its number (32 bytes)
//   client  its number, its tag (32 bytes each)
//   server  its tag (32 bytes), or nothing: it closes
class Handshake {
 public:
  static constexpr size_t kNumberBytes = 32, kTagBytes = 32;
  static constexpr char kGreeting[] = "sluice1\n";
  static constexpr size_t kGreetingBytes = sizeof kGreeting - 1 + kNumberBytes;
  static constexpr size_t kReplyBytes = kNumberBytes + kTagBytes;

  Handshake(const std::string& key, std::string purpose);

  // The server's side: its greeting.
  std::string greeting();
  // The server's side: returns its tag; nothing if the client does not have the key.
  std::string answer(std::string_view reply);
  // The client's side: returns its reply; nothing if the text is not a greeting.
  std::string reply(std::string_view greeting);
  bool accepts(std::string_view answer) const;

  // Keys for only this connection, for messages to the server and from it.
  std::string key_to_server() const { return tag("to the server"); }
  std::string key_to_client() const { return tag("to the client"); }

 private:
  std::string tag(std::string_view label) const;

  std::string key_;  // 32 bytes
  const std::string purpose_;
  std::string of_server_, of_client_;  // the random numbers
};

// One direction of a connection: its messages in order, each with a tag, so that nobody in between can
// change, repeat or omit one. The messages are not encrypted.
//   length (4 bytes, little-endian), bytes, tag (16 bytes)
class Seal {
 public:
  static constexpr size_t kLengthBytes = 4, kTagBytes = 16;
  // The largest message; most have some hundred bytes, a program's listing may have megabytes.
  static constexpr size_t kMaxBytes = size_t{64} << 20;

  Seal() = default;
  explicit Seal(std::string key) : key_(std::move(key)) {}
  // Returns the message with its length and tag.
  std::string close(std::string_view message);
  // Removes the first message from the received bytes. Returns false while it is incomplete; an error if it
  // is too long, or not from the other end.
  base::Result<bool> open(std::string& received, std::string& message);
  // Returns the number of bytes that the first message lacks, as far as is known.
  static size_t missing(std::string_view received);

 private:
  std::string tag(std::string_view message) const;

  std::string key_;
  uint64_t number_ = 0;
};

}  // namespace sluice::replica
