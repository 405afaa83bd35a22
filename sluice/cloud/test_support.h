// Helpers of the tests of this room.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/log.h"
#include "sluice/base/random.h"
#include "sluice/cloud/object_reader.h"
#include "sluice/cloud/test_server.h"

namespace sluice::cloud::test {

inline std::string random_bytes(std::size_t size, std::uint64_t seed = 1) {
  base::Random random({seed, size});
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// A clock whose sleep() returns at once and only advances the time.
class FakeTime {
 public:
  Clock clock() {
    return {[this] {
              const std::lock_guard lock(mutex_);
              return now_;
            },
            [this](double seconds, const std::atomic<bool>*) {
              const std::lock_guard lock(mutex_);
              now_ += seconds;
              sleeps_.push_back(seconds);
            }};
  }
  void advance(double seconds) {
    const std::lock_guard lock(mutex_);
    now_ += seconds;
  }
  std::vector<double> sleeps() const {
    const std::lock_guard lock(mutex_);
    return sleeps_;
  }

 private:
  mutable std::mutex mutex_;
  double now_ = 1000;
  std::vector<double> sleeps_;
};

// Suppresses warnings (about repeated tries) while it lives.
class Quiet {
 public:
  Quiet() { base::set_log_level(base::Level::kError); }
  ~Quiet() { base::set_log_level(base::Level::kInfo); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
};

inline HttpOptions options_with(FakeTime& time) {
  HttpOptions options;
  options.clock = time.clock();
  return options;
}

// A bucket served over HTTP, whose answers `fault` may replace, and a clock that does not run by itself.
class BucketTest : public ::testing::Test {
 protected:
  using Fault = std::function<std::optional<Reply>(const Request&)>;

  void set_fault(Fault fault) {
    const std::lock_guard lock(mutex_);
    fault_ = std::move(fault);
  }

 private:
  Quiet quiet_;
  std::mutex mutex_;
  Fault fault_;

 protected:
  Bucket bucket_;
  Server server_{[this](const Request& request) {
    Fault fault;
    {
      const std::lock_guard lock(mutex_);
      fault = fault_;
    }
    auto reply = fault ? fault(request) : std::nullopt;
    return reply ? *reply : bucket_(request);
  }};
  FakeTime time_;
};

// Sets an environment variable for one test.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* old = ::getenv(name)) old_ = old;
    value.empty() ? ::unsetenv(name) : ::setenv(name, value.c_str(), 1);
  }
  ~Environment() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

// Returns all bytes of a reader.
inline base::Result<std::string> read_all(ObjectReader& reader, std::size_t piece = 1000) {
  std::string bytes;
  while (true) {
    SLUICE_TRY(const std::string_view some, reader.next(piece));
    if (some.empty()) return bytes;
    bytes += some;
  }
}

inline base::Result<std::string> read_all(base::Result<Remote> remote, const ReadOptions& options = {}) {
  if (!remote) return tl::unexpected<Error>(remote.error());
  SLUICE_TRY(const auto reader, open_reader(std::move(*remote), options));
  return read_all(*reader);
}

}  // namespace sluice::cloud::test
