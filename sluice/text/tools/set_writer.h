// Writes the files of a set, and knows how far a run that was stopped had come.
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
  // `made_of`: everything that the bytes depend on; empty: a run that was stopped is not continued. `about`
  // goes into PREFIX.json. kAlreadyExists where the set is there, or a run that was stopped was of something
  // else.
  static base::Result<SetWriter> open(const TokenSetOptions& options, int width, const std::string& made_of,
                                      nlohmann::json about);

  // Where the last run's files end, as it said in `at`; null at the beginning.
  const nlohmann::json& reached() const { return reached_; }
  // All files are written: only finish() is left.
  bool complete() const { return complete_; }
  // A document; `at` is where the next one begins.
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
  nlohmann::json files_ = nlohmann::json::array();  // of those that are whole
  nlohmann::json reached_;
  bool complete_ = false;
  std::size_t continued_ = 0;
  std::optional<TokenWriter> writer_;
};

}  // namespace sluice::text
