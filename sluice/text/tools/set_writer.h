// Writes the files of a set, and records how far an interrupted run has come.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/text/tools/pack.h"
#include "sluice/text/tools/token_writer.h"

namespace sluice::text {

// Threads: one at a time.
class SetWriter {
 public:
  // `made_of` identifies all that determines the bytes; empty: interrupted runs are not resumed. `about` goes
  // into PREFIX.json. kAlreadyExists for an existing set, or an interrupted run of a different one.
  static base::Result<SetWriter> open(const TokenSetOptions& options, int width, const std::string& made_of,
                                      nlohmann::json about);

  // The `at` at the end of the previous run's files; null at the beginning.
  const nlohmann::json& reached() const { return reached_; }
  // Whether all files are written, so that only finish() is left.
  bool complete() const { return complete_; }
  // Adds a document; `at` is where the next one begins.
  base::Status add(const std::uint32_t* ids, std::size_t count, const nlohmann::json& at);
  // Moves the files to their place.
  base::Result<TokenSetReport> finish();

 private:
  SetWriter(const TokenSetOptions& options, int width, std::string made_of, nlohmann::json about);
  base::Status prepare();
  base::Status read_state();
  base::Status write_state() const;
  base::Status end_file(const nlohmann::json& at);
  base::Status move();
  std::string name_of(std::size_t number) const;
  std::string list_path() const;

  TokenSetOptions options_;
  int width_;
  std::string made_of_;
  nlohmann::json about_;
  std::string partial_;
  nlohmann::json files_ = nlohmann::json::array();  // the complete files
  nlohmann::json reached_;
  bool complete_ = false;
  std::size_t continued_ = 0;
  std::optional<TokenWriter> writer_;
};

}  // namespace sluice::text
