// A listing in pages, with limits: the server may be anybody's.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/cloud/store.h"

namespace sluice::cloud {

struct ListingLimits {
  std::size_t names = 10'000'000;
  std::size_t pages = 100'000;
};

// The tokens of a listing's pages: rejects a repeated token and too many pages. Threads: one at a time.
class Pages {
 public:
  // `what` begins the errors.
  explicit Pages(std::string what, ListingLimits limits = {}) : what_(std::move(what)), limits_(limits) {}

  // Returns whether there is another page: false for the token "".
  base::Result<bool> next(const std::string& token);

 private:
  const std::string what_;
  const ListingLimits limits_;
  std::unordered_set<std::string> seen_;  // SHA-256 of tokens, which may be long
};

// Objects below a prefix. Threads: one at a time.
class Listing {
 public:
  // `flat`: omits names with a further slash.
  Listing(std::string what, std::string prefix, bool flat, ListingLimits limits = {})
      : what_(what),
        prefix_(std::move(prefix)),
        flat_(flat),
        limits_(limits),
        pages_(std::move(what), limits) {}

  // kDataLoss for a name that was not asked for, kResourceExhausted for too many names.
  base::Status add(ObjectFacts object);
  base::Result<bool> next(const std::string& token) { return pages_.next(token); }
  // Returns the objects of all pages, in the order of their names' bytes.
  std::vector<ObjectFacts> sorted() &&;

  const std::string& what() const { return what_; }
  const std::string& prefix() const { return prefix_; }

 private:
  const std::string what_, prefix_;
  const bool flat_;
  const ListingLimits limits_;
  Pages pages_;
  std::vector<ObjectFacts> objects_;
};

// Lists all pages. `read_page(listing, token)` requests the page of a token ("": the first one), adds its
// objects and returns the next page's token.
template <typename ReadPage>
base::Result<std::vector<ObjectFacts>> list_pages(Listing listing, const ReadPage& read_page) {
  std::string token;
  for (bool more = true; more;) {
    SLUICE_TRY(token, read_page(listing, token));
    SLUICE_TRY(more, listing.next(token));
  }
  return std::move(listing).sorted();
}

// Read a page of a service's listing. Return the token of the next page; "" at the end.
base::Result<std::string> read_google_page(const std::string& body, Listing& listing);
base::Result<std::string> read_s3_page(const std::string& body, Listing& listing);
base::Result<std::string> read_azure_page(const std::string& body, Listing& listing);
// The hub lists folders; this function selects the files of a folder whose names begin with the prefix.
base::Status read_hub_page(const std::string& body, Listing& listing);

}  // namespace sluice::cloud
