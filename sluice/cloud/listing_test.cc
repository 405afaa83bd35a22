#include "sluice/cloud/listing.h"

#include <gtest/gtest.h>

#include "sluice/cloud/storage.h"
#include "sluice/cloud/stores/azure.h"
#include "sluice/cloud/stores/hub.h"
#include "sluice/cloud/stores/s3.h"
#include "sluice/cloud/test_support.h"

namespace sluice::cloud {
namespace {

using test::Reply;
using test::Request;
using test::Server;

std::shared_ptr<AwsCredentials> nobody() { return std::make_shared<AwsCredentials>("nobody", nullptr); }

// How each service lists these names; `next` leads to another page.
struct Service {
  const char* name;
  std::string (*page)(const std::vector<std::string>& names, const std::string& next);
  std::unique_ptr<Store> (*store)(const Server& server);
  const char* bucket;
};

const std::vector<Service>& services() {
  static const std::vector<Service> all = {
      {"google",
       [](const std::vector<std::string>& names, const std::string& next) {
         std::string text = "{\"items\":[";
         for (const auto& name : names)
           text += (text.back() == '[' ? "" : ",") + base::str(R"({"name":")", name, R"(","size":"3"})");
         return text + "]" + (next.empty() ? "" : ",\"nextPageToken\":\"" + next + "\"") + "}";
       },
       [](const Server& server) -> std::unique_ptr<Store> {
         return std::make_unique<Storage>(server.address(),
                                          Access{std::make_shared<Http>(), anonymous_credentials(), true});
       },
       "b"},
      {"s3",
       [](const std::vector<std::string>& names, const std::string& next) {
         std::string text = "<ListBucketResult>";
         for (const auto& name : names) text += "<Contents><Key>" + name + "</Key><Size>3</Size></Contents>";
         return text + "<NextContinuationToken>" + next + "</NextContinuationToken></ListBucketResult>";
       },
       [](const Server& server) -> std::unique_ptr<Store> {
         return std::make_unique<S3>(S3Settings{server.address()}, std::make_shared<Http>(), nobody());
       },
       "b"},
      {"azure",
       [](const std::vector<std::string>& names, const std::string& next) {
         std::string text = "<EnumerationResults><Blobs>";
         for (const auto& name : names)
           text += "<Blob><Name>" + name +
                   "</Name><Properties><Content-Length>3</Content-Length></Properties></Blob>";
         return text + "</Blobs><NextMarker>" + next + "</NextMarker></EnumerationResults>";
       },
       [](const Server& server) -> std::unique_ptr<Store> {
         AzureSettings settings;
         settings.endpoint = server.address();
         return std::make_unique<Azure>(settings, std::make_shared<Http>());
       },
       "a/c"},
      {"hub",
       [](const std::vector<std::string>& names, const std::string&) {
         std::string text = "[";
         for (const auto& name : names)
           text += (text.back() == '[' ? "" : ",") +
                   base::str(R"({"type":"file","path":")", name, R"(","size":3,"oid":"x"})");
         return text + "]";
       },
       [](const Server& server) -> std::unique_ptr<Store> {
         return std::make_unique<Hub>(server.address(), std::make_shared<Http>(), "", "HF_TOKEN");
       },
       "datasets/o/n"},
  };
  return all;
}

Reply reply(const Service& service, const Server& server, const std::vector<std::string>& names,
            const std::string& next) {
  Reply answer{200, {}, service.page(names, next)};
  if (service.name == std::string("hub") && !next.empty())
    answer.headers.push_back("Link: <" + server.address() + "/api/" + next + ">; rel=\"next\"");
  return answer;
}

TEST(Listings, OfAllServices) {
  for (const Service& service : services()) {
    int asked = 0;
    const Server* self = nullptr;
    Server server([&](const Request&) {
      return ++asked == 1 ? reply(service, *self, {"d/b", "d/a"}, "two") : reply(service, *self, {"d/c"}, "");
    });
    self = &server;
    const auto found = service.store(server)->list(service.bucket, "d/");
    ASSERT_TRUE(found) << service.name << found.error().what();
    ASSERT_EQ(found->size(), 3u) << service.name;
    EXPECT_EQ((*found)[0].name + (*found)[2].name, "d/ad/c") << service.name;
    EXPECT_EQ((*found)[1].size, 3u) << service.name;
  }
}

TEST(Listings, ThatNameWhatWasNotAskedForAreRefused) {
  for (const Service& service : services())
    for (const char* name : {"../../home/x", "/etc/passwd", "e/x", "d", "pipe:touch x"}) {
      const Server* self = nullptr;
      Server server([&](const Request&) { return reply(service, *self, {"d/a", name}, ""); });
      self = &server;
      const auto found = service.store(server)->list(service.bucket, "d/");
      ASSERT_FALSE(found) << service.name << " " << name;
      EXPECT_EQ(found.error().code(), Code::kDataLoss);
      EXPECT_NE(std::string(found.error().what()).find(name), std::string::npos) << found.error().what();
    }
}

TEST(Listings, ThatLeadToTheSamePageTwiceEnd) {
  for (const Service& service : services()) {
    int asked = 0;
    const Server* self = nullptr;
    Server server([&](const Request&) {
      ++asked;
      return reply(service, *self, {"d/a"}, asked % 2 == 0 ? "even" : "odd");
    });
    self = &server;
    const auto found = service.store(server)->list(service.bucket, "d/");
    ASSERT_FALSE(found) << service.name;
    EXPECT_NE(std::string(found.error().what()).find("the same page twice"), std::string::npos)
        << found.error().what();
    EXPECT_LE(asked, 3) << service.name;
  }
}

TEST(Listings, DeeperNamesAreLeftOutOfFlatOnes) {
  Listing listing("x", "d/", true);
  EXPECT_TRUE(listing.add({"d/a"}));
  EXPECT_TRUE(listing.add({"d/a/b"}));
  EXPECT_EQ(std::move(listing).sorted().size(), 1u);
}

TEST(Listings, HaveAnEnd) {
  Listing listing("x", "", false, {.names = 2, .pages = 3});
  EXPECT_TRUE(listing.add({"a"}));
  EXPECT_TRUE(listing.add({"b"}));
  EXPECT_EQ(listing.add({"c"}).error().code(), Code::kResourceExhausted);
  for (const char* token : {"1", "2", "3"}) EXPECT_TRUE(listing.next(token).value());
  EXPECT_EQ(listing.next("4").error().code(), Code::kResourceExhausted);
  EXPECT_FALSE(Listing("x", "", false).next("").value());
  EXPECT_FALSE(listing.add({std::string("a\0b", 3)}));
}

}  // namespace
}  // namespace sluice::cloud
