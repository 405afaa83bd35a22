// Converts values.env of the environment module that preceded Sluice's into a TOML file.
//
// The facts about its variables come from github.com/mugithi/google-terraform-pytorch-tpu, all versions of
// values.env and values.env.auto. docs/environments.md has the same table for people.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::provision {

struct ImportedFile {
  std::string toml;
  // Notes for people: variables that are not needed and why, values that changed, what to check.
  std::vector<std::string> notes;
};

// The key that a variable became, "env.name", or "" with the reason why it is not needed.
struct ImportRow {
  const char* variable;
  const char* key;
  const char* because;
};
const std::vector<ImportRow>& import_rows();

// Reads NAME=value lines of sh: quotes, `export`, comments, and $NAME or ${NAME} of earlier lines.
// kInvalidArgument names a line of another form. Commands are not run: $(…) and back quotes are refused.
base::Result<std::map<std::string, std::string>> read_variables(const std::string& text,
                                                                const std::string& path);

// kInvalidArgument if a required variable is missing (PROJECT_ID, ZONE, a TPU type), or if a number is not
// valid.
base::Result<ImportedFile> import_values(const std::string& text, const std::string& path);

}  // namespace sluice::provision
