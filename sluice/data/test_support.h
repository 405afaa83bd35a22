// Helpers that the tests of this room share.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/base64.h"
#include "sluice/data/images/image.h"
#include "sluice/data/shards/source.h"
#include "sluice/data/shards/tar_writer.h"

namespace sluice::data::test {

inline std::string from_base64(std::string_view text) { return base::bytes_of_base64(text).value(); }

inline std::string unpacked(std::string_view text) {
  const auto bytes = gunzip("test", from_base64(text));
  EXPECT_TRUE(bytes) << bytes.error().what();
  return bytes.value_or("");
}

using Members = std::vector<std::pair<std::string, std::string>>;

// Returns a whole archive in memory.
inline std::string archive(const Members& members) {
  std::string bytes;
  for (const auto& [name, payload] : members) bytes += tar_member(name, payload);
  return bytes + tar_end(bytes.size());
}

// Returns a PNG file of one grey level.
inline std::string gray_png(int level, std::int64_t side = 2) {
  const auto pixels = static_cast<std::size_t>(side * side);
  return *encode_png({side, side, 1, std::vector<std::uint8_t>(pixels, static_cast<std::uint8_t>(level))});
}

// A folder for a test's files, removed at its end.
class Folder {
 public:
  Folder() : folder_(base::value_or_throw(base::TemporaryDirectory::create("sluice-data-test"))) {}
  std::string path(std::string_view name = "") const {
    return name.empty() ? folder_.path() : folder_.path(name);
  }
  std::string write(std::string_view name, std::string_view bytes) const {
    base::value_or_throw(base::make_directories(base::parent_path(path(name))));
    base::value_or_throw(base::write_file_atomically(path(name), bytes));
    return path(name);
  }

 private:
  base::TemporaryDirectory folder_;
};

// Returns the message of the sluice::Error that an expression throws.
template <typename Function>
std::string thrown(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace sluice::data::test
