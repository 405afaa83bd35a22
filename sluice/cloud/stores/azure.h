// Azure Blob Storage: az://ACCOUNT/CONTAINER/NAME.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sluice/cloud/storage.h"
#include "sluice/cloud/stores/azure_signer.h"

namespace sluice::cloud {

// Threads: all members from any thread.
class Azure : public Store {
 public:
  Azure(AzureSettings settings, std::shared_ptr<Http> http);

  base::Result<ObjectFacts> stat(const ObjectName& name,
                                 const std::atomic<bool>* cancelled = nullptr) const override;
  base::Result<std::vector<ObjectFacts>> list(const std::string& bucket, const std::string& prefix,
                                              bool flat = false) const override;
  // Pinned by its ETag; compared with its MD5 if one was stored.
  base::Result<Remote> find(const ObjectName& name,
                            const std::atomic<bool>* cancelled = nullptr) const override;
  base::Result<std::string> read_text(const ObjectName& name) const override;
  // Uploads a block blob, in blocks if it is larger than a chunk. The server compares the MD5 of each
  // request's body, and stores the MD5 of the whole.
  base::Result<std::unique_ptr<Upload>> start_upload(const ObjectName& name,
                                                     const UploadOptions& options = {}) const override;
  bool copies(const ObjectName& from, const ObjectName& to) const override;
  base::Result<ObjectFacts> copy(const ObjectName& from, const ObjectName& to,
                                 const UploadOptions& options = {}) const override;
  // Keeps the blob's blocks and adds new ones. A blob of many small blocks gets larger ones in their place,
  // so that the list of blocks stays short. Blobs without blocks (UploadOptions::grows) are refused. The new
  // blob has no MD5; each block was compared with its own.
  std::optional<std::uint64_t> least_appended() const override { return 1; }
  base::Result<ObjectFacts> append(const std::string& path, std::uint64_t size, const ObjectName& name,
                                   const ObjectFacts& old) const override;
  base::Status remove(const ObjectName& name, const std::string& generation = "") const override;

  base::Result<HttpResponse> expect_ok(const ObjectName& name, const std::string& query, HttpRequest request,
                                       const std::string& what) const;

 private:
  base::Result<HttpResponse> head(const ObjectName& name, const std::atomic<bool>* cancelled) const;
  std::string address(const ObjectName& name) const;
  Access access_to(const ObjectName& name) const;

  const AzureSettings settings_;
  const std::shared_ptr<Http> http_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::shared_ptr<Signer>> signers_;  // one for each account
};

base::Result<Store*> shared_azure();

}  // namespace sluice::cloud
