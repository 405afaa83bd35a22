#include "sluice/cloud/listing.h"

#include <algorithm>

#include "sluice/base/formats/sha256.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/strings.h"

namespace sluice::cloud {

base::Result<bool> Pages::next(const std::string& token) {
  if (token.empty()) return false;
  if (!seen_.insert(base::sha256(token)).second)
    return base::fail(Code::kDataLoss, what_,
                      ": the server leads to the same page twice: it would never end");
  if (seen_.size() > limits_.pages)
    return base::fail(Code::kResourceExhausted, what_, ": more than ", limits_.pages,
                      " pages: list a folder with fewer objects");
  return true;
}

base::Status Listing::add(ObjectFacts object) {
  if (!base::starts_with(object.name, prefix_) || object.name.find('\0') != std::string::npos)
    return base::fail(Code::kDataLoss, what_, ": the server names '",
                      base::printable(std::string_view(object.name).substr(0, 200)),
                      "', which was not asked for");
  if (flat_ && object.name.find('/', prefix_.size()) != std::string::npos) return {};
  if (objects_.size() >= limits_.names)
    return base::fail(Code::kResourceExhausted, what_, ": more than ", limits_.names,
                      " objects: list a folder with fewer");
  objects_.push_back(std::move(object));
  return {};
}

std::vector<ObjectFacts> Listing::sorted() && {
  std::sort(objects_.begin(), objects_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return std::move(objects_);
}

}  // namespace sluice::cloud
