// The environment module that came before: its values.env as a TOML file.
//
// Facts of its variables: github.com/mugithi/google-terraform-pytorch-tpu, values.env and values.env.auto in
// all their versions. docs/environments.md has the same table for people.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::provision {

struct ImportedFile {
  std::string toml;
  // For people: variables that are not needed and why, values that changed, what to look at.
  std::vector<std::string> notes;
};

// What a variable became: "env.name", or "" with the reason why it is not needed.
struct ImportRow {
  const char* variable;
  const char* key;
  const char* because;
};
const std::vector<ImportRow>& import_rows();

// NAME=value lines of sh: quotes, `export`, comments and $NAME or ${NAME} of lines before. kInvalidArgument
// names the line that is none. Commands are not run: $(…) and back quotes are refused.
base::Result<std::map<std::string, std::string>> read_variables(const std::string& text,
                                                                const std::string& path);

// kInvalidArgument when what every environment needs is missing (PROJECT_ID, ZONE, a TPU type), and for a
// number that is none.
base::Result<ImportedFile> import_values(const std::string& text, const std::string& path);

}  // namespace sluice::provision
