// Reads files of Hugging Face's hub: hf://datasets/OWNER/NAME@REVISION/FILE.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sluice/cloud/storage.h"

namespace sluice::cloud {

// Threads: all members from any thread.
class Hub : public Store {
 public:
  // `endpoint`: "https://huggingface.co". `token`: "" for none; it is sent there and nowhere else.
  // `token_from` says in errors where the token comes from, or where one was searched for.
  Hub(std::string endpoint, std::shared_ptr<Http> http, std::string token, std::string token_from);

  base::Result<ObjectFacts> stat(const ObjectName& name,
                                 const std::atomic<bool>* cancelled = nullptr) const override;
  base::Result<std::vector<ObjectFacts>> list(const std::string& bucket, const std::string& prefix,
                                              bool flat = false) const override;
  // Pinned by the commit that the revision names now; compared with the SHA-256 that the hub stores for large
  // files.
  base::Result<Remote> find(const ObjectName& name,
                            const std::atomic<bool>* cancelled = nullptr) const override;
  base::Result<std::string> read_text(const ObjectName& name) const override;
  // These three return kUnimplemented.
  base::Result<std::unique_ptr<Upload>> start_upload(const ObjectName& name,
                                                     const UploadOptions& options = {}) const override;
  base::Result<ObjectFacts> copy(const ObjectName& from, const ObjectName& to,
                                 const UploadOptions& options = {}) const override;
  base::Status remove(const ObjectName& name, const std::string& generation = "") const override;

 private:
  base::Result<HttpResponse> head(const ObjectName& name, const std::atomic<bool>* cancelled) const;

  const std::string endpoint_;
  Access access_;
};

// Returns the hub of HF_ENDPOINT. The token comes from HF_TOKEN or the file that the hub's own tools write:
// HF_TOKEN_PATH, $HF_HOME/token or ~/.cache/huggingface/token.
base::Result<Store*> shared_hub();

}  // namespace sluice::cloud
