#include "sluice/cli/data_verbs.h"

#include <CLI/CLI.hpp>

#include "sluice/cli/data_common.h"
#include "sluice/cli/data_cp_verb.h"

namespace sluice::cli {

void add_data_verbs(CLI::App& app, int& exit_status) {
  auto* noun = app.add_subcommand("data", "Make, list and check WebDataset shards");
  noun->require_subcommand(1);
  add_pack_verbs(*noun, exit_status);
  add_list_verbs(*noun, exit_status);
  add_cat_verb(*noun, exit_status);
  add_index_verb(*noun, exit_status);
  add_stats_verb(*noun, exit_status);
  add_data_cp(*noun, exit_status);
}

}  // namespace sluice::cli
