// A bucket "b" in a server of the test's own process, which stands for Cloud Storage.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "sluice/cloud/test_server.h"

namespace sluice::data::test {

// The service is one for the whole process: it is found through the environment, once.
class BucketService {
 public:
  using Fault = std::function<std::optional<cloud::test::Reply>(const cloud::test::Request&)>;

  // Sets a function that answers before the bucket; if it returns nothing, the bucket answers.
  void set_fault(Fault fault) {
    const std::lock_guard lock(mutex_);
    fault_ = std::move(fault);
  }

  cloud::test::Bucket bucket;
  std::atomic<int> media{0};  // requests for an object's bytes
  cloud::test::Server server{[this](const cloud::test::Request& request) {
    Fault fault;
    {
      const std::lock_guard lock(mutex_);
      fault = fault_;
    }
    if (request.parameter("alt") == "media") ++media;
    auto reply = fault ? fault(request) : std::nullopt;
    return reply ? *reply : bucket(request);
  }};

 private:
  std::mutex mutex_;
  Fault fault_;
};

inline BucketService& service() {
  static BucketService one;
  static const bool told = cloud::test::stand_for_cloud(one.server);
  EXPECT_TRUE(told);
  return one;
}

}  // namespace sluice::data::test
