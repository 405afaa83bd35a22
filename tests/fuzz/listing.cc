// A page of a listing: the first byte names the service (g, s, a, h), the rest is its answer. What is taken
// of it lies below what was asked for.
#include <string>
#include <string_view>

#include "sluice/cloud/listing.h"
#include "tests/fuzz/demand.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  if (size == 0) return 0;
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (const bool flat : {false, true}) {
    cloud::Listing listing("listing", "d/", flat);
    base::Result<std::string> token = std::string();
    if (data[0] == 'g') token = cloud::read_google_page(body, listing);
    if (data[0] == 's') token = cloud::read_s3_page(body, listing);
    if (data[0] == 'a') token = cloud::read_azure_page(body, listing);
    if (data[0] == 'h')
      if (const auto status = cloud::read_hub_page(body, listing); !status)
        token = tl::unexpected<Error>(status.error());
    if (token) fuzz::demand(listing.next(*token).has_value(), "a first page may lead to another");
    for (const cloud::ObjectFacts& object : std::move(listing).sorted()) {
      const std::string_view name = object.name;
      fuzz::demand(name.substr(0, 2) == "d/" && name.find('\0') == std::string_view::npos,
                   "names lie below what was asked for");
      fuzz::demand(!flat || name.find('/', 2) == std::string_view::npos, "flat listings name no folders");
    }
  }
  return 0;
}
