// Who the program is to Azure Blob Storage.
#pragma once

#include <memory>
#include <string>

#include "sluice/cloud/storage.h"

namespace sluice::cloud {

struct AzureSettings {
  std::string account;   // whose key and signature these are; "": any's
  std::string key;       // of the account, in base64; may be "", as all below
  std::string sas;       // a shared access signature: "sv=…&sig=…", without "?"
  std::string endpoint;  // "http://127.0.0.1:10000/devstoreaccount1"; "": https://ACCOUNT.blob.SUFFIX
  std::string suffix = "core.windows.net";  // another one in clouds of their own
  std::string secret_from, endpoint_from;   // the settings that they are of, for errors
  std::shared_ptr<Credentials> tokens;      // null: none
  std::string looked_in;                    // for errors

  // Where the containers of an account are, without a slash at the end.
  std::string place_of(const std::string& account_name) const;
};

// In this order: AZURE_STORAGE_CONNECTION_STRING; AZURE_STORAGE_SAS_TOKEN; AZURE_STORAGE_KEY (these two with
// AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_SERVICE_ENDPOINT); AZURE_TENANT_ID and AZURE_CLIENT_ID with
// AZURE_CLIENT_SECRET or AZURE_FEDERATED_TOKEN_FILE; a managed identity; nobody, which is enough for public
// containers. The connection string UseDevelopmentStorage=true means an emulator on this machine (Azurite).
base::Result<AzureSettings> azure_settings_of_environment(std::shared_ptr<Http> http);

// The signature of a request by an account's key ("Shared Key"): the headers x-ms-date, x-ms-version and
// Authorization are added.
base::Status sign_for_azure(HttpRequest& request, const std::string& account, const std::string& key,
                            std::time_t now);

// Requests to one account.
class AzureSigner : public Signer {
 public:
  AzureSigner(std::string account, const AzureSettings& settings)
      : account_(std::move(account)), settings_(settings) {}
  base::Result<HttpResponse> once(Http& http, HttpRequest request) override;
  Error explain(const HttpResponse& response, const std::string& what) const override;

 private:
  bool ours() const { return settings_.account.empty() || settings_.account == account_; }
  std::string who() const;

  const std::string account_;
  const AzureSettings settings_;
};

}  // namespace sluice::cloud
