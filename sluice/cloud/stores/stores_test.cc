// What needs no server of others. Signatures, transfers and failures: tests/stores, with signers that others
// wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/sha256.h"
#include "sluice/cloud/checksum.h"
#include "sluice/cloud/store.h"
#include "sluice/cloud/stores/aws_credentials.h"
#include "sluice/cloud/stores/azure.h"
#include "sluice/cloud/stores/hub.h"
#include "sluice/cloud/stores/rest.h"
#include "sluice/cloud/stores/s3.h"
#include "sluice/cloud/test_support.h"

namespace sluice::cloud {
namespace {

std::string digest(ChecksumKind kind, std::string_view text, std::size_t cut) {
  Digest digest(kind);
  digest.add(text.data(), cut);
  digest.add(text.data() + cut, text.size() - cut);
  return base::hexadecimal(digest.bytes());
}

TEST(Checksums, OfTheCheckString) {
  // "123456789" is what the catalogues of CRCs give values of; the digests are sha256sum's and md5sum's.
  for (std::size_t cut : {0, 1, 8, 9}) {
    EXPECT_EQ(digest(ChecksumKind::kCrc32, "123456789", cut), "cbf43926");
    EXPECT_EQ(digest(ChecksumKind::kCrc64Nvme, "123456789", cut), "ae8b14860a799888");
    EXPECT_EQ(digest(ChecksumKind::kMd5, "123456789", cut), "25f9e794323b453885f5181f1b624d0b");
    EXPECT_EQ(digest(ChecksumKind::kSha256, "123456789", cut),
              "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225");
  }
}

TEST(Checksums, Base64) {
  EXPECT_EQ(hexadecimal_of_base64("y/Q5Jg=="), "cbf43926");
  EXPECT_EQ(hexadecimal_of_base64("y/Q5Jg==-2"), "");
  EXPECT_EQ(hexadecimal_of_base64(""), "");
}

TEST(ObjectNames, OfEachStore) {
  const auto parsed = [](const std::string& url) {
    const auto name = parse_object_url(url);
    return name ? name->bucket + "|" + name->object : std::string("error");
  };
  EXPECT_EQ(parsed("gs://b/x/y"), "b|x/y");
  EXPECT_EQ(parsed("s3://b"), "b|");
  EXPECT_EQ(parsed("s3://b/"), "b|");
  EXPECT_EQ(parsed("az://account/container/x/y"), "account/container|x/y");
  EXPECT_EQ(parsed("az://account/container"), "account/container|");
  EXPECT_EQ(parsed("hf://datasets/o/n@v1/a/b.tar"), "datasets/o/n@v1|a/b.tar");
  EXPECT_EQ(parsed("hf://o/n/model.safetensors"), "o/n|model.safetensors");
  for (const char* wrong :
       {"gs://", "s3:///x", "az://account", "az://account/", "hf://datasets/o", "file://x", "s3:/b"})
    EXPECT_EQ(parsed(wrong), "error") << wrong;
  EXPECT_EQ(parse_object_url("az://a/c/x")->beside("y").url(), "az://a/c/y");
}

TEST(ServiceErrors, CodeAndMessage) {
  const auto error =
      service_error("<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Message>gone</Message></Error>");
  EXPECT_EQ(error.code, "NoSuchKey");
  EXPECT_EQ(error.message, "gone");
  EXPECT_EQ(service_error("<html>").code, "");
  EXPECT_EQ(service_error("").code, "");
  HttpResponse response;
  response.status = 403;
  response.body = "<Error><Code>AccessDenied</Code><Message>no\nRequestId:1</Message></Error>";
  EXPECT_EQ(std::string(service_status_error(response, "x").what()),
            "x: the server answered with status 403: AccessDenied: no");
}

// What the store says when its endpoint is another machine without encryption. Nothing may be sent there: a
// request would end in an error of the connection.
std::string refusal(const Store& store, const char* bucket) {
  const ObjectName name{bucket, "x", std::string(bucket).find('/') == std::string::npos ? "s3" : "az"};
  const auto facts = store.stat(name);
  const auto upload = store.upload_text("words", name);
  const auto found = store.list(bucket, "");
  EXPECT_TRUE(upload.error().code() == Code::kPermissionDenied ||
              upload.error().code() == Code::kUnimplemented)
      << upload.error().what();
  EXPECT_EQ(found.error().code(), Code::kPermissionDenied) << found.error().what();
  EXPECT_EQ(facts.error().code(), Code::kPermissionDenied) << facts.error().what();
  EXPECT_EQ(std::string(facts.error().what()).find("hush"), std::string::npos) << facts.error().what();
  return facts.error().what();
}

constexpr char kElsewhere[] = "http://192.0.2.1:9000";

TEST(StoreSecrets, OfS3NameTheVariableThatLeadsElsewhere) {
  const test::Environment endpoint("AWS_ENDPOINT_URL_S3", kElsewhere), key("AWS_ACCESS_KEY_ID", "AKIA1"),
      secret("AWS_SECRET_ACCESS_KEY", "hush"), session("AWS_SESSION_TOKEN", "hush");
  const auto http = std::make_shared<Http>();
  const S3 store(base::value_or_throw(s3_settings_of_environment()), http,
                 base::value_or_throw(find_aws_credentials(http)));
  const std::string said = refusal(store, "bucket");
  EXPECT_NE(said.find("AWS_ENDPOINT_URL_S3 leads there"), std::string::npos) << said;
  EXPECT_NE(said.find("the session token of"), std::string::npos) << said;
}

TEST(StoreSecrets, AreInHeadersButForASignatureOfOneRequest) {
  const auto what = [](const std::string& header) { return secret_in_headers({"accept: x", header}).what; };
  EXPECT_EQ(what("Authorization: Bearer hush"), "the request's Authorization");
  EXPECT_EQ(what("X-Amz-Security-Token: hush"), "the request's X-Amz-Security-Token");
  EXPECT_EQ(what("Authorization: AWS4-HMAC-SHA256 Credential=AKIA1/20260101/r/s3/aws4_request"), "");
  EXPECT_EQ(what("x-amz-date: 20260101T000000Z"), "");
}

TEST(StoreSecrets, OfTheTokenServiceOfAwsDoToo) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  ASSERT_TRUE(base::write_file_atomically(folder.path("token"), "hush"));
  const test::Environment id("AWS_ACCESS_KEY_ID", ""),
      file("AWS_WEB_IDENTITY_TOKEN_FILE", folder.path("token")),
      role("AWS_ROLE_ARN", "arn:aws:iam::1:role/r"), sts("AWS_ENDPOINT_URL_STS", kElsewhere);
  const auto credentials = base::value_or_throw(find_aws_credentials(std::make_shared<Http>()));
  const auto keys = credentials->keys();
  ASSERT_FALSE(keys);
  EXPECT_EQ(keys.error().code(), Code::kPermissionDenied);
  for (const char* name : {"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ENDPOINT_URL_STS leads there"})
    EXPECT_NE(std::string(keys.error().what()).find(name), std::string::npos) << keys.error().what();
  const test::Environment no_file("AWS_WEB_IDENTITY_TOKEN_FILE", ""),
      container("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://192.0.2.1/keys"),
      config("AWS_CONFIG_FILE", "/absent"), shared("AWS_SHARED_CREDENTIALS_FILE", "/absent");
  const auto of_container = base::value_or_throw(find_aws_credentials(std::make_shared<Http>()))->keys();
  ASSERT_FALSE(of_container);
  EXPECT_NE(std::string(of_container.error().what()).find("AWS_CONTAINER_CREDENTIALS_FULL_URI leads there"),
            std::string::npos)
      << of_container.error().what();
}

// Account, key and addresses as azure-storage-blob has them for the same connection strings.
TEST(AzureSettings, OfConnectionStrings) {
  const auto http = std::make_shared<Http>();
  const auto settings = [&](const std::string& connection) {
    const test::Environment variable("AZURE_STORAGE_CONNECTION_STRING", connection);
    return base::value_or_throw(azure_settings_of_environment(http));
  };
  const auto emulator = settings("UseDevelopmentStorage=true;");
  EXPECT_EQ(emulator.account, "devstoreaccount1");
  EXPECT_EQ(emulator.key,
            "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==");
  EXPECT_EQ(emulator.endpoint, "http://127.0.0.1:10000/devstoreaccount1");
  EXPECT_EQ(settings("UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://[::1]").endpoint,
            "http://[::1]:10000/devstoreaccount1");
  const auto other = settings(
      "defaultendpointsprotocol=https;ACCOUNTNAME=a;accountkey=aGk=;EndpointSuffix=core.chinacloudapi.cn");
  EXPECT_EQ(other.account + " " + other.key + " " + other.endpoint, "a aGk= ");
  EXPECT_EQ(other.place_of("a"), "https://a.blob.core.chinacloudapi.cn");
  EXPECT_EQ(emulator.place_of("devstoreaccount1"), emulator.endpoint);
  EXPECT_EQ(AzureSettings{}.place_of("b"), "https://b.blob.core.windows.net");
}

TEST(Endpoints, WithoutASchemeNameTheirSetting) {
  const auto http = std::make_shared<Http>();
  for (const char* wrong :
       {"localhost:9000", "127.0.0.1", "ftp://a", "http://::1:9000", "http://", "https:/a"}) {
    const test::Environment s3("AWS_ENDPOINT_URL", wrong), azure("AZURE_STORAGE_SERVICE_ENDPOINT", wrong);
    EXPECT_THAT(s3_settings_of_environment().error().what(),
                testing::HasSubstr(
                    base::str("AWS_ENDPOINT_URL is '", wrong, "': expected the address of a service")));
    EXPECT_THAT(azure_settings_of_environment(http).error().what(),
                testing::HasSubstr(base::str("AZURE_STORAGE_SERVICE_ENDPOINT is '", wrong)));
  }
  const test::Environment s3("AWS_ENDPOINT_URL", "http://[::1]:9000/"),
      azure("AZURE_STORAGE_CONNECTION_STRING", "AccountName=a;AccountKey=aGk=;BlobEndpoint=localhost:1/a");
  EXPECT_EQ(s3_settings_of_environment()->endpoint, "http://[::1]:9000");
  EXPECT_THAT(azure_settings_of_environment(http).error().what(),
              testing::HasSubstr("BlobEndpoint of AZURE_STORAGE_CONNECTION_STRING is 'localhost:1/a'"));
}

TEST(StoreSecrets, OfAzureDoToo) {
  const test::Environment account("AZURE_STORAGE_ACCOUNT", "a"),
      endpoint("AZURE_STORAGE_SERVICE_ENDPOINT", kElsewhere);
  const auto http = std::make_shared<Http>();
  const auto said = [&] {
    return refusal(Azure(base::value_or_throw(azure_settings_of_environment(http)), http), "a/c");
  };
  for (const char* variable : {"AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_KEY"}) {
    const test::Environment secret(variable, "c2lnPWh1c2g=");
    const std::string error = said();
    EXPECT_NE(error.find(variable), std::string::npos) << error;
    EXPECT_NE(error.find("AZURE_STORAGE_SERVICE_ENDPOINT leads there"), std::string::npos) << error;
  }
  const test::Environment connection(
      "AZURE_STORAGE_CONNECTION_STRING",
      base::str("AccountName=a;SharedAccessSignature=sig=hush;BlobEndpoint=", kElsewhere));
  EXPECT_NE(said().find("AZURE_STORAGE_CONNECTION_STRING"), std::string::npos);
}

TEST(StoreSecrets, OfOneAccountAreNotTheOthers) {
  std::string seen;
  test::Server server([&](const test::Request& request) {
    seen += request.header("x-ms-copy-source") + request.query;
    return test::Reply{200, {"ETag: \"1\"", "x-ms-copy-status: success", "Content-Length: 0"}, ""};
  });
  AzureSettings settings;
  settings.account = "mine";
  settings.sas = "sig=hush";
  settings.endpoint = server.address();
  const Azure store(settings, std::make_shared<Http>());
  EXPECT_TRUE(store.copy({"mine/c", "x", "az"}, {"mine/c", "y", "az"}));
  EXPECT_NE(seen.find("/c/x?sig=hush"), std::string::npos) << seen;
  seen.clear();
  EXPECT_TRUE(store.copy({"other/c", "x", "az"}, {"other/c", "y", "az"}));
  EXPECT_EQ(seen.find("hush"), std::string::npos) << seen;
}

TEST(StoreSecrets, OfAzuresLoginDoToo) {
  const test::Environment tenant("AZURE_TENANT_ID", "t"), client("AZURE_CLIENT_ID", "c"),
      authority("AZURE_AUTHORITY_HOST", kElsewhere), secret("AZURE_CLIENT_SECRET", "hush");
  const auto settings = base::value_or_throw(azure_settings_of_environment(std::make_shared<Http>()));
  const auto header = settings.tokens->header();
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().code(), Code::kPermissionDenied);
  for (const char* name : {"AZURE_CLIENT_SECRET", "AZURE_AUTHORITY_HOST leads there"})
    EXPECT_NE(std::string(header.error().what()).find(name), std::string::npos) << header.error().what();
  const test::Environment nobody("AZURE_CLIENT_SECRET", ""), identity("IDENTITY_ENDPOINT", kElsewhere),
      word("IDENTITY_HEADER", "hush");
  const auto managed = azure_settings_of_environment(std::make_shared<Http>());
  ASSERT_FALSE(managed);
  EXPECT_NE(std::string(managed.error().what()).find("IDENTITY_ENDPOINT leads there"), std::string::npos)
      << managed.error().what();
}

TEST(StoreSecrets, OfTheHubDoToo) {
  const std::string said =
      refusal(Hub(kElsewhere, std::make_shared<Http>(), "hush", "HF_TOKEN"), "datasets/o/n");
  EXPECT_NE(said.find("HF_TOKEN would go to http://192.0.2.1 unencrypted (HF_ENDPOINT leads there)"),
            std::string::npos)
      << said;
}

TEST(StoreSecrets, StayAtHomeWhereThereAreNone) {
  test::Server server([](const test::Request& request) {
    return request.headers.contains("authorization") ? test::Reply{500} : test::Reply{200, {}, "words"};
  });
  const S3 store({server.address()}, std::make_shared<Http>(),
                 std::make_shared<AwsCredentials>("nobody", nullptr));
  EXPECT_EQ(*store.read_text({"b", "x", "s3"}), "words");
}

// Answers of S3 and of servers that stand for it, one after the other.
class Answers {
 public:
  explicit Answers(std::vector<test::Reply> replies) : replies_(std::move(replies)) {}
  test::Reply operator()(const test::Request& request) {
    const std::lock_guard lock(mutex_);
    seen_.push_back(request.method);
    return seen_.size() <= replies_.size() ? replies_[seen_.size() - 1] : test::Reply{418};
  }
  std::size_t seen() const { return seen_.size(); }

 private:
  std::mutex mutex_;
  std::vector<std::string> seen_;
  std::vector<test::Reply> replies_;
};

TEST(S3Answers, ErrorsThatPassAreTriedAgain) {
  const auto error = [](int status, const std::string& code) {
    return test::Reply{status, {}, "<Error><Code>" + code + "</Code><Message>m</Message></Error>"};
  };
  const test::Reply head{200, {"ETag: \"e\""}, ""},
      copied{200, {}, "<AnythingElse><ETag>x</ETag></AnythingElse>"};
  const auto copy = [&](std::vector<test::Reply> replies, std::size_t& requests) {
    Answers answers(std::move(replies));
    test::Server server([&](const test::Request& request) { return answers(request); });
    test::FakeTime time;
    HttpOptions http;
    http.clock = time.clock();
    const S3 store({server.address()}, std::make_shared<Http>(http),
                   std::make_shared<AwsCredentials>("nobody", nullptr));
    auto facts = store.copy({"b", "x", "s3"}, {"b", "y", "s3"}, {});
    requests = answers.seen();
    return facts;
  };
  std::size_t requests = 0;
  for (const auto& [status, code] : {std::pair(200, "SlowDown"), std::pair(200, "InternalError"),
                                     std::pair(409, "OperationAborted"), std::pair(400, "BadDigest")}) {
    const auto facts = copy({head, error(status, code), copied, head}, requests);
    EXPECT_TRUE(facts) << code << ": " << facts.error().what();
    EXPECT_EQ(requests, 4u) << code;
  }
  for (const int status : {501, 507}) {  // what cannot be mended by waiting
    EXPECT_FALSE(copy({head, error(status, "NotImplemented")}, requests));
    EXPECT_EQ(requests, 2u) << status;
  }
  const auto denied = copy({head, error(200, "AccessDenied")}, requests);
  ASSERT_FALSE(denied);
  EXPECT_NE(std::string(denied.error().what()).find("AccessDenied"), std::string::npos);
}

TEST(S3Answers, ALostAnswerToTheEndOfAnUpload) {
  const test::Reply begun{200, {}, "<Begun><UploadId>1</UploadId></Begun>"}, part{200, {"ETag: \"p\""}, ""};
  const test::Reply gone{404, {}, "<Error><Code>NoSuchUpload</Code><Message>m</Message></Error>"};
  Answers answers({begun, part, part, gone, {200, {"ETag: \"0a-2\""}, std::string(300'000, 'x')}});
  test::Server server([&](const test::Request& request) { return answers(request); });
  const S3 store({server.address()}, std::make_shared<Http>(),
                 std::make_shared<AwsCredentials>("nobody", nullptr));
  UploadOptions options;
  options.chunk_bytes = 262'144;
  const auto upload = base::value_or_throw(store.start_upload({"b", "x", "s3"}, options));
  ASSERT_TRUE(upload->write(std::string(300'000, 'x')));
  const auto facts = upload->finish();
  ASSERT_TRUE(facts) << facts.error().what();
  EXPECT_EQ(facts->size, 300'000u);
}

TEST(Percent, ThereAndBack) {
  EXPECT_EQ(percent_encode_path("a b/c+d/é"), "a%20b/c%2Bd/%C3%A9");
  EXPECT_EQ(percent_decode("a%20b/c%2Bd/%C3%A9%"), "a b/c+d/é%");
  EXPECT_EQ(percent_decode("%zz%4"), "%zz%4");
}

}  // namespace
}  // namespace sluice::cloud
