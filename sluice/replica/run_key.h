// The key of a run: a secret of its processes, which its launcher hands on.
#pragma once

#include <string>

#include "sluice/base/result.h"

namespace sluice::replica {

// What SLUICE_RUN_KEY says, or nothing: then whoever reaches the processes' ports may take part. An error
// when it is short enough to be guessed.
base::Result<std::string> run_key();

// Both ends of a new connection show that they have the key without saying it, each for a number that the
// other has just made up; `purpose` says what the connection is for, so that no answer fits elsewhere. The
// server begins:
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

  // Of the server.
  std::string greeting();
  // Its tag; nothing when the client does not have the key.
  std::string answer(std::string_view reply);
  // Of the client: nothing when it is no greeting.
  std::string reply(std::string_view greeting);
  bool accepts(std::string_view answer) const;

  // Keys of this connection alone, for what goes to the server and what comes from it.
  std::string key_to_server() const { return tag("to the server"); }
  std::string key_to_client() const { return tag("to the client"); }

 private:
  std::string tag(std::string_view label) const;

  std::string key_;  // 32 bytes
  const std::string purpose_;
  std::string of_server_, of_client_;  // numbers
};

// One direction of a connection: its messages in their order, each with a tag, so that nobody in between can
// change, repeat or leave out one. What they say can be read on the way.
//   length (4 bytes, little-endian), bytes, tag (16 bytes)
class Seal {
 public:
  static constexpr size_t kLengthBytes = 4, kTagBytes = 16;
  // The largest message; most are some hundred bytes, a program's listing may have megabytes.
  static constexpr size_t kMaxBytes = size_t{64} << 20;

  Seal() = default;
  explicit Seal(std::string key) : key_(std::move(key)) {}
  // The message with its length and tag.
  std::string close(std::string_view message);
  // Takes the first message away from the bytes that came. False as long as it is not complete; an error when
  // it is too long, or not of the other end.
  base::Result<bool> open(std::string& received, std::string& message);
  // So many bytes of the first message are missing, as far as is known.
  static size_t missing(std::string_view received);

 private:
  std::string tag(std::string_view message) const;

  std::string key_;
  uint64_t number_ = 0;
};

}  // namespace sluice::replica
